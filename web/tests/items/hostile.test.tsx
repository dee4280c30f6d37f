// Hostile words in every field of every kind of item: they are words and nothing else.
import { act, cleanup } from "@testing-library/react";
import { afterEach, describe, expect, test } from "vitest";
import type { Item } from "../../src/api/types";
import { ItemView } from "../../src/items/item";
import { access, cases, complainLoudly, openAll, show } from "./fixtures";

afterEach(cleanup);
complainLoudly();

const HOSTILE: [name: string, text: string][] = [
  ["markup", '<script>alert(1)</script><img src=x onerror=alert(1)><iframe src="//evil.test"></iframe>'],
  ["an address", "javascript:alert(document.domain)"],
  ["links", "[a](javascript:alert(1)) ![b](https://evil.test/p.png) <data:text/html,x> [c](vbscript:x)"],
  ["directions", "rm -rf \u202etxt.exe\u202c \u2066hidden\u2069 \u0000 \u001b[31mred\u001b]0;title\u0007"],
  ["names", "__proto__"],
  ["braces", '{"__proto__":{"x":1},"error":{"message":{}},"results":[null,{"url":1}]}'],
];

/** Names are the server's own words; everything else comes from agents. */
const NAMES = new Set([
  "type",
  "id",
  "parentToolCallId",
  "toolName",
  "kind",
  "status",
  "blob",
  "scope",
  "action",
]);

/** One golden item of every kind, tool and state. */
const samples = new Map<string, [Item, Item[]]>();
for (const [, items] of cases) {
  for (const item of items) {
    const call = item.type === "tool_call" ? item.toolCall : undefined;
    const key = [item.type, call?.toolName, call?.kind, call?.status].filter(Boolean).join(" ");
    const size = JSON.stringify(item).length;
    const known = samples.get(key);
    if (!known || JSON.stringify(known[0]).length < Math.min(size, 20_000)) samples.set(key, [item, items]);
  }
}

/** The item with every text replaced, and the fields that may be there. */
function poisoned(item: Item, text: string): Item {
  const replace = (value: unknown, name?: string): unknown => {
    if (typeof value === "string") return name !== undefined && NAMES.has(name) ? value : text;
    if (Array.isArray(value)) return value.map((entry) => replace(entry));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, replace(entry, key)]));
  };
  const copy = replace(item) as Item;
  if (copy.type === "tool_call") {
    Object.assign(copy.toolCall, {
      error: text,
      agentTitle: text,
      description: text,
      name: text,
      rawOutput: `${text}\n${text}:3:${text}`,
      locations: [{ path: text, line: 3 }],
      diagnostics: { [text]: [{ message: text }], [`${text}2`]: text },
      permission: { decision: text, option: text },
      input: { url: text, prompt: text, command: text, [text]: text, cwd: text, query: text },
    });
  }
  return copy;
}

const SCHEMES = /^(?:https?:|mailto:|#|\/)/;

function harmless(root: HTMLElement) {
  expect(root.textContent).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
  expect(root.querySelectorAll("script, iframe, object, embed, form, style, base, meta")).toHaveLength(0);
  for (const link of root.querySelectorAll("[href]")) expect(link.getAttribute("href")).toMatch(SCHEMES);
  for (const image of root.querySelectorAll("img, video, audio, source")) {
    expect(image.getAttribute("src")).toMatch(/^(?:\/blobs\/|blob:)/);
  }
  const names = [...root.querySelectorAll("*")].flatMap((element) => element.getAttributeNames());
  expect(names.filter((name) => /^on|^srcdoc$/.test(name))).toEqual([]);
}

test("there is one of every kind", () => {
  expect(samples.size).toBeGreaterThan(35);
});

describe.each([...samples])("%s", { timeout: 30_000 }, (_, [item, items]) => {
  test.each(HOSTILE)("with %s", async (_name, text) => {
    const odd = poisoned(item, text);
    const { container } = show(<ItemView item={odd} />, access(items));
    harmless(container);
    await openAll(container, (work) => act(async () => work()));
    harmless(container);
    for (const mistake of ["[object Object]", "NaN"]) expect(container.textContent).not.toContain(mistake);
  });

  test("with a very long text", async () => {
    const odd = poisoned(item, `${"long ".repeat(20_000)}end`);
    const { container } = show(<ItemView item={odd} />, access(items));
    harmless(container);
    // What is closed is a line, however much is in it.
    if (item.type === "tool_call" || item.type === "notice") {
      expect(container.textContent!.length).toBeLessThan(20_000);
    }
  });
});

test("a command shows the characters that would turn it around", () => {
  const [item, items] = samples.get("tool_call bash execute completed")!;
  const odd = poisoned(item, "rm \u202efdp.exe");
  const { container } = show(<ItemView item={odd} />, access(items));
  act(() => container.querySelector("button")!.click());
  expect(container.textContent).not.toContain("\u202e");
  expect(container.textContent).toContain("202E");
});
