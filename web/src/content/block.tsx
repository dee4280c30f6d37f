import type { Token, Tokens } from "marked";
import { Fragment, memo, type ReactNode } from "react";
import { Code } from "./code";
import { inline } from "./inline";
import { maxDepth } from "./lexer";
import { List } from "./list";
import styles from "./markdown.module.css";
import { Quote } from "./quote";
import { visibleProse } from "./visible";

export interface BlockContext {
  depth: number;
  /** Where the open states of code blocks are kept. */
  openKey?: string;
}

// The outline of the page belongs to the page: what an agent writes begins below it.
const headings = ["h3", "h3", "h4", "h5", "h6", "h6", "h6"] as const;

function heading(token: Tokens.Heading): ReactNode {
  const Name = headings[token.depth] ?? "h6";
  return (
    <Name className={styles.heading} data-depth={token.depth}>
      {inline(token.tokens)}
    </Name>
  );
}

const sides = { left: styles.left, center: styles.center, right: styles.right };

function table(token: Tokens.Table): ReactNode {
  const cell = (Name: "th" | "td", of: Tokens.TableCell, n: number) => (
    <Name key={n} className={of.align ? sides[of.align] : undefined}>
      {inline(of.tokens)}
    </Name>
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
    <section className={styles.tableBox} aria-label="Table" tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>{token.header.map((of, n) => cell("th", of, n))}</tr>
        </thead>
        {token.rows.length > 0 && (
          <tbody>
            {token.rows.map((row, n) => (
              <tr key={n}>{row.map((of, m) => cell("td", of, m))}</tr>
            ))}
          </tbody>
        )}
      </table>
    </section>
  );
}

export function block(token: Token, context: BlockContext): ReactNode {
  if (context.depth > maxDepth) return <p className={styles.raw}>{visibleProse(token.raw)}</p>;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token as Tokens.Heading);
    case "paragraph":
      return (
        <p dir="auto" className={styles.paragraph}>
          {inline(token.tokens)}
        </p>
      );
    case "code":
      return (
        <div className={styles.code}>
          <Code text={token.text} lang={token.lang} openKey={context.openKey} />
        </div>
      );
    case "hr":
      return <hr className={styles.rule} />;
    case "list":
      return <List token={token as Tokens.List} context={context} />;
    case "blockquote":
      return <Quote token={token as Tokens.Blockquote} context={context} />;
    case "table":
      return table(token as Tokens.Table);
    case "html":
      return <p className={styles.raw}>{visibleProse(token.raw.replace(/\n+$/, ""))}</p>;
    case "text":
      return inline(token.tokens ?? [token]);
    default:
      return <p className={styles.raw}>{visibleProse(token.raw)}</p>;
  }
}

export function blocks(tokens: readonly Token[], context: BlockContext): ReactNode {
  return tokens.map((token, n) => (
    <Fragment key={n}>
      {block(token, { depth: context.depth, openKey: context.openKey && `${context.openKey}.${n}` })}
    </Fragment>
  ));
}

interface TopBlockProps {
  token: Token;
  openKey?: string;
  /** What references resolve to. */
  links: string;
}

/** A block of a message: drawn again only when its own text changes. */
export const TopBlock = memo(
  function TopBlock({ token, openKey }: TopBlockProps) {
    // Text of its own is a paragraph at the top.
    if (token.type === "text")
      return <p className={styles.paragraph}>{block(token, { depth: 0, openKey })}</p>;
    return block(token, { depth: 0, openKey });
  },
  (was, is) =>
    was.token.raw === is.token.raw &&
    was.token.type === is.token.type &&
    was.links === is.links &&
    was.openKey === is.openKey,
);
