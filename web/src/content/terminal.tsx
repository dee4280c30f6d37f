import { WrapText } from "lucide-react";
import { memo, useMemo, useState } from "react";
import { ansiLine, plainText, type Style, styleKey } from "./ansi";
import { lookOf } from "./ansi-colours";
import { AnsiIndex } from "./ansi-index";
import block from "./block.module.css";
import { CopyButton } from "./copy";
import { FoldLess, FoldMore, spaced, useFold, useToggle } from "./fold";
import { cutLine, longLine } from "./lines";
import styles from "./terminal.module.css";
import { visible } from "./visible";

export interface TerminalProps {
  text: string;
  /** The program is running: its last lines are shown. */
  tail?: boolean;
  /** What stands above it: the command. */
  label?: string;
  openKey?: string;
}

/** What a program wrote. Dark by day and by night: its colours are made for that. */
export const Terminal = memo(function Terminal({ text, tail = false, label, openKey }: TerminalProps) {
  const [index] = useState(() => new AnsiIndex());
  const lines = useMemo(() => {
    index.read(text);
    return text === "" ? 0 : index.length;
  }, [index, text]);
  const [wrap, setWrap] = useToggle(openKey && `${openKey}/wrap`, true);
  const limits = tail ? { over: 12, head: 0, tail: 12 } : { over: 40, head: 12, tail: 20 };
  const shortLines = useMemo(() => !hasLong(text), [text]);
  const fold = useFold({ total: lines, ...limits, openKey, cut: !shortLines });
  const rows = (from: number, to: number) =>
    Array.from({ length: Math.max(0, to - from) }, (_, n) => {
      const { text: line, style } = index.line(from + n);
      return <Line key={from + n} text={line} style={style} opened={fold.opened} />;
    });
  return (
    <figure
      className={`${block.block} ${styles.terminal}`}
      aria-label={label ? `Output of ${label}` : "Output"}
    >
      <div className={label ? block.bar : `${block.bar} ${styles.tools}`}>
        {label && <span className={`${block.title} ${block.path}`}>{visible(label)}</span>}
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
        <CopyButton text={() => plainText(text)} label="Copy output" />
      </div>
      <pre
        className={[styles.pre, wrap && styles.wrap, !label && styles.bare].filter(Boolean).join(" ")}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
        tabIndex={0}
      >
        {lines === 0 && <span className={styles.none}>{tail ? "No output yet" : "No output"}</span>}
        <samp className={styles.lines}>{rows(0, fold.head)}</samp>
        <FoldMore fold={fold} total={lines} unit="line" />
        <samp className={styles.lines}>{rows(fold.from, lines)}</samp>
        <FoldLess fold={fold} />
      </pre>
    </figure>
  );
});

/** Whether some line is too long to be shown at once. */
function hasLong(text: string): boolean {
  let at = 0;
  while (text.length - at > longLine) {
    const next = text.lastIndexOf("\n", at + longLine);
    if (next < at) return true;
    at = next + 1;
  }
  return false;
}

interface LineProps {
  text: string;
  style: Style;
  opened: boolean;
}

const Line = memo(
  function Line({ text, style, opened }: LineProps) {
    let room = cutLine(text, opened).text.length;
    let left = 0;
    const spans = ansiLine(text, style).spans.map((span, n) => {
      const shown = span.text.slice(0, room);
      room -= shown.length;
      left += span.text.length - shown.length;
      if (!shown) return null;
      const look = lookOf(span.style);
      if (look.names.length === 0 && !look.style) return visible(shown);
      const names = look.names.map((name) => styles[name]).join(" ");
      return (
        <span key={n} className={names || undefined} style={look.style}>
          {visible(shown)}
        </span>
      );
    });
    return (
      <span className={styles.line}>
        {spans}
        {left > 0 && <span className={styles.left}> … {spaced(left)} more characters</span>}
        {"\n"}
      </span>
    );
  },
  (was, is) => was.text === is.text && was.opened === is.opened && styleKey(was.style) === styleKey(is.style),
);
