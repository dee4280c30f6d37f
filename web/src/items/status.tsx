import { Ban, Check, CircleDashed, CircleQuestionMark, LoaderCircle, type LucideIcon, X } from "lucide-react";
import { type StatusKey, statusWord } from "./labels";
import styles from "./status.module.css";

const GLYPHS: Record<StatusKey, LucideIcon> = {
  waiting: LoaderCircle,
  running: LoaderCircle,
  done: Check,
  failed: X,
  cancelled: Ban,
  unfinished: CircleDashed,
  unknown: CircleQuestionMark,
};

/** How far something is, as a glyph with words for those who do not see it. */
export function StatusGlyph({ status }: { status: StatusKey }) {
  const Glyph = GLYPHS[status];
  const word = statusWord(status);
  return (
    <span className={`${styles.glyph} ${styles[status]}`} title={word}>
      <Glyph size={14} strokeWidth={2.25} aria-hidden="true" />
      <span className="hidden-visually">{word}</span>
    </span>
  );
}
