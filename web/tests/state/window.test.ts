import { expect, test } from "vitest";
import type { Change, Item, ItemPage } from "../../src/api/types";
import { changed } from "../../src/state/apply";
import { ItemWindow, type Where } from "../../src/state/window";

/** Numbers that look random and are the same every time. */
function random(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A server of which everything is known: a log, and the items after each event. */
class Log {
  items = new Map<string, Item>();
  frames: Change[][] = [];
  private next = 0;

  constructor(private pick: (below: number) => number) {}

  /** One more event: a new item, more text, another text, or an item that goes. */
  event(): void {
    const changes: Change[] = [];
    for (let i = this.pick(3); i >= 0; i--) changes.push(this.change());
    this.frames.push(changes);
  }

  private change(): Change {
    const ids = [...this.items.keys()];
    const id = ids[this.pick(ids.length)];
    const what = this.pick(10);
    let change: Change;
    if (!id || what < 4) {
      const order = this.next++;
      const item = {
        id: `i${order}`,
        order,
        type: "text",
        content: `<${order}>`,
        isStreaming: true,
        timestamp: null,
      };
      change = { change: "put", item: item as Item };
    } else if (what < 8) change = { change: "append", id, field: "content", text: `+${this.frames.length}` };
    else if (what < 9) change = { change: "set", id, content: `=${this.frames.length}` };
    else change = { change: "remove", id };
    if (change.change === "put") this.items.set(change.item.id, structuredClone(change.item));
    else if (change.change === "remove") this.items.delete(change.id);
    else this.items.set(change.id, changed(this.items.get(change.id)!, change));
    return change;
  }

  page(where: Where, limit: number): ItemPage {
    const all = [...this.items.values()].sort((a, b) => a.order - b.order);
    let from = Math.max(0, all.length - limit);
    if ("before" in where) from = Math.max(0, all.findLastIndex((i) => i.order < where.before) + 1 - limit);
    if ("from" in where) from = count(all, where.from);
    if ("around" in where) from = Math.max(0, count(all, where.around) - (limit >> 1));
    let to = Math.min(all.length, from + limit);
    if ("before" in where) to = all.findLastIndex((i) => i.order < where.before) + 1;
    const page = { items: all.slice(from, to), cursor: `e-${this.frames.length}`, before: from > 0 };
    return structuredClone({ ...page, after: to < all.length, info: {}, ended: false }) as never;
  }
}

const count = (items: Item[], order: number) => items.filter((item) => item.order < order).length;

/** Pages are answered late and changes are told late, each in its own time. */
async function story(seed: number): Promise<void> {
  const pick = random(seed);
  const log = new Log(pick);
  for (let i = pick(60); i > 0; i--) log.event();
  const answers: (() => void)[] = [];
  const window = new ItemWindow(
    (where) =>
      new Promise((answer, fail) => {
        // Read now or when it is sent: both happen.
        const now = pick(2) ? log.page(where, 8) : null;
        const lost = pick(12) === 0;
        answers.push(() => (lost ? fail(new Error("cut")) : answer(now ?? log.page(where, 8))));
      }),
    () => true,
  );
  let told = 0;
  let first = window.jump({ end: true }).then((page) => page ?? Promise.reject(new Error("none")));
  // The stream begins where the first page ends.
  const began = log.frames.length;
  for (;;) {
    for (const send of answers.splice(0)) send();
    try {
      const page = await first;
      told = Number(page.cursor.split("-")[1]);
      break;
    } catch {
      first = window.jump({ end: true }).then((page) => page ?? Promise.reject(new Error("none")));
    }
  }
  expect(told).toBeGreaterThanOrEqual(began);
  const tell = () => {
    if (told >= log.frames.length) return;
    for (const change of log.frames[told]!) window.apply(told + 1, structuredClone(change));
    told++;
  };
  for (let i = 0; i < 120; i++) {
    const what = pick(12);
    if (what < 4) log.event();
    else if (what < 8) tell();
    else if (what === 8) window.more("before").catch(() => {});
    else if (what === 9) window.more("after").catch(() => {});
    else if (what === 10) answers.shift()?.();
    else if (pick(4) === 0) window.jump(pick(2) ? { end: true } : { around: pick(40) }).catch(() => {});
    await Promise.resolve();
    await Promise.resolve();
  }
  while (answers.length) {
    answers.shift()?.();
    await new Promise((settled) => setTimeout(settled));
  }
  while (told < log.frames.length) tell();
  expect(window.isLoading, `seed ${seed}`).toBe(false);
  check(window, log, seed);
}

/** What is here is a run without a hole of what is there, and says how it goes on. */
function check(window: ItemWindow, log: Log, seed: number): void {
  const all = [...log.items.values()].sort((a, b) => a.order - b.order);
  const from = window.before ? (window.items[0]?.order ?? 0) : 0;
  const to = window.after ? (window.items.at(-1)?.order ?? -1) : Number.POSITIVE_INFINITY;
  const there = all.filter((item) => item.order >= from && item.order <= to);
  expect(window.items, `seed ${seed}`).toEqual(there);
}

test("pages and changes on two ways, in any order: nothing is lost and nothing is taken twice", async () => {
  for (let seed = 1; seed <= 400; seed++) await story(seed);
});

test("a text that was cut stays cut, and its length grows", () => {
  const item = {
    id: "a",
    order: 0,
    type: "text",
    content: "abc",
    isStreaming: true,
    timestamp: null,
    clipped: { content: 10 },
  };
  const now = changed(item as Item, { change: "append", id: "a", field: "content", text: "d😀" });
  expect(now).toMatchObject({ content: "abc", clipped: { content: 12 } });
  expect(changed(now, { change: "set", id: "a", content: "whole" })).toEqual({
    ...item,
    content: "whole",
    clipped: undefined,
  });
});

test("a text that grows beyond all bounds is kept in part", () => {
  let item = { id: "a", order: 0, type: "text", content: "", isStreaming: true, timestamp: null } as Item;
  for (let i = 0; i < 200; i++)
    item = changed(item, { change: "append", id: "a", field: "content", text: "x".repeat(10_000) });
  expect((item as { content: string }).content.length).toBeLessThan(600_000);
  expect(item.clipped).toEqual({ content: 2_000_000 });
});
