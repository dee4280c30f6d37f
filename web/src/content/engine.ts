import {
  codeToTokensBase,
  createShikiPrimitive,
  type GrammarState,
  getLastGrammarState,
  type RegexEngine,
  type ThemeRegistration,
} from "shiki/core";
import { createJavaScriptRegexEngine, defaultJavaScriptRegexConstructor } from "shiki/engine/javascript";
import { type Grammar, loadGrammar } from "./languages";

// The part of the colouring that is only loaded when there is something to colour.

export interface Token {
  text: string;
  /** The name of the class, without `tok-`; nothing for plain text. */
  kind: string;
}
export type TokenLine = Token[];

/** Later entries win over earlier ones that are as exact. */
const scopes: Record<string, string[]> = {
  comment: ["comment", "punctuation.definition.comment", "string.quoted.docstring"],
  string: [
    "string",
    "punctuation.definition.string",
    "markup.inline.raw",
    "markup.fenced_code",
    "string.unquoted.plain.out.yaml",
  ],
  expression: ["string.regexp", "constant.character.escape", "constant.other.placeholder"],
  constant: [
    "constant",
    "support.constant",
    "support.type",
    "support.class",
    "entity.name.type",
    "entity.name.class",
    "entity.name.namespace",
    "entity.other.inherited-class",
    "entity.other.attribute-name",
    "support.type.property-name",
    "punctuation.support.type.property-name",
    "variable.other.constant.property",
    "storage.type.primitive",
    "keyword.other.unit",
    "entity.name.tag.yaml",
    "meta.object-literal.key",
  ],
  keyword: [
    "keyword",
    "storage",
    "variable.language",
    "entity.name.tag",
    "punctuation.definition.directive",
    "keyword.operator.new",
    "keyword.operator.expression",
    "keyword.operator.word",
    "keyword.operator.logical.python",
    "markup.heading",
    "entity.name.section",
  ],
  parameter: ["variable.parameter"],
  function: [
    "entity.name.function",
    "support.function",
    "variable.function",
    "entity.name.command",
    "meta.function-call.generic",
    "entity.name.decorator",
    "punctuation.decorator",
  ],
  punctuation: [
    "punctuation",
    "meta.brace",
    "keyword.operator",
    "punctuation.definition.tag",
    "punctuation.definition.template-expression",
    "punctuation.section.embedded",
  ],
  text: ["meta.template.expression", "source.embedded", "variable.other"],
  link: ["markup.underline.link", "string.other.link"],
  inserted: ["markup.inserted", "punctuation.definition.inserted"],
  deleted: ["markup.deleted", "punctuation.definition.deleted"],
};

// A theme can only give colours: these stand for the classes.
const kinds = Object.keys(scopes);
const colourOf = (n: number) => `#0000${(n + 16).toString(16)}`;
const kindOf = new Map(kinds.map((kind, n) => [colourOf(n), kind === "text" ? "" : kind]));

const theme: ThemeRegistration = {
  name: "narrows",
  type: "light",
  fg: "#000000",
  bg: "#ffffff",
  settings: [
    { settings: { foreground: "#000000", background: "#ffffff" } },
    ...kinds.map((kind, n) => ({ scope: scopes[kind], settings: { foreground: colourOf(n) } })),
  ],
};

/** Thrown when the time is over before the patterns of a line are ready; the same call later goes on. */
export class Pause extends Error {}

/** Patterns as the browser has them. Making them ready takes most of the time of a language's first lines. */
const patterns = new Map<string, RegExp | Error>();
const maxPatterns = 20_000;
let until = 0;
let made = 0;

function make(pattern: string): void {
  // One at least each time, or it would never end.
  if (made > 0 && performance.now() > until) throw new Pause();
  made++;
  if (patterns.size > maxPatterns) patterns.clear();
  try {
    patterns.set(pattern, defaultJavaScriptRegexConstructor(pattern));
  } catch (error) {
    patterns.set(pattern, error as Error);
  }
}

const javascript = createJavaScriptRegexEngine({ forgiving: true, cache: patterns });

/** The engine of shiki, but with an end to the time it takes at once. */
const paced: RegexEngine = {
  createScanner(wanted) {
    for (const pattern of wanted) if (typeof pattern === "string" && !patterns.has(pattern)) make(pattern);
    return javascript.createScanner(wanted);
  },
  createString: javascript.createString,
};

const shiki = createShikiPrimitive({ themes: [theme], langs: [], engine: paced });

const loaded = new Map<string, string>();

/** Makes a language ready; its name as the grammar has it. */
export async function ready(language: string): Promise<string> {
  const had = loaded.get(language);
  if (had) return had;
  const grammar: Grammar = await loadGrammar(language);
  shiki.loadLanguageSync(grammar.default);
  const name = grammar.default.at(-1)!.name;
  loaded.set(language, name);
  return name;
}

export type State = GrammarState;

export interface Tokenised {
  lines: TokenLine[];
  state?: State;
}

/** Some lines, going on after the lines whose state is given. Throws `Pause` when it is not done in time. */
export function tokenise(
  text: string,
  lang: string,
  state?: State,
  end = Number.POSITIVE_INFINITY,
): Tokenised {
  until = end;
  made = 0;
  const tokens = codeToTokensBase(shiki, text, {
    lang,
    theme: theme.name,
    grammarState: state,
    tokenizeMaxLineLength: 2000,
    tokenizeTimeLimit: 500,
  });
  const lines = tokens.map((line) => {
    const merged: TokenLine = [];
    for (const token of line) {
      const kind = kindOf.get(token.color?.toLowerCase() ?? "") ?? "";
      const last = merged.at(-1);
      // Space takes the colour of what is before it: fewer elements.
      if (last && (last.kind === kind || token.content.trim() === "")) last.text += token.content;
      else merged.push({ text: token.content, kind });
    }
    return merged;
  });
  return { lines, state: getLastGrammarState(shiki, tokens) };
}
