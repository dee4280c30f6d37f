import { ChevronRight } from "lucide-react";
import { memo, type ReactNode, useMemo } from "react";
import type { Diff } from "../api/types";
import block from "./block.module.css";
import { CopyButton } from "./copy";
import styles from "./diff.module.css";
import { countDiff, type FileDiff, readDiff } from "./diff-lines";
import { SplitRows, splitRows, UnifiedRows } from "./diff-rows";
import type { DiffStyle } from "./diff-style";
import { wordMarks } from "./diff-words";
import { FoldLess, FoldMore, useFold, useToggle } from "./fold";
import { useTokens } from "./highlight";
import { languageOf } from "./languages";
import { visible } from "./visible";

const actions = { add: "New file", delete: "Deleted", move: "Moved", update: "" };

/** A path whose last part stays readable. */
export function Path({ path }: { path: string }) {
  const shown = visible(path) || "A file without a name";
  const at = shown.lastIndexOf("/") + 1;
  return (
    <span className={styles.path} title={shown}>
      {at > 0 && <span className={styles.folder}>{shown.slice(0, at)}</span>}
      <span className={styles.file}>{shown.slice(at)}</span>
    </span>
  );
}

export function Counts({ diffs }: { diffs: readonly Diff[] }) {
  const all = diffs.map(countDiff);
  const additions = all.reduce((sum, count) => sum + count.additions, 0);
  const deletions = all.reduce((sum, count) => sum + count.deletions, 0);
  // Nothing, or nobody knows what: a file that was moved or left as it was.
  if (additions + deletions === 0) return null;
  return (
    <span className={styles.counts}>
      {additions > 0 && <span className={styles.added}>+{additions}</span>}{" "}
      {deletions > 0 && <span className={styles.removed}>−{deletions}</span>}
      <span className="hidden-visually">
        {additions} added, {deletions} removed
      </span>
    </span>
  );
}

/** What is put on the clipboard: the new text, or the changed lines with their signs. */
function copyText(diff: Diff): string {
  if (diff.patch) return diff.patch;
  if (diff.newText !== null && diff.oldText === null) return diff.newText;
  const signs = { same: " ", add: "+", del: "-" };
  const rows = readDiff(diff).rows.map((row) => (row.kind === "gap" ? "@@" : signs[row.kind] + row.text));
  return `${rows.join("\n")}\n`;
}

export interface DiffFileProps {
  diff: Diff;
  style: DiffStyle;
  openKey?: string;
  initial: boolean;
  /** What else belongs into its bar. */
  tools?: ReactNode;
}

export const DiffFile = memo(function DiffFile({ diff, style, openKey, initial, tools }: DiffFileProps) {
  const [open, setOpen] = useToggle(openKey && `${openKey}/open`, initial);
  const { movedFrom } = readDiff(diff);
  const word = movedFrom ? `Moved from ${visible(movedFrom)}` : diff.action ? actions[diff.action] : "";
  return (
    <section className={`${block.block} ${styles.one}`} aria-label={visible(diff.path)}>
      <div className={`${block.bar} ${styles.bar}`}>
        <button type="button" className={styles.toggle} aria-expanded={open} onClick={() => setOpen(!open)}>
          <ChevronRight size={14} aria-hidden className={open ? styles.down : styles.right} />
          <Path path={diff.path} />
          {word && <span className={styles.word}>{word}</span>}
          <Counts diffs={[diff]} />
        </button>
        {tools}
        <CopyButton text={() => copyText(diff)} label="Copy change" />
      </div>
      {open && <Body diff={diff} file={readDiff(diff)} style={style} openKey={openKey} />}
    </section>
  );
});

/** Both sides as wide, whatever the first row looks like. */
function Columns({ numbered }: { numbered: boolean }) {
  const half = (
    <>
      {numbered && <col className={styles.numberColumn} />}
      <col className={styles.signColumn} />
      <col />
    </>
  );
  return (
    <colgroup>
      {half}
      {half}
    </colgroup>
  );
}

interface BodyProps {
  diff: Diff;
  file: FileDiff;
  style: DiffStyle;
  openKey?: string;
}

function Body({ diff, file, style, openKey }: BodyProps) {
  const language = languageOf(null, diff.path);
  const colours = { old: useTokens(file.oldText, language), new: useTokens(file.newText, language) };
  const marks = useMemo(() => wordMarks(file.rows), [file]);
  const numbered = useMemo(
    () => file.rows.some((row) => row.kind !== "gap" && (row.old !== undefined || row.new !== undefined)),
    [file],
  );
  const halves = useMemo(() => (style === "split" ? splitRows(file.rows) : null), [file, style]);
  const total = halves ? halves.length : file.rows.length;
  const fold = useFold({ total, over: 240, head: 200, tail: 0, openKey });
  const shared = { colours, marks, numbered };
  return (
    <>
      {file.remarks.map((remark) => (
        <p key={remark} className={styles.remark}>
          {remark}
        </p>
      ))}
      {total > 0 && (
        <table
          className={halves ? `${styles.table} ${styles.split}` : styles.table}
          aria-label="Changed lines"
        >
          {halves && <Columns numbered={numbered} />}
          <tbody>
            {halves ? (
              <SplitRows rows={halves.slice(0, fold.head)} {...shared} />
            ) : (
              <UnifiedRows rows={file.rows.slice(0, fold.head)} {...shared} />
            )}
          </tbody>
        </table>
      )}
      <FoldMore fold={fold} total={total} unit="line" />
      <FoldLess fold={fold} />
    </>
  );
}
