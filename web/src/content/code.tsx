import { WrapText } from "lucide-react";
import { memo, useMemo } from "react";
import block from "./block.module.css";
import styles from "./code.module.css";
import { CodeLine } from "./code-line";
import { CopyButton } from "./copy";
import { FoldLess, FoldMore, useFold, useToggle } from "./fold";
import { useTokens } from "./highlight";
import { languageOf } from "./languages";
import { cutLine, hasLongLine, linesOf, unixLines } from "./lines";
import { visible } from "./visible";

export interface CodeProps {
  text: string;
  /** As written at a fence: "ts", "rust ignore". */
  lang?: string;
  /** The file it is from; says the language if nothing else does. */
  path?: string;
  /** The number of the first line. */
  start?: number;
  numbers?: boolean;
  title?: string;
  /** Shows the first and last lines of a long text. Without it, only of a very long one. */
  collapse?: boolean;
  /** Where open and closed is kept. */
  openKey?: string;
}

/** Code with its colours. */
export const Code = memo(function Code(props: CodeProps) {
  const { lang, path, start = 1, numbers = false, title, collapse = false, openKey } = props;
  const language = languageOf(lang, path);
  const text = useMemo(() => unixLines(props.text), [props.text]);
  const tokens = useTokens(text, language);
  const lines = useMemo(() => linesOf(text), [text]);
  const cut = useMemo(() => hasLongLine(lines), [lines]);
  const [wrap, setWrap] = useToggle(openKey && `${openKey}/wrap`);
  const limits = collapse ? { over: 40, head: 20, tail: 8 } : { over: 400, head: 200, tail: 20 };
  const fold = useFold({ total: lines.length, ...limits, openKey, cut });
  const digits = numbers ? String(start + lines.length - 1).length : 0;
  const line = (n: number) => {
    const { text: shown, left } = cutLine(lines[n]!, fold.opened);
    return (
      <CodeLine
        key={n}
        text={shown}
        left={left}
        tokens={tokens?.[n]}
        number={numbers ? start + n : undefined}
      />
    );
  };
  const name = title ?? path ?? lang?.trim().split(/\s/, 1)[0] ?? "";
  return (
    <figure className={`${block.block} ${styles.code}`} aria-label={name ? `Code: ${visible(name)}` : "Code"}>
      <div className={block.bar}>
        <span className={path && !title ? `${block.title} ${block.path}` : block.title}>{visible(name)}</span>
        <button
          type="button"
          className={block.tool}
          aria-pressed={wrap}
          aria-label="Wrap lines"
          title="Wrap lines"
          onClick={() => setWrap(!wrap)}
        >
          <WrapText size={14} aria-hidden />
        </button>
        <CopyButton text={props.text} label="Copy code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it */}
      <pre className={wrap ? `${styles.pre} ${styles.wrap}` : styles.pre} tabIndex={0} data-digits={digits}>
        <code className={styles.lines}>{range(0, fold.head).map(line)}</code>
        <FoldMore fold={fold} total={lines.length} unit="line" />
        {fold.from < lines.length && (
          <code className={styles.lines}>{range(fold.from, lines.length).map(line)}</code>
        )}
        <FoldLess fold={fold} />
      </pre>
    </figure>
  );
});

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, n) => from + n);
}
