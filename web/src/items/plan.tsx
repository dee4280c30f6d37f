import { Map as MapIcon } from "lucide-react";
import type { PlanItem } from "../api/types";
import styles from "./ask.module.css";
import { WholeMarkdown } from "./whole-markdown";

/** What the agent wants to do. */
export function Plan({ item }: { item: PlanItem }) {
  return (
    <section className={styles.plan} aria-label="Plan">
      <p className={styles.title}>
        <MapIcon size={15} strokeWidth={1.75} aria-hidden="true" /> Plan
      </p>
      {item.content.trim() ? <WholeMarkdown item={item} /> : <p>An empty plan</p>}
    </section>
  );
}
