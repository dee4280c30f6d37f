import type { UserMessageItem } from "../api/types";
import { Images } from "../content/images";
import { letters } from "../state/apply";
import { useOpen, useWhole } from "../state/context";
import { clock, exact } from "../when";
import { LoadError } from "./body-parts";
import { plural } from "./labels";
import styles from "./message.module.css";
import { MoreButton } from "./more-button";
import { beginning, Plain } from "./plain";

const LINES = 20;

/** What somebody asked for. */
export function UserMessage({ item, depth = 0 }: { item: UserMessageItem; depth?: number }) {
  const [open, setOpen] = useOpen(`${item.id}/all`);
  const whole = useWhole(item, open);
  const { text } = whole.item;
  const first = beginning(text, LINES);
  const cut = item.clipped?.text;
  return (
    <article className={styles.user}>
      <p className={styles.who}>
        {depth > 0 ? "The agent asks" : "You"}
        <Clock time={item.timestamp} />
      </p>
      {text ? (
        <Plain text={open ? text : (first ?? text)} />
      ) : (
        item.images.length === 0 && <p className={styles.empty}>An empty message</p>
      )}
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
      {(first !== undefined || cut !== undefined) && (
        <MoreButton
          open={open}
          label={`Show all (${plural(cut ?? letters(text), "character")})`}
          onToggle={() => setOpen(!open)}
        />
      )}
      {item.images.length > 0 && (
        <div className={styles.images}>
          <Images images={item.images} />
        </div>
      )}
    </article>
  );
}

function Clock({ time }: { time: string | null }) {
  const at = time ? Date.parse(time) : Number.NaN;
  if (!time || Number.isNaN(at)) return null;
  return (
    <time dateTime={time} title={exact(at)}>
      {clock(at)}
    </time>
  );
}
