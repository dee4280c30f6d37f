import type { TextItem } from "../api/types";
import { Images } from "../content/images";
import styles from "./message.module.css";
import { WholeMarkdown } from "./whole-markdown";

/** What the agent said. */
export function TextView({ item }: { item: TextItem }) {
  return (
    <article className={styles.text}>
      <WholeMarkdown item={item} streaming={item.isStreaming} />
      {item.images !== undefined && item.images.length > 0 && (
        <div className={styles.images}>
          <Images images={item.images} />
        </div>
      )}
    </article>
  );
}
