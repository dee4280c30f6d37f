import { ChevronRight } from "lucide-react";
import type { CompactionItem } from "../api/types";
import { Markdown } from "../content/markdown";
import { useOpen, useWhole } from "../state/context";
import { LoadError } from "./body-parts";
import { formatTokens } from "./labels";
import { oneLine } from "./middle-text";
import styles from "./note.module.css";
import { Skeleton } from "./skeleton";

/** Where the agent forgot what was before, and what it kept of it. */
export function Compaction({ item }: { item: CompactionItem }) {
  const [open, setOpen] = useOpen(item.id);
  const whole = useWhole(item, open);
  const said = [
    "Context compacted",
    item.trigger && oneLine(item.trigger).slice(0, 40),
    item.tokensBefore !== undefined && `${formatTokens(item.tokensBefore)} tokens`,
  ];
  const line = said.filter(Boolean).join(" · ");
  if (!item.text.trim()) return <div className={styles.divider}>{line}</div>;
  return (
    <div>
      <div className={styles.divider}>
        <button type="button" className={styles.unfold} aria-expanded={open} onClick={() => setOpen(!open)}>
          <ChevronRight size={14} aria-hidden="true" />
          {line}
        </button>
      </div>
      {open && (
        <div className={styles.summary}>
          {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
          {whole.loading && whole.item.clipped ? <Skeleton /> : <Markdown text={whole.item.text} />}
        </div>
      )}
    </div>
  );
}
