import { OctagonAlert } from "lucide-react";
import type { ErrorItem } from "../api/types";
import { Json } from "../content/json";
import { LongText } from "../content/long-text";
import { visible } from "../content/visible";
import { Fold } from "./body-parts";
import { parsedJson, record } from "./fields";
import styles from "./note.module.css";
import { beginning, linked } from "./plain";

export interface ErrorProps {
  item: ErrorItem;
  /** Makes the one thing to do a button. */
  onRetry?(): void;
}

/** Something that stopped the agent: what happened, what was kept, and what can be done. */
export function ErrorView({ item, onRetry }: ErrorProps) {
  const message = messageOf(item.message);
  const first = beginning(message, 8);
  const code = codeOf(item.code);
  const details = hasDetails(item.details);
  const whole = first !== undefined || message !== item.message.trim();
  return (
    <section className={styles.error} aria-label="Error">
      <OctagonAlert size={16} strokeWidth={2} aria-hidden="true" className={styles.alert} />
      <div className={styles.what}>
        <p className={styles.message}>
          {linked(first ?? (message || "The agent failed and did not say why."))}
        </p>
        <p className={styles.hint}>
          {code && <span>{visible(code)} · </span>}
          Everything before it is kept.
          {item.retryable === true && !onRetry && " The agent may try again."}
          {item.retryable === false && " Trying the same again will not help."}
        </p>
        {onRetry && item.retryable !== false && (
          <button type="button" className={styles.retry} onClick={onRetry}>
            Try again
          </button>
        )}
        {(details || whole) && (
          <Fold openKey={`${item.id}/details`} label="Details">
            {whole && <LongText text={item.message} openKey={`${item.id}/message`} />}
            {details && <Json value={item.details} openKey={`${item.id}/json`} />}
          </Fold>
        )}
      </div>
    </section>
  );
}

function hasDetails(details: unknown): boolean {
  if (details === null || details === undefined || details === "") return false;
  return typeof details !== "object" || Object.keys(details).length > 0;
}

function codeOf(code: unknown): string | undefined {
  if (typeof code === "number") return `Code ${code}`;
  if (typeof code !== "string" || !code.trim()) return undefined;
  const word = code.trim().slice(0, 80);
  return /^\d+$/.test(word) ? `Code ${word}` : word;
}

/** Some agents hand on the answer of their server, braces and all: what it says is inside. */
function messageOf(message: string): string {
  const answer = record(parsedJson(message.trim()));
  const inside = record(answer?.error)?.message ?? answer?.message;
  return typeof inside === "string" && inside.trim() ? inside.trim() : message.trim();
}
