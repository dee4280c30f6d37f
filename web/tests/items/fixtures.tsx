import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, vi } from "vitest";
import type { Item, ToolCallItem } from "../../src/api/types";
import { OpenState, type SessionAccess, SessionProvider } from "../../src/state/context";

const files = import.meta.glob<Item[]>("../../../crates/narrows/tests/fixtures/*/*/items.json", {
  eager: true,
  import: "default",
});

/** The golden items of every case, by its name. */
export const cases: [name: string, items: Item[]][] = Object.entries(files)
  .map(([path, items]): [string, Item[]] => [path.split("/").slice(-3, -1).join("/"), items])
  .sort(([a], [b]) => (a < b ? -1 : 1));

/** What React has to say against the page fails the test. */
export function complainLoudly() {
  let heard: ReturnType<typeof vi.spyOn>;
  beforeEach(() => {
    heard = vi.spyOn(console, "error").mockImplementation(() => {});
  });
  afterEach(() => {
    const said = heard.mock.calls.map((words: unknown[]) => words.join(" "));
    heard.mockRestore();
    expect(said).toEqual([]);
  });
}

/** A session that holds some items, and nothing else. */
export function access(items: readonly Item[], more: Partial<SessionAccess> = {}): SessionAccess {
  const below = new Map<string, Item[]>();
  for (const item of items) {
    if (!item.parentToolCallId) continue;
    const list = below.get(item.parentToolCallId) ?? [];
    list.push(item);
    below.set(item.parentToolCallId, list);
  }
  const known = new Map([...below].map(([id, list]) => [id, { items: list, loading: false, more: false }]));
  const none = { items: [], loading: false, more: false };
  return {
    sessionId: "s",
    blob: (hash) => `/blobs/${hash}`,
    whole: async (id) => items.find((item) => item.id === id)!,
    children: { watch: () => () => {}, get: (id) => known.get(id) ?? none, before: () => {} },
    open: new OpenState(),
    running: false,
    link: (id) => `https://narrows.test/s#${encodeURIComponent(id)}`,
    ...more,
  };
}

export function show(node: ReactNode, session: SessionAccess) {
  return render(<SessionProvider value={session}>{node}</SessionProvider>);
}

/** Opens everything, and what that brings, until nothing closed is left. */
export async function openAll(root: HTMLElement, act: (work: () => void) => Promise<void> | void) {
  for (let rounds = 0; rounds < 12; rounds += 1) {
    const closed = [...root.querySelectorAll<HTMLElement>('button[aria-expanded="false"]')];
    const rest = [...root.querySelectorAll<HTMLElement>("button")].filter((button) =>
      /^Show (all|earlier)/.test(button.textContent ?? ""),
    );
    const all = [...new Set([...closed, ...rest])];
    if (all.length === 0) return;
    await act(() => {
      for (const button of all) button.click();
    });
  }
}

/** A call with little said of it. */
export function call(id: string, more: Partial<ToolCallItem["toolCall"]> = {}): ToolCallItem {
  const toolCall = {
    id,
    toolName: "bash",
    kind: "execute",
    status: "completed",
    isTodo: false,
    title: "Running command",
    description: "",
    command: `echo ${id}`,
    filePath: "",
    rawOutput: "",
    ...more,
  } as ToolCallItem["toolCall"];
  return { type: "tool_call", id, order: 0, timestamp: null, toolCall } as ToolCallItem;
}

export function text(id: string, content = "Words"): Item {
  return { type: "text", id, order: 0, timestamp: null, content, isStreaming: false } as Item;
}

export function thinking(id: string): Item {
  return { type: "thinking", id, order: 0, timestamp: null, content: "Hm.", isStreaming: false } as Item;
}
