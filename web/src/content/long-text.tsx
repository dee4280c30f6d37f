import { memo, useMemo } from "react";
import { FoldLess, FoldMore, spaced, useFold } from "./fold";
import { cutLine, hasLongLine, linesOf } from "./lines";
import styles from "./long-text.module.css";
import { visibleProse } from "./visible";

export interface LongTextProps {
  text: string;
  openKey?: string;
}

/** Plain text, its first and last lines if it is long. */
export const LongText = memo(function LongText({ text, openKey }: LongTextProps) {
  const lines = useMemo(() => linesOf(text), [text]);
  const cut = useMemo(() => hasLongLine(lines), [lines]);
  const fold = useFold({ total: lines.length, over: 40, head: 20, tail: 8, openKey, cut });
  return (
    <div className={styles.box}>
      <Lines lines={lines} from={0} to={fold.head} opened={fold.opened} />
      <FoldMore fold={fold} total={lines.length} unit="line" />
      <Lines lines={lines} from={fold.from} to={lines.length} opened={fold.opened} />
      <FoldLess fold={fold} />
    </div>
  );
});

interface LinesProps {
  lines: readonly string[];
  from: number;
  to: number;
  opened: boolean;
}

function Lines({ lines, from, to, opened }: LinesProps) {
  if (to <= from) return null;
  const shown = lines.slice(from, to).map((line) => {
    const { text, left } = cutLine(line, opened);
    return left ? `${text} … ${spaced(left)} more characters` : text;
  });
  return (
    <div dir="auto" className={styles.text}>
      {visibleProse(shown.join("\n"))}
    </div>
  );
}
