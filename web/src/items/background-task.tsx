import { Hourglass } from "lucide-react";
import type { BackgroundTaskItem } from "../api/types";
import { Markdown } from "../content/markdown";
import { useSession } from "../state/context";
import { Fold } from "./body-parts";
import { statusOf } from "./labels";
import { MiddleText } from "./middle-text";
import { beginning, linked } from "./plain";
import styles from "./row.module.css";
import { StatusGlyph } from "./status";

/** Work that goes on beside the agent's own. */
export function BackgroundTask({ item }: { item: BackgroundTaskItem }) {
  const { running } = useSession();
  const { summary } = item;
  const short = summary !== undefined && !summary.includes("\n") && beginning(summary, 2) === undefined;
  return (
    <div>
      <div className={styles.row}>
        <Hourglass size={15} strokeWidth={1.75} aria-hidden="true" className={styles.icon} />
        <span className={styles.word}>In the background</span>
        <span className={styles.detail}>
          <MiddleText text={item.description || item.taskId} />
        </span>
        <StatusGlyph status={statusOf(item.status, running)} />
      </div>
      {summary && short && <p className={styles.below}>{linked(summary)}</p>}
      {summary && !short && (
        <div className={styles.below}>
          <Fold openKey={`${item.id}/summary`} label="What came of it">
            <Markdown text={summary} />
          </Fold>
        </div>
      )}
    </div>
  );
}
