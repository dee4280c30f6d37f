import { Check, Link2 } from "lucide-react";
import { type MouseEvent, memo, useState } from "react";
import type { Item } from "../api/types";
import { CopyButton, copyText } from "../content/copy";
import { useSession } from "../state/context";
import { wholeOf } from "../state/parts";
import { Artifact } from "./artifact";
import { BackgroundTask } from "./background-task";
import { Compaction } from "./compaction";
import { ErrorView } from "./error";
import styles from "./item.module.css";
import { Notice } from "./notice";
import { Permission } from "./permission";
import { Plan } from "./plan";
import { Question } from "./question";
import { TextView } from "./text";
import { Thinking } from "./thinking";
import { TodoListView } from "./todo-list";
import { ToolCard } from "./tool-card";
import { UserMessage } from "./user-message";

export interface ItemViewProps {
  item: Item;
  /** How many subagents it is inside of. */
  depth?: number;
}

/** One item of a transcript. */
export const ItemView = memo(function ItemView({ item, depth = 0 }: ItemViewProps) {
  return (
    <div className={styles.item} data-item={item.id} data-type={item.type}>
      <Body item={item} depth={depth} />
      {depth === 0 && <Tools item={item} />}
    </div>
  );
});

function Body({ item, depth }: { item: Item; depth: number }) {
  switch (item.type) {
    case "user_message":
      return <UserMessage item={item} depth={depth} />;
    case "text":
      return <TextView item={item} />;
    case "thinking":
      return <Thinking item={item} />;
    case "tool_call":
      return <ToolCard item={item} depth={depth} />;
    case "todo_list":
      return <TodoListView item={item} />;
    case "artifact":
      return <Artifact item={item} />;
    case "permission":
      return <Permission item={item} />;
    case "plan":
      return <Plan item={item} />;
    case "question":
      return <Question item={item} />;
    case "background_task":
      return <BackgroundTask item={item} />;
    case "compaction":
      return <Compaction item={item} />;
    case "notice":
      return <Notice item={item} />;
    case "error":
      return <ErrorView item={item} />;
    default:
      return <Strange item={item} />;
  }
}

/** Of a newer server. */
function Strange({ item }: { item: never }) {
  const { type } = item as { type?: unknown };
  return <p className={styles.strange}>Something this page does not know: {String(type).slice(0, 60)}</p>;
}

/** Beside the item, when one points at it: its link, and its text where it has one. */
function Tools({ item }: { item: Item }) {
  const { link, whole } = useSession();
  const text = textOf(item);
  const all = async () => textOf(item.clipped ? await wholeOf(item, whole) : item) ?? "";
  return (
    <div className={styles.tools}>
      <LinkTo href={link(item.id)} />
      {text && <CopyButton text={all} label="Copy the text" />}
    </div>
  );
}

/** A click copies it; with a modifier or the other button, the browser does what it does with links. */
function LinkTo({ href }: { href: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    copyText(href).then(
      () => {
        setCopied(true);
        setTimeout(() => setCopied(false), 1600);
      },
      () => {},
    );
  };
  const words = copied ? "Link copied" : "Copy a link to this";
  return (
    <a className={styles.link} href={href} aria-label={words} title={words} onClick={copy}>
      {copied ? <Check size={14} aria-hidden="true" /> : <Link2 size={14} aria-hidden="true" />}
    </a>
  );
}

function textOf(item: Item): string | undefined {
  if (item.type === "text" || item.type === "plan") return item.content;
  return item.type === "user_message" ? item.text : undefined;
}
