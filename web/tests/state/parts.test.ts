import { describe, expect, it } from "vitest";
import type { Item } from "../../src/api/types";
import { rowsOf } from "../../src/items/steps";
import { joined, MAX_PARTS, partsOf, wholeOf } from "../../src/state/parts";

function text(n: number, content: string, more: Partial<Item> = {}): Item {
  const id = n === 1 ? "t" : `t~${n}`;
  const before = n === 2 ? "t" : `t~${n - 1}`;
  const item = { type: "text", id, order: n, timestamp: null, content, isStreaming: false, ...more };
  return (n > 1 ? { ...item, continues: before } : item) as Item;
}

const note = { type: "notice", id: "n", order: 99, timestamp: null, kind: "k", text: "x" } as Item;

describe("texts in parts", () => {
  it("are one row, which says how long all of them are", () => {
    const items = [text(1, "one", { clipped: { content: 1000 } }), text(2, "two"), text(3, "three"), note];
    const rows = rowsOf(items, false, () => undefined);
    expect(rows.map((row) => row.key)).toEqual(["t", "n"]);
    const first = joined(items)[0]!;
    expect(first.clipped).toEqual({ content: 1008 });
    expect(partsOf(first)).toHaveLength(3);
  });

  it("are the same row as long as nothing changes", () => {
    const items = [text(1, "one"), text(2, "two", { isStreaming: true })];
    const [a, b] = [rowsOf(items, true, () => undefined), rowsOf([...items], true, () => undefined)];
    expect(a[0]).toBe(b[0]);
    const grown = [items[0]!, text(2, "two more", { isStreaming: true })];
    const c = rowsOf(grown, true, () => undefined);
    expect(c[0]).not.toBe(a[0]);
    expect(c[0]!.kind === "item" && "isStreaming" in c[0]!.item && c[0]!.item.isStreaming).toBe(true);
  });

  it("stand alone where the part before is not there", () => {
    const items = [text(2, "two"), note, text(4, "four")];
    expect(joined(items).map((item) => item.id)).toEqual(["t~2", "n", "t~4"]);
  });

  it("leave other items as they are", () => {
    const items = [note, { ...note, id: "m" }];
    expect(joined(items)).toBe(items);
  });

  it("are fetched whole, up to what a browser has room for", async () => {
    const asked: string[] = [];
    const fetch = async (id: string) => {
      asked.push(id);
      return text(1, `<${id}>`);
    };
    const cut = { clipped: { content: 9 } };
    const two = joined([text(1, "x", cut), text(2, "here")])[0]!;
    expect((await wholeOf(two, fetch)) as { content?: string }).toMatchObject({ content: "<t>here" });
    expect(asked).toEqual(["t"]);
    const many = joined(Array.from({ length: MAX_PARTS + 3 }, (_, n) => text(n + 1, "x", cut)))[0]!;
    await wholeOf(many, fetch);
    expect(asked).toHaveLength(1 + MAX_PARTS);
  });
});
