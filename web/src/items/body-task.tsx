import { useMemo } from "react";
import type { Item, ToolCall } from "../api/types";
import { Images } from "../content/images";
import { LongText } from "../content/long-text";
import { Markdown } from "../content/markdown";
import { useChildren, useSession } from "../state/context";
import type { BodyProps } from "./body";
import { Output } from "./body-generic";
import { Facts, Nothing, Part, Trouble } from "./body-parts";
import styles from "./body-task.module.css";
import { inBackground, inputText } from "./fields";
import { statusOf } from "./labels";
import { Skeleton } from "./skeleton";
import { RowView, useRows } from "./steps-view";

/** A subagent: what it was asked, what it did, what it answered. */
export function TaskBody({ item, depth }: BodyProps) {
  const call = item.toolCall;
  const prompt = inputText(call, "prompt");
  const report = call.taskOutput?.trim() ? call.taskOutput : undefined;
  // The output of a task is its prompt, or what it answered, once more.
  const output = call.rawOutput?.trim();
  const news = output && output !== prompt?.trim() && output !== report?.trim() ? call.rawOutput : undefined;
  return (
    <>
      <Facts
        facts={[
          call.subagentType && `Subagent ${call.subagentType}`,
          inBackground(call) && "runs in the background",
        ]}
      />
      {prompt && (
        <Part label="Prompt">
          <LongText text={prompt} openKey={`${item.id}/prompt`} />
        </Part>
      )}
      <Steps id={item.id} call={call} prompt={prompt} report={report} depth={depth} />
      <Trouble text={call.error} openKey={item.id} />
      {news && (
        <Part label={prompt ? "Output" : "Prompt"}>
          <Output text={news} openKey={`${item.id}/output`} />
        </Part>
      )}
      {report && (
        <Part label="Report">
          <div className={styles.report}>
            <Markdown text={report} />
          </div>
        </Part>
      )}
      {call.images && <Images images={call.images} />}
    </>
  );
}

interface StepsProps {
  id: string;
  call: ToolCall;
  prompt?: string;
  report?: string;
  depth: number;
}

/** The transcript of the subagent. */
function Steps({ id, call, prompt, report, depth }: StepsProps) {
  const session = useSession();
  const found = useChildren(id, true);
  const items = useMemo(() => without(found.items, prompt, report), [found.items, prompt, report]);
  const status = statusOf(call.status, session.running);
  const running = status === "running" || status === "waiting" || (session.running && inBackground(call));
  const rows = useRows(items, running);
  if (found.loading && found.items.length === 0) return <Skeleton lines={3} />;
  if (found.error) return <Nothing>What it did could not be loaded: {found.error.slice(0, 300)}</Nothing>;
  if (rows.length === 0 && !found.more) {
    return report || prompt || call.rawOutput || call.error ? null : (
      <Nothing>Nothing is known of what it did.</Nothing>
    );
  }
  return (
    <div className={depth < 5 ? styles.steps : styles.deep}>
      {found.more && (
        <button type="button" className={styles.earlier} onClick={() => session.children.before(id)}>
          Show earlier
        </button>
      )}
      {rows.map((row) => (
        <div key={row.key} className={styles.row}>
          <RowView row={row} depth={depth + 1} />
        </div>
      ))}
    </div>
  );
}

/** The items without those that say again what stands beside them: the prompt and the report. */
export function without(items: readonly Item[], prompt?: string, report?: string): readonly Item[] {
  const first = items[0];
  const asked = first?.type === "user_message" && saysSame(first.text, first.clipped?.text, prompt);
  let last = items.length - 1;
  while (last >= 0 && items[last]!.type === "notice") last -= 1;
  const end = items[last];
  const told = end?.type === "text" && saysSame(end.content, end.clipped?.content, report);
  if (!asked && !told) return items;
  return items.filter((_, at) => !(asked && at === 0) && !(told && at === last));
}

function saysSame(text: string, cut: number | undefined, other: string | undefined): boolean {
  if (!other) return false;
  return cut === undefined ? text.trim() === other.trim() : other.trimStart().startsWith(text.trim());
}
