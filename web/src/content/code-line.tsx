import { memo } from "react";
import styles from "./code.module.css";
import { spaced } from "./fold";
import type { TokenLine } from "./highlight";
import { visible } from "./visible";

export interface CodeLineProps {
  text: string;
  tokens?: TokenLine;
  /** How many characters of it are not shown. */
  left?: number;
  number?: number;
}

/** A line of code. Its number is not part of the text, so that it is not copied. */
export const CodeLine = memo(
  function CodeLine({ text, tokens, left = 0, number }: CodeLineProps) {
    return (
      <span className={styles.line} data-n={number}>
        {tokens && left === 0
          ? tokens.map((token, n) =>
              token.kind ? (
                <span key={n} className={`tok-${token.kind}`}>
                  {visible(token.text)}
                </span>
              ) : (
                visible(token.text)
              ),
            )
          : visible(text)}
        {left > 0 && <span className={styles.left}> … {spaced(left)} more characters</span>}
        {"\n"}
      </span>
    );
  },
  (was, is) =>
    was.text === is.text &&
    was.left === is.left &&
    was.number === is.number &&
    (was.tokens === is.tokens ||
      (was.tokens !== undefined && is.tokens !== undefined && same(was.tokens, is.tokens))),
);

function same(a: TokenLine, b: TokenLine): boolean {
  return (
    a.length === b.length && a.every((token, n) => token.kind === b[n]!.kind && token.text === b[n]!.text)
  );
}
