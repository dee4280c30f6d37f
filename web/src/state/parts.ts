import type { Item } from "../api/types";
import { letters } from "./apply";

/** Parts of a text that are fetched at most, to be shown as one: a browser has no room for more. */
export const MAX_PARTS = 8;

/** The items of which a text was joined, in order. */
const parts = new WeakMap<Item, readonly Item[]>();
const joins = new WeakMap<Item, Item>();

/** The parts of an item that `joined` made. */
export function partsOf(item: Item): readonly Item[] | undefined {
  return parts.get(item);
}

/**
 * Items with texts that are several items as one: the first of them, which says how long all are. The
 * same items give the same ones.
 */
export function joined(items: readonly Item[]): readonly Item[] {
  if (!items.some((item) => item.continues)) return items;
  const out: Item[] = [];
  for (let at = 0; at < items.length; ) {
    let end = at + 1;
    while (items[end]?.continues && items[end]!.continues === items[end - 1]!.id) end += 1;
    out.push(end > at + 1 ? join(items.slice(at, end)) : items[at]!);
    at = end;
  }
  return out;
}

function join(all: readonly Item[]): Item {
  const [first, last] = [all[0]!, all.at(-1)!];
  const known = joins.get(first);
  const before = known && parts.get(known);
  if (known && before?.length === all.length && before.every((item, at) => item === all[at])) return known;
  const field = first.type === "user_message" ? "text" : "content";
  const length = all.reduce((sum, item) => sum + (item.clipped?.[field] ?? letters(textOf(item))), 0);
  const whole = { ...first, clipped: { ...first.clipped, [field]: length } } as Item;
  if ("isStreaming" in whole && "isStreaming" in last) whole.isStreaming = last.isStreaming;
  parts.set(whole, all);
  joins.set(first, whole);
  return whole;
}

/** The text of which an item is a part. */
export function textOf(item: Item): string {
  if (item.type === "user_message") return item.text;
  return item.type === "text" || item.type === "thinking" ? item.content : "";
}

/** An item with all its text, or as much of it as there is room for. */
export async function wholeOf<T extends Item>(item: T, whole: (id: string) => Promise<Item>): Promise<T> {
  const all = parts.get(item);
  if (!all) return (await whole(item.id)) as T;
  let text = "";
  for (const part of all.slice(0, MAX_PARTS)) text += textOf(part.clipped ? await whole(part.id) : part);
  const full = { ...item } as Item;
  delete full.clipped;
  if (full.type === "user_message") full.text = text;
  else if (full.type === "text" || full.type === "thinking") full.content = text;
  return full as T;
}
