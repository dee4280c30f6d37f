import { ChevronRight } from "lucide-react";
import { type CSSProperties, memo, useId, useRef } from "react";
import { flushSync } from "react-dom";
import type { ToolCallItem } from "../api/types";
import { useOpen, useSession } from "../state/context";
import { Badges } from "./badges";
import { ToolBody } from "./body";
import { formatDuration, iconOf, statusOf, verbOf } from "./labels";
import { MiddleText, oneLine } from "./middle-text";
import { objectOf } from "./object";
import { StatusGlyph } from "./status";
import { errorLine, runningLines } from "./tail";
import styles from "./tool-card.module.css";

export interface ToolCardProps {
  item: ToolCallItem;
  depth?: number;
}

/** A call: one line until it is opened. */
export const ToolCard = memo(function ToolCard({ item, depth = 0 }: ToolCardProps) {
  const { running } = useSession();
  const [open, setOpen] = useOpen(item.id);
  const card = useRef<HTMLElement>(null);
  const body = useId();
  const call = item.toolCall;
  const status = statusOf(call.status, running);
  const toggle = () => {
    flushSync(() => setOpen(!open));
    // Closed from deep in its body, the header would be left above the window.
    if (open) card.current?.scrollIntoView?.({ block: "nearest" });
  };
  return (
    <section ref={card} className={styles.card} data-open={open} data-status={status}>
      <button
        type="button"
        className={styles.header}
        style={{ "--depth": Math.min(depth, 8) } as CSSProperties}
        aria-expanded={open}
        aria-controls={open ? body : undefined}
        onClick={toggle}
      >
        <Line item={item} />
        <StatusGlyph status={status} />
      </button>
      {open ? (
        <div id={body} className={styles.body}>
          <ToolBody item={item} depth={depth} />
        </div>
      ) : (
        <Glimpse item={item} status={status} />
      )}
    </section>
  );
});

function Line({ item }: { item: ToolCallItem }) {
  const call = item.toolCall;
  const Icon = iconOf(call);
  const object = objectOf(call);
  return (
    <>
      <ChevronRight className={styles.chevron} size={14} aria-hidden="true" />
      <Icon className={styles.icon} size={15} strokeWidth={1.75} aria-hidden="true" />
      <span className={styles.verb}>{oneLine(verbOf(call))}</span>
      <span className={styles.object}>
        {object.text && <MiddleText text={object.text} path={object.path} mono={object.mono} />}
        {object.aside && <span className={styles.aside}>{oneLine(object.aside)}</span>}
      </span>
      <Badges item={item} />
      {call.durationMs !== undefined && (
        <span className={styles.duration}>{formatDuration(call.durationMs)}</span>
      )}
    </>
  );
}

/** What shows below the line of a closed card: why it failed, or what a command says right now. */
function Glimpse({ item, status }: { item: ToolCallItem; status: string }) {
  if (status === "failed") {
    const line = errorLine(item.toolCall);
    return line ? <p className={styles.trouble}>{oneLine(line)}</p> : null;
  }
  if (status !== "running" && status !== "waiting") return null;
  const lines = runningLines(item);
  return lines ? <pre className={styles.tail}>{lines}</pre> : null;
}
