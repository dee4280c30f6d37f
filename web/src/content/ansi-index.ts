import { applySgr, csi, plainStyle, type Style } from "./ansi";

/** Where the lines of an output begin, and with what style: any of them can then be drawn on its own.
 * An output that grows is only read where it grew. */
export class AnsiIndex {
  private text = "";
  private starts: number[] = [0];
  private styles: Style[] = [plainStyle];

  read(text: string): void {
    if (!text.startsWith(this.text)) {
      this.starts = [0];
      this.styles = [plainStyle];
    }
    const from = this.starts.at(-1)!;
    this.text = text;
    let style = this.styles.at(-1)!;
    // Only colours matter for where lines begin.
    const marks = new RegExp(`\\n|${csi}([\\d;:]*)m`, "g");
    if (!text.includes("\x1b", from) && !text.includes("\x9b", from)) {
      for (let at = text.indexOf("\n", from); at >= 0; at = text.indexOf("\n", at + 1)) {
        this.starts.push(at + 1);
        this.styles.push(style);
      }
      return;
    }
    marks.lastIndex = from;
    for (let found = marks.exec(text); found; found = marks.exec(text)) {
      if (found[0] !== "\n") style = applySgr(style, found[1] ?? "");
      else {
        this.starts.push(found.index + 1);
        this.styles.push(style);
      }
    }
  }

  /** The newline at the end begins no further line. */
  get length(): number {
    const n = this.starts.length;
    return n > 1 && this.starts[n - 1] === this.text.length ? n - 1 : n;
  }

  line(n: number): { text: string; style: Style } {
    const start = this.starts[n]!;
    const next = this.starts[n + 1];
    return {
      text: this.text.slice(start, next === undefined ? this.text.length : next - 1),
      style: this.styles[n]!,
    };
  }
}
