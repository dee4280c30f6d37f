// Every golden item of every case: it shows, closed and open, and says what it holds.
import { act, cleanup } from "@testing-library/react";
import { afterEach, describe, expect, test } from "vitest";
import type { Item, Todo, ToolCall } from "../../src/api/types";
import { visible } from "../../src/content/visible";
import { ItemView } from "../../src/items/item";
import { access, cases, complainLoudly, openAll, show } from "./fixtures";

afterEach(cleanup);
complainLoudly();

type Words = {
  /** Shown as they are, but for breaks between lines. */
  exact?: (string | null | undefined)[];
  /** Shown with their markup, their colours or their form made into something else. */
  loose?: (string | null | undefined)[];
};

/** The words by which one would look for the item. */
function wordsOf(item: Item): Words {
  switch (item.type) {
    case "user_message":
      return { exact: [item.text] };
    case "text":
    case "plan":
      return { loose: [item.content] };
    case "thinking":
      return item.hidden ? { exact: ["not shown by the agent"] } : { loose: [item.content] };
    case "todo_list":
      return { exact: item.todoList.todos.map(wordsOfTodo) };
    case "artifact":
      return { exact: [item.artifact.name, item.artifact.path] };
    case "permission":
      return { exact: [item.title, ...item.options.map((option) => option.name)] };
    case "question":
      return {
        exact: item.questions.flatMap((part) => [part.question, ...part.options.map((o) => o.label)]),
      };
    case "background_task":
      return { exact: [item.description ?? item.taskId], loose: [item.summary] };
    case "compaction":
      return { exact: ["Context compacted", item.trigger], loose: [item.text] };
    case "notice":
      return { loose: [item.text.replace(/^\*\*\w+:\*\*/, "")] };
    case "error":
      return { loose: [item.message] };
    case "tool_call":
      return wordsOfCall(item.toolCall);
  }
}

const wordsOfTodo = (todo: Todo) =>
  todo.status === "in_progress" && todo.activeForm ? todo.activeForm : todo.content;

/** Said by the server when the agent said nothing. */
const EMPTY = ["Running command", "Running subagent", "Running tool"];

function wordsOfCall(call: ToolCall): Words {
  const exact = [call.command, call.filePath, call.pattern];
  const loose = [call.error, call.plan, call.taskOutput];
  if (call.description !== call.title && !EMPTY.includes(call.description ?? ""))
    exact.push(call.description);
  for (const diff of call.diffs ?? []) {
    exact.push(diff.path);
    // Lines that stayed may be folded away.
    const before = new Set((diff.oldText ?? "").split("\n"));
    const hunks = diff.hunks?.flatMap((hunk) => hunk.lines);
    loose.push(
      ...(hunks?.filter((line) => line.startsWith("+")).map((line) => line.slice(1)) ??
        (diff.newText ?? "").split("\n").filter((line) => !before.has(line))),
    );
  }
  for (const todo of call.todos ?? []) exact.push(wordsOfTodo(todo));
  if (!call.diffs?.length) loose.push(call.rawOutput?.replace(/^ +Line (\d+):/gm, "$1"));
  return { exact, loose };
}

/** Without breaks, and with what cannot be seen made visible. */
const bare = (text: string) => visible(text.replace(/\s+/g, ""));

/** The words of a text; of a very long one the first, the rest may be folded. */
function tokens(text: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are no words
  const plain = text.slice(0, 3000).replace(/\u001b\[[\d;]*m/g, " ");
  return plain.match(/[\p{L}\p{N}]{2,}/gu)?.slice(0, 300) ?? [];
}

function sound(root: HTMLElement) {
  const shown = root.textContent ?? "";
  expect(shown.trim()).not.toBe("");
  for (const mistake of ["undefined", "[object Object]", "NaN"]) expect(shown).not.toContain(mistake);
  const buttons = [...root.querySelectorAll("button, a")];
  const nameless = buttons.filter(
    (button) => !(button.getAttribute("aria-label") ?? button.textContent)?.trim(),
  );
  // A line of a text may be empty; a part of ours may not.
  const parts = [...root.querySelectorAll("p, li")].filter((part) => !part.closest("pre, article"));
  const empty = parts.filter((part) => !part.textContent?.trim());
  expect([...nameless, ...empty].map((element) => element.outerHTML.slice(0, 200))).toEqual([]);
}

const known = new Set<string>();

/** Whether the same was shown in another case. A task is what its session makes of it. */
function isKnown(item: Item): boolean {
  if (item.type === "tool_call" && item.toolCall.kind === "task") return false;
  const said = JSON.stringify(item, (name, value) =>
    ["id", "order", "timestamp", "blockId", "durationMs", "toolCallId"].includes(name) ? undefined : value,
  );
  if (known.has(said)) return true;
  known.add(said);
  return false;
}

test("the cases are found", () => {
  expect(cases.length).toBeGreaterThan(450);
});

describe.each(cases)("%s", { timeout: 30_000 }, (_, items) => {
  test("shows", async () => {
    const session = access(items);
    for (const item of items) {
      if (isKnown(item)) continue;
      const { container, unmount } = show(<ItemView item={item} />, session);
      sound(container);
      await openAll(container, (work) => act(async () => work()));
      sound(container);
      const shown = bare(container.textContent ?? "");
      const { exact = [], loose = [] } = wordsOf(item);
      // A place in the folder of the session is not worth a word.
      const said = exact.filter((words) => words && words !== ".").map((words) => bare(words!));
      const told = loose.flatMap((text) => tokens(text ?? ""));
      const missing = [...said, ...told].filter((words) => !shown.includes(words));
      expect(missing, item.id).toEqual([]);
      unmount();
    }
  });
});
