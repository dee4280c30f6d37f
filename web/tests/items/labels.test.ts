import { describe, expect, test } from "vitest";
import {
  ago,
  formatCost,
  formatCount,
  formatDuration,
  formatTokens,
  iconOf,
  statusOf,
  titleOf,
  verbOf,
} from "../../src/items/labels";
import { cases } from "./fixtures";

test.each([
  [0, "0 ms"],
  [25, "25 ms"],
  [94, "94 ms"],
  [400, "0.4 s"],
  [999, "1.0 s"],
  [9949, "9.9 s"],
  [9960, "10 s"],
  [42_000, "42 s"],
  [59_600, "1 min"],
  [123_000, "2 min 3 s"],
  [3_599_900, "1 h"],
  [3_840_000, "1 h 4 min"],
  [183_600_000, "2 d 3 h"],
  [Number.NaN, ""],
  [-1, ""],
])("a duration of %d ms is %j", (ms, words) => {
  expect(formatDuration(ms)).toBe(words);
});

test.each([
  [0, "0"],
  [812, "812"],
  [3100, "3.1k"],
  [152_000, "152k"],
  [999_600, "1M"],
  [1_240_000, "1.2M"],
])("%d tokens are %j", (count, words) => {
  expect(formatTokens(count)).toBe(words);
});

test("counts and costs", () => {
  expect(formatCount(2431)).toBe("2\u202f431");
  expect(formatCost(0.1234)).toBe("$0.12");
  expect(formatCost(0.001)).toBe("< $0.01");
  expect(formatCost(0)).toBe("$0.00");
  expect(formatCost(null)).toBe("");
});

test("how long ago", () => {
  const now = new Date(2026, 10, 16, 12).getTime();
  const back = (seconds: number) => ago(now - seconds * 1000, now);
  expect(back(3)).toBe("now");
  expect(back(-9)).toBe("now");
  expect(back(60)).toBe("1 min");
  expect(back(3599)).toBe("1 h");
  expect(back(2 * 3600)).toBe("2 h");
  expect(back(3 * 86_400)).toBe("3 d");
  expect(back(10 * 86_400)).toBe("6 Nov");
  expect(back(400 * 86_400)).toBe("12 Oct 2025");
});

test("a session has a title", () => {
  expect(titleOf({ info: { title: "  " }, prompt: null, label: null })).toBe("Untitled session");
  expect(titleOf({ info: { title: null }, prompt: "Fix it", label: "x" })).toBe("Fix it");
  expect(titleOf({ info: { title: "Title" }, prompt: "Fix it" })).toBe("Title");
});

describe("tools", () => {
  test("every golden call has an icon and a verb", () => {
    for (const [, items] of cases) {
      for (const item of items) {
        if (item.type !== "tool_call") continue;
        expect(iconOf(item.toolCall)).toBeTruthy();
        expect(verbOf(item.toolCall)).toMatch(/\S/);
      }
    }
  });

  test("words of agents are no entries of tables", () => {
    for (const name of ["constructor", "__proto__", "toString"]) {
      const odd = { toolName: name, kind: name, title: name } as unknown as Parameters<typeof iconOf>[0];
      expect(iconOf(odd)).toBe(iconOf({ toolName: "unknown", kind: "other" }));
      expect(verbOf({ title: name, kind: "other" })).toBe(name);
    }
  });

  test("a call that never ended does not run in a session that is over", () => {
    expect(statusOf("in_progress", true)).toBe("running");
    expect(statusOf("in_progress", false)).toBe("unfinished");
    expect(statusOf("pending", false)).toBe("unfinished");
    expect(statusOf("odd", true)).toBe("unknown");
  });
});
