import { Hand } from "lucide-react";
import { type FormEvent, useState } from "react";
import type { PermissionItem, ToolCall } from "../api/types";
import { DiffView } from "../content/diff";
import { Markdown } from "../content/markdown";
import { visible } from "../content/visible";
import { useSession } from "../state/context";
import styles from "./ask.module.css";
import { diffsOf } from "./body-edit";
import { oneLine } from "./middle-text";

export interface PermissionProps {
  item: PermissionItem;
  /** The call as it is known now, for requests that do not say themselves what they are about. */
  call?: ToolCall;
  /** Makes the options buttons. A message goes with a refusal. */
  onAnswer?(optionId: string, message?: string): void;
  /** A refusal may say why. */
  reasons?: boolean;
  /** The buttons wait: for what is shown, or for what becomes of an answer. */
  busy?: boolean;
}

/** The agent asks for leave, and waits. */
export function Permission({ item, call, onAnswer, reasons, busy }: PermissionProps) {
  const below = useSession().asked?.has(item.requestId);
  const refusal = item.options.find((option) => option.kind.startsWith("reject"));
  if (below && !onAnswer) return <Below words={item.title?.trim() || "The agent wants to use a tool"} />;
  return (
    <section className={styles.waiting} aria-label="The agent asks for permission">
      <p className={styles.title}>
        <Hand size={16} strokeWidth={2} aria-hidden="true" />
        <span>Permission asked</span>
        <span className={styles.state}>waiting for an answer</span>
      </p>
      <Asked item={item} call={item.toolCall ?? call} />
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
      {onAnswer && reasons && refusal && (
        <Refusal busy={busy} onSend={(message) => onAnswer(refusal.optionId, message)} />
      )}
      {!onAnswer && <p className={styles.hint}>Answer it where the agent runs.</p>}
    </section>
  );
}

/** A refusal in words, which the agent reads. */
function Refusal({ busy, onSend }: { busy?: boolean; onSend(message: string): void }) {
  const [words, setWords] = useState("");
  const message = words.trim();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (message && !busy) onSend(message);
  };
  return (
    <form className={styles.free} onSubmit={submit}>
      <input
        type="text"
        value={words}
        maxLength={4000}
        placeholder="Or say what to do instead"
        aria-label="Why not, or what to do instead"
        onChange={(event) => setWords(event.target.value)}
      />
      <button type="submit" className={styles.reject} disabled={busy || !message}>
        Deny and tell
      </button>
    </form>
  );
}

/** What the agent wants to do, to the letter. */
function Asked({ item, call }: { item: PermissionItem; call?: ToolCall }) {
  const command = call?.command;
  const plan = !command && call?.plan?.trim() ? call.plan : undefined;
  const path = call?.filePath;
  const diffs = call && !command && !plan ? diffsOf(call) : [];
  const rest = call && !command && !plan && diffs.length === 0 ? argumentsOf(call) : "";
  const wants = call && wantsOf(call, diffs.length > 0);
  const title = item.title?.trim() || "The agent wants to use a tool";
  const exact = [command, path, wants].some((words) => words?.trim() === title);
  const says = !(wants && (exact || plan));
  // The agent's own words come last where this page says what is asked for: they may be long, and what is
  // exact stays in sight.
  const words = says && <p className={styles.what}>{visible(title).slice(0, rest ? 400 : 4000)}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, by keys too
    <section className={styles.scroll} tabIndex={0} aria-label="What is asked for">
      {wants && <p className={styles.what}>{visible(wants).slice(0, 4000)}</p>}
      {!wants && words}
      {command && <pre className={styles.exact}>{visible(command)}</pre>}
      {!command && !plan && path && path !== item.title && (
        <pre className={styles.exact}>{visible(path)}</pre>
      )}
      {plan && <Markdown text={plan} />}
      {rest && <pre className={styles.exact}>{visible(rest)}</pre>}
      {diffs.length > 0 && <DiffView diffs={diffs} openKey={`${item.id}/diff`} />}
      {wants && words}
    </section>
  );
}

/** What is asked for, in the words of this page: an agent describes its own calls as it likes. */
function wantsOf(call: ToolCall, changes: boolean): string | undefined {
  if (call.command) return "The agent wants to run this command:";
  if (call.plan?.trim()) return "The agent wants to leave plan mode and carry out this plan:";
  if (!call.filePath) return undefined;
  if (changes || call.kind === "edit") return `The agent wants to change ${call.filePath}`;
  if (call.kind === "read") return `The agent wants to read ${call.filePath}`;
  if (call.kind === "delete") return `The agent wants to delete ${call.filePath}`;
  return undefined;
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
