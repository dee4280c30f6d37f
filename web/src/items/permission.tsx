import { Hand } from "lucide-react";
import type { PermissionItem, ToolCall } from "../api/types";
import { DiffView } from "../content/diff";
import { visible } from "../content/visible";
import styles from "./ask.module.css";
import { oneLine } from "./middle-text";

export interface PermissionProps {
  item: PermissionItem;
  /** The call that is asked for, to show exactly what it does. */
  call?: ToolCall;
  /** Makes the options buttons. */
  onAnswer?(optionId: string): void;
}

/** The agent asks for leave, and waits. */
export function Permission({ item, call, onAnswer }: PermissionProps) {
  const command = call?.command;
  const path = call?.filePath;
  return (
    <section className={styles.waiting} aria-label="The agent asks for permission">
      <p className={styles.title}>
        <Hand size={16} strokeWidth={2} aria-hidden="true" />
        <span>Permission asked</span>
        <span className={styles.state}>waiting for an answer</span>
      </p>
      <p className={styles.what}>
        {visible(item.title?.trim() || "The agent wants to use a tool").slice(0, 4000)}
      </p>
      {command && <pre className={styles.exact}>{visible(command)}</pre>}
      {!command && path && path !== item.title && <pre className={styles.exact}>{visible(path)}</pre>}
      {call?.diffs && call.diffs.length > 0 && <DiffView diffs={call.diffs} openKey={`${item.id}/diff`} />}
      <ul className={styles.options} aria-label="Options">
        {item.options.map((option, at) => (
          <li key={at}>
            <Option
              name={oneLine(option.name || option.kind || option.optionId) || `Option ${at + 1}`}
              digit={at < 9 ? at + 1 : undefined}
              reject={option.kind.startsWith("reject")}
              onClick={onAnswer && (() => onAnswer(option.optionId))}
            />
          </li>
        ))}
      </ul>
      {!onAnswer && <p className={styles.hint}>Answer it where the agent runs.</p>}
    </section>
  );
}

interface OptionProps {
  name: string;
  digit?: number;
  reject: boolean;
  onClick?(): void;
}

function Option({ name, digit, reject, onClick }: OptionProps) {
  if (!onClick) return <span className={styles.chip}>{name}</span>;
  return (
    <button type="button" className={reject ? styles.reject : styles.option} onClick={onClick}>
      {name}
      {digit !== undefined && <kbd>{digit}</kbd>}
    </button>
  );
}
