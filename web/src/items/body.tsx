import type { ComponentType } from "react";
import type { ToolCall, ToolCallItem } from "../api/types";
import { useWhole } from "../state/context";
import styles from "./body.module.css";
import { BashBody } from "./body-bash";
import { EditBody } from "./body-edit";
import { GenericBody } from "./body-generic";
import { Arguments, LoadError } from "./body-parts";
import { PlanBody, QuestionBody, TodoBody } from "./body-person";
import { ReadBody } from "./body-read";
import { SearchBody } from "./body-search";
import { TaskBody } from "./body-task";
import { FetchBody, WebSearchBody } from "./body-web";
import { Skeleton } from "./skeleton";
import { useSlow } from "./slow";

/** What a body is given: an item that is whole. */
export interface BodyProps {
  item: ToolCallItem;
  depth: number;
}

const BY_TOOL: Record<string, ComponentType<BodyProps>> = {
  bash: BashBody,
  read: ReadBody,
  write: EditBody,
  edit: EditBody,
  apply_patch: EditBody,
  notebook: EditBody,
  glob: SearchBody,
  grep: SearchBody,
  list: SearchBody,
  task: TaskBody,
  todowrite: TodoBody,
  webfetch: FetchBody,
  websearch: WebSearchBody,
  question: QuestionBody,
  plan_mode: PlanBody,
};

const BY_KIND: Record<string, ComponentType<BodyProps>> = {
  execute: BashBody,
  edit: EditBody,
  read: ReadBody,
  search: SearchBody,
  fetch: FetchBody,
  task: TaskBody,
};

export function bodyOf(call: ToolCall): ComponentType<BodyProps> {
  if (Object.hasOwn(BY_TOOL, call.toolName)) return BY_TOOL[call.toolName]!;
  if (call.todos?.length) return TodoBody;
  if (call.plan) return PlanBody;
  if (call.diffs?.length) return EditBody;
  // A tool of which nothing but the kind is known: its arguments matter.
  if (call.toolName === "unknown" && Object.hasOwn(BY_KIND, call.kind)) return BY_KIND[call.kind]!;
  return GenericBody;
}

export function ToolBody({ item, depth }: BodyProps) {
  const { status } = item.toolCall;
  // Each piece of a running command's output makes a new item, and each of those would be fetched whole.
  const growing = item.clipped !== undefined && (status === "pending" || status === "in_progress");
  const whole = useWhole(useSlow(item, growing), true);
  // While a newer one is on its way, the last whole one stays.
  if (whole.loading && whole.item.clipped) return <Skeleton lines={6} />;
  const Body = bodyOf(whole.item.toolCall);
  return (
    <div className={styles.body}>
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
      <Body item={whole.item} depth={depth} />
      {Body !== GenericBody && <Arguments item={whole.item} />}
    </div>
  );
}
