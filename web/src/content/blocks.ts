import type { Token } from "marked";
import { type Links, lexBlocks, plainNewlines } from "./lexer";
import { mend } from "./mend";

export interface Read {
  /** Null: to be shown as it is. */
  tokens: readonly Token[] | null;
  text: string;
  /** What the blocks depend on besides their own text. */
  links: string;
}

function linksKey(links: Links): string {
  const tags = Object.keys(links);
  return tags.length ? tags.map((tag) => `${tag} ${links[tag]?.href}`).join("\n") : "";
}

/** A whole text. */
export function readWhole(text: string): Read {
  const source = plainNewlines(text);
  const found = lexBlocks(source);
  return { tokens: found?.tokens ?? null, text: source, links: found ? linksKey(found.links) : "" };
}

/** Reads a text that grows: only what follows the last finished block is read again. */
export class BlockReader {
  private done = "";
  private finished: Token[] = [];
  private links: Links = {};
  /** Once a text was too much it is only shown, whatever follows. */
  private plain = false;

  read(text: string): Read {
    const source = plainNewlines(text);
    if (!source.startsWith(this.done)) this.reset();
    const tail = source.slice(this.done.length);
    const found = this.plain ? null : lexBlocks(tail, this.links);
    if (!found) {
      this.plain = true;
      this.done = source;
      return { tokens: null, text: source, links: "" };
    }
    const cut = this.finish(tail, found.tokens);
    const rest = found.tokens.slice(cut);
    return {
      tokens: this.finished.concat(this.mended(tail, found.tokens, cut) ?? rest),
      text: source,
      links: "",
    };
  }

  private reset(): void {
    this.done = "";
    this.finished = [];
    this.links = {};
    this.plain = false;
  }

  /** Keeps the blocks that no further text can change: those before a block whose first line is whole.
   * Says how many of the tokens these are. */
  private finish(tail: string, tokens: readonly Token[]): number {
    let at = 0;
    let cut = 0;
    let cutAt = 0;
    const lastNewline = tail.lastIndexOf("\n");
    for (const [n, token] of tokens.entries()) {
      if (n > 0 && token.type !== "space" && lastNewline >= at) {
        cut = n;
        cutAt = at;
      }
      at += token.raw.length;
    }
    if (at !== tail.length || cut === 0) return 0;
    for (const token of tokens.slice(0, cut)) {
      this.finished.push(token);
      if (token.type === "def") this.links[token.tag] ??= { href: token.href, title: token.title };
    }
    this.done += tail.slice(0, cutAt);
    return cut;
  }

  /** The unfinished blocks as they will look once their marks are closed. */
  private mended(tail: string, tokens: readonly Token[], cut: number): Token[] | null {
    let last = tokens.length - 1;
    while (last > cut && tokens[last]?.type === "space") last--;
    const token = tokens[last];
    if (!token) return null;
    let start = tail.length;
    for (let n = tokens.length - 1; n >= last; n--) start -= tokens[n]!.raw.length;
    const source = tail.slice(start);
    const fixed = mend(source, token.type);
    if (fixed === source) return null;
    const again = lexBlocks(fixed, this.links);
    return again ? tokens.slice(cut, last).concat(again.tokens) : null;
  }
}
