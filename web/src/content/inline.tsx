import type { Token, Tokens } from "marked";
import { Fragment, type ReactNode } from "react";
import { decodeEntities } from "./entities";
import { maxDepth } from "./lexer";
import { readAddress, SafeLink } from "./link";
import styles from "./markdown.module.css";
import { visible, visibleProse } from "./visible";

/** Prose as it is shown. */
function prose(text: string): string {
  return visibleProse(decodeEntities(text));
}

/** What tokens say without their marks. */
function letters(tokens: readonly Token[], depth = 0): string {
  const one = (token: Token) => {
    if ("tokens" in token && token.tokens && depth < maxDepth) return letters(token.tokens, depth + 1);
    return "text" in token ? String(token.text) : token.raw;
  };
  return tokens.map(one).join("");
}

/** A picture from elsewhere is not loaded: that would tell its host who reads what. */
function picture(token: Tokens.Image): ReactNode {
  const href = decodeEntities(token.href);
  const words = prose(letters(token.tokens)).trim();
  // A picture whose address is still being written.
  const unfinished = href.startsWith("streamdown:");
  if (unfinished || !readAddress(href).safe) return <span>image{words && `: ${words}`}</span>;
  return <SafeLink href={href}>{words ? `image: ${words}` : "image"}</SafeLink>;
}

function one(token: Token, depth: number): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens, depth + 1)}</strong>;
    case "em":
      return <em>{inline(token.tokens, depth + 1)}</em>;
    case "del":
      return <del>{inline(token.tokens, depth + 1)}</del>;
    case "codespan":
      return <code className={styles.inlineCode}>{visible(token.text)}</code>;
    case "br":
      return <br />;
    case "link": {
      // The text and the address of what was not marked as a link are taken as they stand.
      if (token.autolink) return <SafeLink href={token.href}>{visible(token.text)}</SafeLink>;
      return <SafeLink href={decodeEntities(token.href)}>{inline(token.tokens, depth + 1)}</SafeLink>;
    }
    case "image":
      return picture(token as Tokens.Image);
    case "escape":
      return visibleProse(token.text);
    case "checkbox":
      return token.checked ? "[x] " : "[ ] ";
    case "html":
      return visibleProse(token.raw);
    default:
      if (token.type === "text" && token.tokens) return inline(token.tokens, depth + 1);
      return prose("text" in token ? String(token.text) : token.raw);
  }
}

/** Tokens within a line of text. */
export function inline(tokens: readonly Token[] | undefined, depth = 0): ReactNode {
  if (!tokens) return null;
  if (depth > maxDepth) return tokens.map((token) => token.raw).join("");
  return tokens.map((token, n) => <Fragment key={n}>{one(token, depth)}</Fragment>);
}
