import { Hand } from "lucide-react";
import type { PermissionItem, ToolCall } from "../api/types";
import { DiffView } from "../content/diff";
import { visible } from "../content/visible";
import { useSession } from "../state/context";
import styles from "./ask.module.css";
import { diffsOf } from "./body-edit";
import { oneLine } from "./middle-text";

export interface PermissionProps {
  item: PermissionItem;
  /** The call that is asked for, to show exactly what it does. */
  call?: ToolCall;
  /** Makes the options buttons. */
  onAnswer?(optionId: string): void;
  /** The buttons wait: for what is shown, or for what becomes of an answer. */
  busy?: boolean;
}

/** The agent asks for leave, and waits. */
export function Permission({ item, call, onAnswer, busy }: PermissionProps) {
  const below = useSession().asked?.has(item.requestId);
  if (below && !onAnswer) return <Below words={item.title?.trim() || "The agent wants to use a tool"} />;
  return (
    <section className={styles.waiting} aria-label="The agent asks for permission">
      <p className={styles.title}>
        <Hand size={16} strokeWidth={2} aria-hidden="true" />
        <span>Permission asked</span>
        <span className={styles.state}>waiting for an answer</span>
      </p>
      <Asked item={item} call={call} />
      <ul className={styles.options} aria-label="Options">
        {item.options.map((option, at) => (
          <li key={at}>
            <Option
              name={oneLine(option.name || option.kind || option.optionId) || `Option ${at + 1}`}
              digit={at < 9 ? at + 1 : undefined}
              reject={option.kind.startsWith("reject")}
              busy={busy}
              onClick={onAnswer && (() => onAnswer(option.optionId))}
            />
          </li>
        ))}
      </ul>
      {!onAnswer && <p className={styles.hint}>Answer it where the agent runs.</p>}
    </section>
  );
}

/** What the agent wants to do, to the letter. */
function Asked({ item, call }: { item: PermissionItem; call?: ToolCall }) {
  const command = call?.command;
  const path = call?.filePath;
  const diffs = call && !command ? diffsOf(call) : [];
  const rest = call && !command && diffs.length === 0 ? argumentsOf(call) : "";
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, by keys too
    <section className={styles.scroll} tabIndex={0} aria-label="What is asked for">
      <p className={styles.what}>
        {visible(item.title?.trim() || "The agent wants to use a tool").slice(0, 4000)}
      </p>
      {command && <pre className={styles.exact}>{visible(command)}</pre>}
      {!command && path && path !== item.title && <pre className={styles.exact}>{visible(path)}</pre>}
      {rest && <pre className={styles.exact}>{visible(rest)}</pre>}
      {diffs.length > 0 && <DiffView diffs={diffs} openKey={`${item.id}/diff`} />}
    </section>
  );
}

/** The arguments of a tool of which nothing better is known. */
function argumentsOf({ input, filePath }: ToolCall): string {
  if (typeof input !== "object" || input === null || Object.keys(input).length === 0) return "";
  const only = Object.values(input).length === 1 && Object.values(input)[0] === filePath;
  return only ? "" : JSON.stringify(input, null, 2);
}

/** It is answered below the transcript; here is only its place. */
export function Below({ words }: { words: string }) {
  return (
    <p className={styles.below}>
      <Hand size={15} strokeWidth={2} aria-hidden="true" />
      <span className={styles.words}>{oneLine(visible(words).slice(0, 400))}</span>
      <span className={styles.state}>answer it below</span>
    </p>
  );
}

interface OptionProps {
  name: string;
  digit?: number;
  reject: boolean;
  busy?: boolean;
  onClick?(): void;
}

function Option({ name, digit, reject, busy, onClick }: OptionProps) {
  if (!onClick) return <span className={styles.chip}>{name}</span>;
  return (
    <button
      type="button"
      className={reject ? styles.reject : styles.option}
      disabled={busy}
      data-digit={digit}
      onClick={onClick}
    >
      {name}
      {digit !== undefined && <kbd>{digit}</kbd>}
    </button>
  );
}
