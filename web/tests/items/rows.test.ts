import { describe, expect, test } from "vitest";
import type { Item } from "../../src/api/types";
import { LEAST_STEPS, type Row, rowsOf, sumOf } from "../../src/items/steps";
import { call, cases, text, thinking } from "./fixtures";

const folded = () => undefined;
const opened = () => true;
const keys = (rows: Row[]) => rows.map((row) => row.key);
const ids = (items: readonly Item[]) => items.map((item) => item.id);

/** All golden items in one list, as of a long session. */
const long: Item[] = cases.flatMap(([name, items]) =>
  items.filter((item) => !item.parentToolCallId).map((item) => ({ ...item, id: `${name}/${item.id}` })),
);

/** Lists of every mix of the kinds that matter to a run. */
function* mixes(): Generator<Item[]> {
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return (seed >> 8) % below;
  };
  for (let list = 0; list < 300; list += 1) {
    const items: Item[] = [];
    for (let at = next(40); at >= 0; at -= 1) {
      const id = `i${items.length}`;
      const kind = next(12);
      if (kind === 0) items.push(text(id));
      else if (kind < 3) items.push(thinking(id));
      else if (kind === 3) items.push(call(id, { status: "failed" }));
      else if (kind === 4) items.push(call(id, { status: "in_progress" }));
      else if (kind === 5) items.push(call(id, { status: "cancelled" }));
      else items.push(call(id));
    }
    yield items;
  }
}

describe("the rows of any list", () => {
  test.each([false, true])("hold every item once when all runs are open (running: %s)", (running) => {
    for (const items of [...mixes(), long.filter((item) => item.type !== "todo_list")]) {
      const rows = rowsOf(items, running, opened);
      const shown = rows.flatMap((row) => (row.kind === "item" ? [row.item] : row.shown));
      expect(ids(shown)).toEqual(ids(items));
      expect(new Set(keys(rows)).size).toBe(rows.length);
    }
  });

  test.each([false, true])("hold every item once in folded runs too (running: %s)", (running) => {
    for (const items of mixes()) {
      const held = rowsOf(items, running, folded).flatMap((row) =>
        row.kind === "item" ? [row.item] : row.items,
      );
      expect(ids(held)).toEqual(ids(items));
    }
  });

  test.each([false, true])("show what failed, folded or open (running: %s)", (running) => {
    for (const items of [...mixes(), long]) {
      const shown = new Set(
        rowsOf(items, running, folded).flatMap((row) => (row.kind === "item" ? [row.item] : row.shown)),
      );
      for (const item of items) {
        if (item.type !== "tool_call") continue;
        const { status } = item.toolCall;
        if (status === "failed" || status === "cancelled") expect(shown).toContain(item);
      }
    }
  });

  test("keep what belongs to a run together", () => {
    const list = [...mixes(), Array.from({ length: 100 }, (_, at) => call(`c${at}`))];
    for (const items of list) {
      const kinds = rowsOf(items, false, folded).map((row) =>
        row.kind === "item" ? row.item.type : row.kind,
      );
      // After a folded run come thoughts, and then something else than a call.
      const after = kinds.join(" ").match(/steps(?: thinking)* (?:steps|tool_call)/);
      expect(after).toBeNull();
    }
  });

  test("are the same objects for the same items", () => {
    for (const items of mixes()) {
      const again = rowsOf([...items], false, folded);
      for (const [at, row] of rowsOf(items, false, folded).entries()) expect(again[at]).toBe(row);
    }
  });

  test("keep their keys when the list grows", () => {
    for (const items of mixes()) {
      let before: string[] = [];
      for (let count = 0; count <= items.length; count += 1) {
        const now = keys(rowsOf(items.slice(0, count), true, opened));
        // A run gets its header with the fourth call; nothing else may come between or go.
        const rest = now.filter((key) => before.includes(key));
        expect(rest).toEqual(before);
        before = now;
      }
    }
  });

  test("are made by looking at each item a few times", () => {
    let looks = 0;
    const counted = (item: Item) =>
      new Proxy(item, {
        get(of, name, at) {
          looks += 1;
          return Reflect.get(of, name, at);
        },
      });
    const cost = (length: number) => {
      const items = Array.from({ length }, (_, at) => (at % 9 ? call(`c${at}`) : thinking(`c${at}`)));
      looks = 0;
      rowsOf(items.map(counted), true, folded);
      return looks;
    };
    expect(cost(3000)).toBeLessThan(2.2 * cost(1500));
    expect(cost(1500)).toBeLessThan(1500 * 30);
  });
});

describe("a run", () => {
  const run = (count: number) => Array.from({ length: count }, (_, at) => call(`c${at}`));

  test("of few calls is not folded", () => {
    expect(rowsOf(run(LEAST_STEPS - 1), false, folded).every((row) => row.kind === "item")).toBe(true);
    expect(keys(rowsOf(run(LEAST_STEPS), false, folded))).toEqual(["steps:c0"]);
  });

  test("shows its last three calls while the agent is in it", () => {
    const [row] = rowsOf(run(8), true, folded);
    expect(row?.kind === "steps" && ids(row.shown)).toEqual(["c5", "c6", "c7"]);
    expect(row?.kind === "steps" && row.running).toBe(true);
    const [over] = rowsOf([...run(8), text("t")], true, folded);
    expect(over?.kind === "steps" && over.shown).toEqual([]);
  });

  test("keeps the thoughts between its calls, not those around them", () => {
    const [a, b, c, d] = run(4);
    const items = [thinking("before"), a!, b!, thinking("between"), c!, d!, thinking("after")];
    const rows = rowsOf(items, false, folded);
    expect(keys(rows)).toEqual(["before", "steps:c0", "after"]);
    expect(rows[1]?.kind === "steps" && ids(rows[1].items)).toEqual(["c0", "c1", "between", "c2", "c3"]);
  });

  test("stays open when earlier calls are loaded", () => {
    const isOpen = (key: string) => (key === "steps:c2" ? true : undefined);
    expect(rowsOf(run(8).slice(2), false, isOpen).length).toBe(7);
    expect(rowsOf(run(8), false, isOpen).length).toBe(9);
    const closed = (key: string) => (key === "steps:c0" ? false : isOpen(key));
    expect(rowsOf(run(8), false, closed).length).toBe(1);
  });

  test("leaves out calls that only wrote the list which is there", () => {
    const list = { type: "todo_list", id: "l", order: 0, timestamp: null, todoList: { id: "l", todos: [] } };
    const todo = call("t", { isTodo: true });
    const failed = call("f", { isTodo: true, status: "failed" });
    expect(keys(rowsOf([todo, failed], false, folded))).toEqual(["t", "f"]);
    expect(keys(rowsOf([todo, failed, list as unknown as Item], false, folded))).toEqual(["f", "l"]);
  });

  test("adds up", () => {
    const at = (id: string, second: number, durationMs: number, kind = "execute") => ({
      ...call(id, { durationMs, kind: kind as "edit" }),
      timestamp: `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`,
    });
    const items = [at("a", 0, 5000), at("b", 0, 9000, "edit"), thinking("t"), at("c", 1, 1000)];
    expect(sumOf(items)).toEqual({
      calls: 3,
      kinds: [
        ["execute", 2],
        ["edit", 1],
      ],
      failed: 0,
      cancelled: 0,
      durationMs: 9000,
    });
    expect(sumOf([call("x", { durationMs: 2 }), call("y", { durationMs: 3 })]).durationMs).toBe(5);
  });
});
