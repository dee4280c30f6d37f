// What programs write to a terminal, as lines of styled text.

/** A colour: one of the first 16, or "#rrggbb". */
export type Colour = number | string;

export interface Style {
  readonly fg?: Colour;
  readonly bg?: Colour;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly inverse?: boolean;
  readonly strike?: boolean;
  readonly hidden?: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

export const plainStyle: Style = {};

export function styleKey(s: Style): string {
  const flags = [s.bold, s.dim, s.italic, s.underline, s.inverse, s.strike, s.hidden];
  return `${s.fg ?? ""}/${s.bg ?? ""}/${flags.map((flag) => (flag ? 1 : 0)).join("")}`;
}

function hex(n: number): string {
  return Math.max(0, Math.min(255, n)).toString(16).padStart(2, "0");
}

/** A colour of the table of 256. */
function tableColour(n: number): Colour | undefined {
  if (!(n >= 0 && n <= 255)) return undefined;
  if (n < 16) return n;
  if (n >= 232) {
    const grey = hex(8 + (n - 232) * 10);
    return `#${grey}${grey}${grey}`;
  }
  const level = (of: number) => hex(of === 0 ? 0 : 55 + of * 40);
  const cube = n - 16;
  return `#${level(Math.floor(cube / 36))}${level(Math.floor(cube / 6) % 6)}${level(cube % 6)}`;
}

/** `38;5;n` and `38;2;r;g;b`: the colour, and how many numbers it took. */
function longColour(codes: readonly number[], at: number): [Colour | undefined, number] {
  if (codes[at + 1] === 5) return [tableColour(codes[at + 2] ?? -1), 2];
  if (codes[at + 1] !== 2) return [undefined, 0];
  const [r = 0, g = 0, b = 0] = codes.slice(at + 2, at + 5);
  return [`#${hex(r)}${hex(g)}${hex(b)}`, 4];
}

const on: Record<number, Style> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  8: { hidden: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: undefined, dim: undefined },
  23: { italic: undefined },
  24: { underline: undefined },
  27: { inverse: undefined },
  28: { hidden: undefined },
  29: { strike: undefined },
  39: { fg: undefined },
  49: { bg: undefined },
};

/** The same few are written again and again. */
const read = new Map<string, readonly number[]>();

function codesOf(parameters: string): readonly number[] {
  const known = read.get(parameters);
  if (known) return known;
  // 38:2::r:g:b is the same with an empty part; 4:0 is an underline that ends.
  const source = parameters.replace(/\b([34]8):2::?/g, "$1;2;").replace(/\b4:0\b/g, "24");
  const codes = source.split(/[;:]/).map((code) => (code === "" ? 0 : Number.parseInt(code, 10)));
  if (read.size > 2000) read.clear();
  if (parameters.length < 40) read.set(parameters, codes);
  return codes;
}

/** The style after the numbers of `ESC [ … m`. */
export function applySgr(style: Style, parameters: string): Style {
  let now = style;
  const codes = codesOf(parameters);
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]!;
    if (code === 0) now = plainStyle;
    else if (code === 38 || code === 48) {
      const [colour, took] = longColour(codes, at);
      if (colour !== undefined) now = code === 38 ? { ...now, fg: colour } : { ...now, bg: colour };
      at += took;
    } else if (code === 58) at += longColour(codes, at)[1];
    else if (code >= 30 && code <= 37) now = { ...now, fg: code - 30 };
    else if (code >= 40 && code <= 47) now = { ...now, bg: code - 40 };
    else if (code >= 90 && code <= 97) now = { ...now, fg: code - 82 };
    else if (code >= 100 && code <= 107) now = { ...now, bg: code - 92 };
    else if (on[code]) now = { ...now, ...on[code] };
  }
  return now;
}

/** What a command begins with. */
export const csi = "(?:\\x1b\\[|\\x9b)";

/** An escape: a command with its numbers, a string for the terminal itself, a short one, or a control
 * that shows nothing. One that was cut off at the end of a line is one too. */
const escapes = new RegExp(
  [
    `${csi}([0-?]*)[ -/]*([@-~]|$)`,
    "\\x1b[\\]PX^_][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\|$)",
    "\\x1b[ -/]*(?:[0-~]|$)",
    "[\\x00-\\x07\\x0e-\\x1a\\x1c-\\x1f\\x7f]",
  ].join("|"),
  "g",
);
const moves = new RegExp(`[\\x08\\r\\x0b\\x0c]|${csi}[\\d;]*[CDGK]`);
const controls = new RegExp(`${csi}|[\\x00-\\x08\\x0b-\\x1f\\x7f]`);

/** A line without anything that moves in it. */
function straight(line: string, start: Style): { spans: Span[]; style: Style } {
  const spans: Span[] = [];
  let style = start;
  let at = 0;
  const put = (text: string) => {
    if (text) spans.push({ text, style });
  };
  escapes.lastIndex = 0;
  for (let found = escapes.exec(line); found; found = escapes.exec(line)) {
    put(line.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] === "m") style = applySgr(style, found[1] ?? "");
    if (found[0] === "") escapes.lastIndex++;
  }
  put(line.slice(at));
  return { spans, style };
}

const widest = 1000;

/** A line that is written over, as bars of progress do: only its last state is shown. */
function overwritten(line: string, start: Style): { spans: Span[]; style: Style } {
  const letters: string[] = [];
  const styles: Style[] = [];
  let style = start;
  let column = 0;
  let at = 0;
  const write = (text: string) => {
    for (const letter of text) {
      if (letter === "\r") column = 0;
      else if (letter === "\b") column = Math.max(0, column - 1);
      else if (letter !== "\v" && letter !== "\f") {
        while (letters.length < column) {
          letters.push(" ");
          styles.push(plainStyle);
        }
        letters[column] = letter;
        styles[column++] = style;
      }
    }
  };
  const move = (command: string, parameters: string) => {
    const n = Math.min(Number.parseInt(parameters, 10) || 0, widest);
    if (command === "G") column = Math.max(0, n - 1);
    // No further than a terminal is wide, or a few bytes would be a very long line.
    else if (command === "C") column = Math.max(column, Math.min(column + (n || 1), widest));
    else if (command === "D") column = Math.max(0, column - (n || 1));
    else if (command === "K" && n === 0) letters.length = styles.length = Math.min(column, letters.length);
    else if (command === "K" && n === 2) letters.length = styles.length = 0;
    else if (command === "K" && n === 1 && column < widest) {
      for (let back = 0; back <= column && back < letters.length; back++) letters[back] = " ";
    }
  };
  escapes.lastIndex = 0;
  for (let found = escapes.exec(line); found; found = escapes.exec(line)) {
    write(line.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] === "m") style = applySgr(style, found[1] ?? "");
    else if (found[2]) move(found[2], found[1] ?? "");
  }
  write(line.slice(at));
  const spans: Span[] = [];
  for (const [n, letter] of letters.entries()) {
    const last = spans.at(-1);
    if (last && last.style === styles[n]) last.text += letter;
    else spans.push({ text: letter, style: styles[n]! });
  }
  return { spans, style };
}

/** The spans of one line (without its newline), and the style that the next one begins with. */
export function ansiLine(line: string, start: Style = plainStyle): { spans: Span[]; style: Style } {
  const text = line.endsWith("\r") ? line.replace(/\r+$/, "") : line;
  return moves.test(text) ? overwritten(text, start) : straight(text, start);
}

/** The text as it is read, without escapes. */
export function plainText(text: string): string {
  if (!controls.test(text)) return text;
  const line = (of: string) =>
    ansiLine(of)
      .spans.map((span) => span.text)
      .join("");
  return text.split("\n").map(line).join("\n");
}
