import { Map as MapIcon } from "lucide-react";
import type { PlanItem } from "../api/types";
import { Markdown } from "../content/markdown";
import { useOpen, useWhole } from "../state/context";
import styles from "./ask.module.css";
import { LoadError } from "./body-parts";
import { plural } from "./labels";
import { MoreButton } from "./more-button";

/** What the agent wants to do. */
export function Plan({ item }: { item: PlanItem }) {
  const [open, setOpen] = useOpen(`${item.id}/all`);
  const whole = useWhole(item, open);
  const cut = item.clipped?.content;
  return (
    <section className={styles.plan} aria-label="Plan">
      <p className={styles.title}>
        <MapIcon size={15} strokeWidth={1.75} aria-hidden="true" /> Plan
      </p>
      {whole.item.content.trim() ? <Markdown text={whole.item.content} /> : <p>An empty plan</p>}
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
      {cut !== undefined && (
        <MoreButton
          open={open}
          label={`Show all (${plural(cut, "character")})`}
          onToggle={() => setOpen(!open)}
        />
      )}
    </section>
  );
}
