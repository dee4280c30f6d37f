import { memo, type ReactNode, useState } from "react";
import styles from "./diff.module.css";
import type { DiffLine, DiffRow, Gap } from "./diff-lines";
import { type Marks, pieces, type Range } from "./diff-words";
import { countOf } from "./fold";
import type { TokenLine } from "./highlight";
import { cutLine } from "./lines";
import { visible } from "./visible";

export interface Colours {
  old: TokenLine[] | null;
  new: TokenLine[] | null;
}

export interface RowsProps {
  rows: readonly DiffRow[];
  colours: Colours;
  marks: Marks;
  /** Lines have numbers. */
  numbered: boolean;
}

const signs = { same: " ", add: "+", del: "−" };

/** The words of a line. */
const Words = memo(
  function Words({
    line,
    tokens,
    ranges,
  }: {
    line: DiffLine;
    tokens?: TokenLine;
    ranges?: readonly Range[];
  }) {
    const { text, left } = cutLine(line.text, false);
    return (
      <>
        {pieces(text, left ? undefined : tokens, ranges).map((piece, n) => {
          const name = piece.kind ? `tok-${piece.kind}` : undefined;
          if (piece.marked) {
            return (
              <mark key={n} className={name ? `${styles.mark} ${name}` : styles.mark}>
                {visible(piece.text)}
              </mark>
            );
          }
          return name ? (
            <span key={n} className={name}>
              {visible(piece.text)}
            </span>
          ) : (
            visible(piece.text)
          );
        })}
        {left > 0 && <span className={styles.aside}> … {countOf(left, "more character")}</span>}
        {line.bare && <span className={styles.aside}> no newline at the end</span>}
      </>
    );
  },
  (was, is) => was.line === is.line && was.tokens === is.tokens && was.ranges === is.ranges,
);

function tokensOf(line: DiffLine, colours: Colours): TokenLine | undefined {
  if (line.newAt !== undefined) return colours.new?.[line.newAt];
  return line.oldAt === undefined ? undefined : colours.old?.[line.oldAt];
}

/** The gap, and after a click the lines of it. */
function GapRow({
  gap,
  columns,
  children,
}: {
  gap: Gap;
  columns: number;
  children(lines: DiffLine[]): ReactNode;
}) {
  const [lines, setLines] = useState<DiffLine[]>();
  if (lines) return children(lines);
  const words = gap.count ? countOf(gap.count, "unchanged line") : "…";
  return (
    <tr className={styles.gap}>
      <td colSpan={columns}>
        {gap.open ? (
          <button type="button" aria-expanded={false} onClick={() => setLines(gap.open?.())}>
            {words}
          </button>
        ) : (
          <span>{words}</span>
        )}
        {gap.heading && <code>{visible(gap.heading)}</code>}
      </td>
    </tr>
  );
}

function UnifiedLine({ line, colours, marks, numbered }: { line: DiffLine } & Omit<RowsProps, "rows">) {
  return (
    <tr className={styles[line.kind]}>
      {numbered && <td className={styles.number} data-n={line.old} />}
      {numbered && <td className={styles.number} data-n={line.new} />}
      <td className={styles.sign}>{signs[line.kind]}</td>
      <td className={styles.text}>
        <Words line={line} tokens={tokensOf(line, colours)} ranges={marks.get(line)} />
      </td>
    </tr>
  );
}

export function UnifiedRows({ rows, ...rest }: RowsProps) {
  return rows.map((row, n) =>
    row.kind === "gap" ? (
      <GapRow key={n} gap={row} columns={rest.numbered ? 4 : 2}>
        {(lines) => lines.map((line, m) => <UnifiedLine key={m} line={line} {...rest} />)}
      </GapRow>
    ) : (
      <UnifiedLine key={n} line={row} {...rest} />
    ),
  );
}

export type SplitRow = Gap | { kind: "pair"; left?: DiffLine; right?: DiffLine };

/** Removed lines beside those that came in their place. */
export function splitRows(rows: readonly DiffRow[]): SplitRow[] {
  const found: SplitRow[] = [];
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const close = () => {
    for (let n = 0; n < Math.max(removed.length, added.length); n++) {
      found.push({ kind: "pair", left: removed[n], right: added[n] });
    }
    removed = [];
    added = [];
  };
  for (const row of rows) {
    if (row.kind === "del") {
      if (added.length > 0) close();
      removed.push(row);
    } else if (row.kind === "add") added.push(row);
    else {
      close();
      found.push(row.kind === "gap" ? row : { kind: "pair", left: row, right: row });
    }
  }
  close();
  return found;
}

function Half({ line, side, colours, marks, numbered }: HalfProps) {
  const name = line ? styles[line.kind] : styles.blank;
  const edge = side === "new" ? ` ${styles.new}` : "";
  const tokens =
    line &&
    (side === "old" && line.oldAt !== undefined ? colours.old?.[line.oldAt] : tokensOf(line, colours));
  return (
    <>
      {numbered && <td className={`${styles.number} ${name}${edge}`} data-n={line?.[side]} />}
      <td className={`${styles.sign} ${name}${numbered ? "" : edge}`}>{line && signs[line.kind]}</td>
      <td className={`${styles.text} ${name}`}>
        {line && <Words line={line} tokens={tokens} ranges={marks.get(line)} />}
      </td>
    </>
  );
}

interface HalfProps extends Omit<RowsProps, "rows"> {
  line?: DiffLine;
  side: "old" | "new";
}

export function SplitRows({ rows, ...rest }: Omit<RowsProps, "rows"> & { rows: readonly SplitRow[] }) {
  const pair = (key: number, left?: DiffLine, right?: DiffLine) => (
    <tr key={key}>
      <Half line={left} side="old" {...rest} />
      <Half line={right} side="new" {...rest} />
    </tr>
  );
  return rows.map((row, n) =>
    row.kind === "gap" ? (
      <GapRow key={n} gap={row} columns={rest.numbered ? 6 : 4}>
        {(lines) => lines.map((line, m) => pair(m, line, line))}
      </GapRow>
    ) : (
      pair(n, row.left, row.right)
    ),
  );
}
