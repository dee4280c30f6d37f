import type { Token, Tokens } from "marked";
import { type BlockContext, blocks } from "./block";
import styles from "./markdown.module.css";

/** The item without its box, which is drawn before it whether the item is a paragraph or not. */
function withoutBox(tokens: readonly Token[]): Token[] {
  const [first, ...rest] = tokens;
  if (!first) return [];
  if (first.type === "checkbox") return rest;
  const inner = "tokens" in first ? first.tokens : undefined;
  if (inner?.[0]?.type !== "checkbox") return [...tokens];
  return [{ ...first, tokens: inner.slice(1) } as Token, ...rest];
}

function Item({ item, context }: { item: Tokens.ListItem; context: BlockContext }) {
  if (!item.task) return <li dir="auto">{blocks(item.tokens, context)}</li>;
  const label = item.text.replace(/^\[[ xX]\] +/, "").split("\n", 1)[0];
  return (
    <li dir="auto" className={styles.task}>
      <input type="checkbox" disabled readOnly checked={item.checked === true} aria-label={label} />
      {blocks(withoutBox(item.tokens), context)}
    </li>
  );
}

export function List({ token, context }: { token: Tokens.List; context: BlockContext }) {
  const items = token.items.map((item, n) => (
    <Item
      key={n}
      item={item}
      context={{ depth: context.depth + 1, openKey: context.openKey && `${context.openKey}.${n}` }}
    />
  ));
  const className = token.loose ? `${styles.list} ${styles.loose}` : styles.list;
  if (!token.ordered) return <ul className={className}>{items}</ul>;
  return (
    <ol className={className} start={token.start === "" || token.start === 1 ? undefined : token.start}>
      {items}
    </ol>
  );
}
