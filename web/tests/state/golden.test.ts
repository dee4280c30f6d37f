import { expect, test } from "vitest";
import type { Item } from "../../src/api/types";
import { ItemWindow } from "../../src/state/window";
import { cases } from "../fixtures";

const empty = {
  items: [],
  cursor: "e-0",
  before: false,
  after: false,
  info: {},
  ended: false,
  total: 0,
  nextOrder: 0,
};
const all = cases();

test("there are recorded sessions", () => expect(all.length).toBeGreaterThan(400));

test.each(all)("$name: the changes make the items", async ({ items, changes }) => {
  const window = new ItemWindow(
    async () => structuredClone(empty) as never,
    () => true,
  );
  await window.jump({ end: true });
  changes().forEach((list, i) => {
    for (const change of list) window.apply(i + 1, change);
  });
  expect(sorted(window.items)).toEqual(sorted(items));
});

/** Those of a subagent stand below their call in the one, in the order they came in the other. */
const sorted = (items: Item[]) => [...items].sort((a, b) => a.order - b.order);
