import { memo, useMemo, useState } from "react";
import { TopBlock } from "./block";
import { BlockReader, readWhole } from "./blocks";
import styles from "./markdown.module.css";
import { visibleProse } from "./visible";

export interface MarkdownProps {
  text: string;
  /** The text is still being written. */
  streaming?: boolean;
  /** Where it is kept which code blocks are open; without it they forget when they leave the page. */
  openKey?: string;
}

/** What an agent wrote, as GitHub would show it, made of elements only. */
export const Markdown = memo(function Markdown({ text, streaming = false, openKey }: MarkdownProps) {
  const [reader] = useState(() => new BlockReader());
  const read = useMemo(() => (streaming ? reader.read(text) : readWhole(text)), [reader, text, streaming]);
  const className = streaming ? `${styles.markdown} ${styles.streaming}` : styles.markdown;
  return (
    <div className={className}>
      {read.tokens
        ? read.tokens.map((token, n) => (
            <TopBlock key={n} token={token} links={read.links} openKey={openKey && `${openKey}/${n}`} />
          ))
        : pieces(read.text).map((piece, n) => <Piece key={n} text={piece} />)}
    </div>
  );
});

const pieceLength = 16_000;

/** A text that is too much to be read, in pieces that the browser can leave out while they are not seen. */
function pieces(text: string): string[] {
  const found: string[] = [];
  let at = 0;
  while (at < text.length) {
    let end = Math.min(text.length, at + pieceLength);
    if (end < text.length) {
      const newline = text.lastIndexOf("\n", end);
      if (newline > at) end = newline + 1;
      else if (isHigh(text.charCodeAt(end - 1))) end++;
    }
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}

const Piece = memo(function Piece({ text }: { text: string }) {
  return <div className={styles.piece}>{visibleProse(text.replace(/\n$/, ""))}</div>;
});
