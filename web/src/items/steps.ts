import type { Item, ToolCallItem } from "../api/types";
import { joined } from "../state/parts";

export { StepsHeader } from "./steps-view";

export interface ItemRow {
  kind: "item";
  key: string;
  item: Item;
}

export interface StepsRow {
  kind: "steps";
  key: string;
  /** The first call: its id is the key of the run. */
  first: Item;
  /** All of the run, the thoughts between its calls too. */
  items: Item[];
  /** What stays visible below the header while the run is folded. */
  shown: Item[];
  /** The agent is in it. */
  running: boolean;
  /** Its items follow as rows of their own. */
  open: boolean;
}

export type Row = ItemRow | StepsRow;

/** Runs shorter than this are not folded. */
export const LEAST_STEPS = 4;
/** How many of the last calls of a running run are shown. */
const LAST_SHOWN = 3;

const itemRows = new WeakMap<Item, ItemRow>();
const stepsRows = new WeakMap<Item, StepsRow>();

export function stepsKey(first: Item): string {
  return `steps:${first.id}`;
}

/**
 * The rows of a list of items. Folds every run of calls; an open run is a header and a row for each
 * of its items. The same items give the same row objects, so rows can be memoised by identity.
 */
export function rowsOf(
  found: readonly Item[],
  running: boolean,
  isOpen: (key: string) => boolean | undefined,
): Row[] {
  const rows: Row[] = [];
  const items = joined(found);
  const listed = items.some((item) => item.type === "todo_list");
  const end = running ? endOfWork(items) : -1;
  for (let at = 0; at < items.length; ) {
    const item = items[at]!;
    if (item.type !== "tool_call") {
      rows.push(itemRow(item));
      at += 1;
      continue;
    }
    // The run goes to the last call that only thoughts part from this one.
    let last = at;
    for (let next = at + 1; next < items.length; next += 1) {
      const type = items[next]!.type;
      if (type === "tool_call") last = next;
      else if (type !== "thinking") break;
    }
    addRun(rows, items, at, last + 1, listed, last === end, running, isOpen);
    at = last + 1;
  }
  return rows;
}

function addRun(
  rows: Row[],
  items: readonly Item[],
  from: number,
  to: number,
  listed: boolean,
  atEnd: boolean,
  running: boolean,
  isOpen: (key: string) => boolean | undefined,
): void {
  const run: Item[] = [];
  const calls: ToolCallItem[] = [];
  for (let at = from; at < to; at += 1) {
    const item = items[at]!;
    // The list itself says what the call wrote.
    if (listed && item.type === "tool_call" && item.toolCall.isTodo && !isTrouble(item)) continue;
    run.push(item);
    if (item.type === "tool_call") calls.push(item);
  }
  const first = calls[0];
  if (!first || calls.length < LEAST_STEPS) {
    for (const item of run) rows.push(itemRow(item));
    return;
  }
  const key = stepsKey(first);
  // Earlier calls may have been loaded since somebody opened the run: it had another first one.
  const open = isOpen(key) ?? calls.some((call) => isOpen(stepsKey(call)));
  // Thoughts before the first call that is left stay before the run.
  const start = run.indexOf(first);
  for (const item of run.slice(0, start)) rows.push(itemRow(item));
  const all = start > 0 ? run.slice(start) : run;
  rows.push(stepsRow(first, key, all, open ? [] : shownOf(calls, atEnd, running), atEnd, open));
  if (open) for (const item of all) rows.push(itemRow(item));
}

function shownOf(calls: ToolCallItem[], atEnd: boolean, running: boolean): Item[] {
  const lastFrom = atEnd ? calls.length - LAST_SHOWN : calls.length;
  return calls.filter((call, at) => at >= lastFrom || isTrouble(call) || (running && isUnderWay(call)));
}

/** What nobody should have to open a run for. */
function isTrouble(item: ToolCallItem): boolean {
  const { status } = item.toolCall;
  return status === "failed" || status === "cancelled";
}

function isUnderWay(item: ToolCallItem): boolean {
  const { status } = item.toolCall;
  return status === "pending" || status === "in_progress";
}

/** The last call, when nothing came after it that ends a run. */
function endOfWork(items: readonly Item[]): number {
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const { type } = items[at]!;
    if (type === "tool_call") return at;
    if (type !== "thinking" && type !== "permission" && type !== "question" && type !== "notice") return -1;
  }
  return -1;
}

function itemRow(item: Item): ItemRow {
  let row = itemRows.get(item);
  if (!row) {
    row = { kind: "item", key: item.id, item };
    itemRows.set(item, row);
  }
  return row;
}

function stepsRow(
  first: Item,
  key: string,
  items: Item[],
  shown: Item[],
  running: boolean,
  open: boolean,
): StepsRow {
  const known = stepsRows.get(first);
  const kept = known?.running === running && known.open === open;
  if (kept && same(known.items, items) && same(known.shown, shown)) return known;
  const row: StepsRow = { kind: "steps", key, first, items, shown, running, open };
  stepsRows.set(first, row);
  return row;
}

function same(a: readonly Item[], b: readonly Item[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at]);
}

export interface StepsSum {
  calls: number;
  /** How many of each kind, most first. */
  kinds: [kind: string, count: number][];
  failed: number;
  cancelled: number;
  /** From the first sign of the first call to the end of the last one. */
  durationMs?: number;
}

/** What a header says of its run. */
export function sumOf(items: readonly Item[]): StepsSum {
  const kinds = new Map<string, number>();
  const sum: StepsSum = { calls: 0, kinds: [], failed: 0, cancelled: 0 };
  let added = 0;
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  let timed = true;
  for (const item of items) {
    if (item.type !== "tool_call") continue;
    const { kind, status, durationMs } = item.toolCall;
    sum.calls += 1;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    if (status === "failed") sum.failed += 1;
    if (status === "cancelled") sum.cancelled += 1;
    added += durationMs ?? 0;
    const begun = item.timestamp ? Date.parse(item.timestamp) : Number.NaN;
    if (Number.isNaN(begun)) timed = false;
    from = Math.min(from, begun);
    to = Math.max(to, begun + (durationMs ?? 0));
  }
  sum.kinds = [...kinds].sort((a, b) => b[1] - a[1]);
  // Calls run side by side: their durations add up to more than the time that went by.
  const passed = timed && to >= from ? to - from : added;
  if (passed > 0) sum.durationMs = passed;
  return sum;
}
