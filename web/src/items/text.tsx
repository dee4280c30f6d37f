import type { TextItem } from "../api/types";
import { Images } from "../content/images";
import { Markdown } from "../content/markdown";
import { useOpen, useWhole } from "../state/context";
import { LoadError } from "./body-parts";
import { plural } from "./labels";
import styles from "./message.module.css";
import { MoreButton } from "./more-button";

/** Longer ones are shown whole when somebody asks. */
const LONGEST = 300_000;

/** What the agent said: whole, as it was while it streamed, though a page of items brings it cut. */
export function TextView({ item }: { item: TextItem }) {
  const cut = item.clipped?.content;
  const [open, setOpen] = useOpen(`${item.id}/all`, cut !== undefined && cut <= LONGEST);
  const whole = useWhole(item, open);
  return (
    <article className={styles.text}>
      {whole.item.content && <Markdown text={whole.item.content} streaming={item.isStreaming} />}
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
      {cut !== undefined && cut > LONGEST && (
        <MoreButton
          open={open}
          label={`Show all (${plural(cut, "character")})`}
          onToggle={() => setOpen(!open)}
        />
      )}
      {item.images !== undefined && item.images.length > 0 && (
        <div className={styles.images}>
          <Images images={item.images} />
        </div>
      )}
    </article>
  );
}
