import type { Item, Session, Turn } from "../api/types";
import { type Row, rowsOf } from "../items/steps";
import { isFresh } from "../state/list";
import type { View } from "../state/session";

/** One row of the transcript. */
export type Line =
  | (Row & { order: number })
  | { kind: "turn"; key: string; order: number; turn: Turn }
  | { kind: "working"; key: string; order: number };

/** Whether something is going on: a session that fell silent long ago is not at work. */
export function isRunning(view: View, session: Session | undefined): boolean {
  if (!view.info || view.ended) return false;
  return (view.info.status === "running" || !!session?.waiting) && (!session || isFresh(session));
}

/** The rows of what is loaded. The same items give the same rows, however they came. */
export function linesOf(view: View, atWork: boolean, isOpen: (key: string) => boolean | undefined): Line[] {
  const running = atWork && !view.after;
  const turns = view.outline?.turns ?? [];
  const ends = new Map<string, Turn>();
  // The end of a turn stands before the prompt of the next one.
  for (let i = 1; i < turns.length; i++) ends.set(turns[i]!.id, turns[i - 1]!);
  const lines: Line[] = [];
  for (const row of rowsOf(view.items, running, isOpen)) {
    const first = row.kind === "item" ? row.item : row.first;
    const end = first.type === "user_message" ? ends.get(first.id) : undefined;
    if (end && tells(end)) lines.push({ kind: "turn", key: `end:${end.id}`, order: first.order, turn: end });
    lines.push({ ...row, order: first.order });
  }
  const order = view.items.at(-1)?.order ?? 0;
  const last = turns.at(-1);
  if (!view.after && !running && last && tells(last) && view.items.length) {
    lines.push({ kind: "turn", key: `end:${last.id}`, order, turn: last });
  }
  if (running && waits(view.items)) lines.push({ kind: "working", key: "working", order });
  return lines;
}

/** Whether anything is known about how a turn ended. */
function tells(turn: Turn): boolean {
  return turn.durationMs != null || turn.costUsd != null || turn.usage != null;
}

/** Whether nothing on the screen shows that the agent is at work. */
function waits(items: readonly Item[]): boolean {
  const last = items.at(-1);
  if (!last) return true;
  if (last.type === "text" || last.type === "thinking") return !last.isStreaming;
  if (last.type === "tool_call") {
    return last.toolCall.status !== "in_progress" && last.toolCall.status !== "pending";
  }
  return last.type !== "permission" && !(last.type === "question" && !last.answers);
}

/** The row in which an item is: itself, the steps that hold it, or what stands where it would be. */
export function lineOf(lines: readonly Line[], id: string, order: number): number {
  const own = lines.findIndex((line) => line.kind === "item" && line.item.id === id);
  if (own >= 0) return own;
  const steps = lines.findIndex((line) => line.kind === "steps" && line.items.some((item) => item.id === id));
  return steps >= 0 ? steps : lines.findLastIndex((line) => line.order <= order);
}

/** The key of the folded steps that hold an item. */
export function stepsOf(items: readonly Item[], id: string): string | undefined {
  const rows = rowsOf(items, false, () => undefined);
  return rows.find((row) => row.kind === "steps" && row.items.some((item) => item.id === id))?.key;
}
