import { ChevronRight } from "lucide-react";
import { useMemo } from "react";
import type { ThinkingItem } from "../api/types";
import { Markdown } from "../content/markdown";
import { useOpen, useWhole } from "../state/context";
import { LoadError } from "./body-parts";
import { plural } from "./labels";
import styles from "./message.module.css";
import { Skeleton } from "./skeleton";

/** A thought: open while it comes, a grey line when it is done. */
export function Thinking({ item }: { item: ThinkingItem }) {
  const [open, setOpen] = useOpen(item.id, item.isStreaming);
  const whole = useWhole(item, open);
  // Counted once, when it is done: the whole text would be read with every piece of it.
  const words = useMemo(() => (item.isStreaming ? "" : wordsOf(item)), [item]);
  if (item.hidden || (!item.isStreaming && !item.content.trim())) {
    return <p className={styles.unseen}>Thought, not shown by the agent</p>;
  }
  return (
    <div className={styles.thinking}>
      <button type="button" className={styles.thought} aria-expanded={open} onClick={() => setOpen(!open)}>
        <ChevronRight size={14} aria-hidden="true" />
        {item.isStreaming ? "Thinking…" : `Thought · ${words}`}
      </button>
      {open && item.content && (
        <div className={styles.thoughts}>
          {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
          {whole.loading && whole.item.clipped ? (
            <Skeleton />
          ) : (
            <Markdown text={whole.item.content} streaming={item.isStreaming} />
          )}
        </div>
      )}
    </div>
  );
}

function wordsOf(item: ThinkingItem): string {
  const words = item.content.match(/\S+/g)?.length ?? 0;
  const cut = item.clipped?.content;
  if (cut === undefined) return plural(words, "word");
  // The rest of the text is not here: it has as many words for its length.
  const all = Math.round((words * cut) / item.content.length / 10) * 10;
  return `about ${plural(all, "word")}`;
}
