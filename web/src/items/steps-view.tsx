import { ChevronRight } from "lucide-react";
import { memo, useMemo, useRef, useSyncExternalStore } from "react";
import type { Item } from "../api/types";
import { useSession } from "../state/context";
import { ItemView } from "./item";
import { formatDuration, isCounted, kindWords, plural } from "./labels";
import { type Row, rowsOf, type StepsRow, sumOf } from "./steps";
import styles from "./steps.module.css";

/** The rows of items, kept up when a run is opened or folded. The same rows are the same list. */
export function useRows(items: readonly Item[], running: boolean): readonly Row[] {
  const { open } = useSession();
  const last = useRef<Row[]>([]);
  return useSyncExternalStore(open.subscribe, () => {
    const rows = rowsOf(items, running, (key) => open.get(key));
    const same = rows.length === last.current.length && rows.every((row, at) => row === last.current[at]);
    if (!same) last.current = rows;
    return last.current;
  });
}

export interface StepsHeaderProps {
  row: StepsRow;
  depth?: number;
}

/** A run of calls in one line; below it, while it is folded, what should be seen all the same. */
export const StepsHeader = memo(function StepsHeader({ row, depth = 0 }: StepsHeaderProps) {
  const { open } = useSession();
  const sum = useMemo(() => sumOf(row.items), [row.items]);
  // The rows were made with it: an open run has nothing to show by itself.
  const unfolded = useSyncExternalStore(open.subscribe, () => isUnfolded(row, open.get(row.key)));
  const kinds = sum.kinds.filter(([kind]) => isCounted(kind));
  return (
    <div className={styles.steps}>
      <button
        type="button"
        className={styles.header}
        aria-expanded={unfolded}
        onClick={() => open.set(row.key, !unfolded)}
      >
        <ChevronRight className={styles.chevron} size={14} aria-hidden="true" />
        <span className={styles.words}>
          <span className={styles.count}>{plural(sum.calls, "step")}</span>
          {kinds.map(([kind, count]) => (
            <span key={kind}>{kindWords(kind, count)}</span>
          ))}
          {sum.failed > 0 && <span className={styles.failed}>{sum.failed} failed</span>}
          {sum.cancelled > 0 && <span>{sum.cancelled} cancelled</span>}
          {sum.durationMs !== undefined && <span>{formatDuration(sum.durationMs)}</span>}
        </span>
      </button>
      {!unfolded && row.shown.length > 0 && (
        <div className={styles.shown}>
          {row.shown.map((item) => (
            <ItemView key={item.id} item={item} depth={depth} />
          ))}
        </div>
      )}
    </div>
  );
});

/** What was said of the run, or of it when it had another first call: then it came without shown ones. */
function isUnfolded(row: StepsRow, said: boolean | undefined): boolean {
  return said ?? row.open;
}

export interface RowViewProps {
  row: Row;
  depth?: number;
}

export const RowView = memo(function RowView({ row, depth = 0 }: RowViewProps) {
  return row.kind === "item" ? (
    <ItemView item={row.item} depth={depth} />
  ) : (
    <StepsHeader row={row} depth={depth} />
  );
});
