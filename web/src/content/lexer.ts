import { getDefaults, Lexer, type Token, Tokenizer, type Tokens, type TokensList } from "marked";

// The lexer of marked with limits, so that no text can keep the page busy: the deeper and the dearer parts
// of hostile text stay plain text. The limits count work, not time: the same text is always read alike.

/** Lists in quotes in lists … deeper than this are text. */
export const maxDepth = 30;
/** Longer texts are not read as markdown at all. */
export const maxLength = 300_000;
/** More parts than this would be more elements than a page should have. */
const maxParts = 40_000;
/** About a third of a second of the work that grows with the square of its input. */
const maxCost = 100_000_000;
const maxCostOfOne = 20_000_000;
const maxCells = 20_000;
const maxTasks = 3000;
const maxDefinitions = 300;

const task = /^[ \t>]*(?:[-*+]|\d{1,9}[.)]) {1,4}\[[ xX]\] /gm;

class TooMuch extends Error {}

class Limits {
  cost = 0;
  parts = 0;
  cells = 0;
  definitions = 0;

  /** Whether something may be done that takes about as long as `cost` says. */
  pay(cost: number): boolean {
    if (cost > maxCostOfOne || this.cost + cost > maxCost) return false;
    this.cost += cost;
    return true;
  }

  add(parts: number): void {
    this.parts += parts;
    if (this.parts > maxParts) throw new TooMuch("too many parts");
  }
}

function plain(text: string): Tokens.Text {
  return { type: "text", raw: text, text, escaped: false };
}

function occurrences(text: string, pattern: RegExp, limit: number): number {
  let n = 0;
  pattern.lastIndex = 0;
  while (n < limit && pattern.test(text)) n++;
  return n;
}

class CarefulTokenizer extends Tokenizer {
  constructor(private limits: Limits) {
    super({ ...getDefaults(), gfm: true });
  }

  // A line that goes on with a quote without its mark makes marked read the whole quote again.
  override blockquote(src: string): Tokens.Blockquote | undefined {
    const found = this.rules.block.blockquote.exec(src)?.[0];
    if (!found) return undefined;
    const lazy = occurrences(found, /^ {0,3}[^ >\n]/gm, found.length);
    if (this.limits.pay(lazy * found.length * 6)) return super.blockquote(src);
    const raw = found.replace(/\n+$/, "");
    const text = raw.replace(/^ {0,3}> ?/gm, "");
    return {
      type: "blockquote",
      raw,
      text,
      tokens: [{ type: "paragraph", raw: text, text, tokens: [plain(text)] }],
    };
  }

  // Rows are filled up to the width of the header: few characters, many cells.
  override table(src: string): Tokens.Table | undefined {
    const end = src.indexOf("\n");
    if (end < 0) return undefined;
    const next = src.indexOf("\n", end + 1);
    const ruler = src.slice(end + 1, next < 0 ? src.length : next);
    if (!/^ {0,3}[|:-][|: \t-]*$/.test(ruler)) return undefined;
    const blank = src.indexOf("\n\n", end);
    const rows = src.slice(0, blank < 0 ? src.length : blank).split("\n").length;
    const columns = src.slice(0, end).split("|").length;
    this.limits.cells += rows * columns;
    if (this.limits.cells > maxCells) return undefined;
    return super.table(src);
  }

  override def(src: string): Tokens.Def | undefined {
    const found = super.def(src);
    // A footnote is no link.
    if (!found || found.tag.startsWith("^")) return undefined;
    return ++this.limits.definitions > maxDefinitions ? undefined : found;
  }
}

class CarefulLexer extends Lexer {
  private deep = 0;
  private inlineDeep = 0;

  constructor(private limits: Limits) {
    super({ ...getDefaults(), gfm: true, tokenizer: new CarefulTokenizer(limits) });
  }

  override blockTokens(src: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): Token[] {
    this.limits.add(1);
    if (this.deep >= maxDepth) {
      tokens.push({ ...plain(src), tokens: [plain(src)] });
      return tokens;
    }
    this.deep++;
    const before = tokens.length;
    const found = super.blockTokens(src, tokens, lastParagraphClipped);
    this.deep--;
    this.limits.add(found.length - before);
    return found;
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    this.limits.add(1);
    const marks = occurrences(src, /[*_~![\]`<&]/g, src.length);
    if (this.inlineDeep >= maxDepth || !this.limits.pay(marks * src.length)) {
      tokens.push(plain(src));
      return tokens;
    }
    this.inlineDeep++;
    const found = super.inlineTokens(src, tokens);
    this.inlineDeep--;
    this.limits.add(found.length);
    return found;
  }
}

export type Links = Lexer["tokens"]["links"];

export interface Blocks {
  tokens: Token[];
  links: Links;
}

/** The blocks of a text without carriage returns, or null if it is one to show as it is. */
export function lexBlocks(text: string, links?: Links): Blocks | null {
  if (text.length > maxLength) return null;
  try {
    const lexer = new CarefulLexer(new Limits());
    // marked looks through all of them for each one it finds.
    if (occurrences(text, task, maxTasks) >= maxTasks) return null;
    if (links) Object.assign(lexer.tokens.links, links);
    const tokens = lexer.lex(text);
    return { tokens, links: tokens.links };
  } catch {
    return null;
  }
}

/** marked counts lengths of texts with plain newlines only. */
export function plainNewlines(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}
