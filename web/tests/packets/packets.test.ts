// The view `packets` of every recorded session, read by a front end of such packets: what it shows is
// what the items say. Each text once, each card once, one end for each turn.
import { describe, expect, test } from "vitest";
import type { Item, ToolCall } from "../../src/api/types";
import { cases } from "../fixtures";
import { type Card, Consumer } from "./consumer";
import { faults } from "./fields";
import { sanitizePathsInText } from "./paths";

const all = cases();

/** What streams and is taken back later: a text that was cut off and said again. A front end keeps it. */
const TAKEN_BACK = ["claude-stream/made-cut-and-retried"];

/** Fields that those documents do not know. */
const EXTRA = ["toolName", "messageId", "usage", "parentToolCallId"];

function read(packets: unknown[]): Consumer {
  const consumer = new Consumer();
  for (const packet of packets) consumer.take(packet);
  return consumer;
}

const byOrder = (items: Item[]) => [...items].sort((a, b) => a.order - b.order);

/** The words of all texts of a kind. Where one ends and the next begins is the front end's business. */
function words(items: Item[], kind: "text" | "thinking") {
  return byOrder(items).flatMap((item) => (item.type === kind && item.content ? [item.content] : []));
}

function cards(items: Item[]): ToolCall[] {
  const calls = items.flatMap((item) => (item.type === "tool_call" ? [item.toolCall] : []));
  // A front end has lists for calls that write todos, and no cards.
  return calls.filter((call) => !call.isTodo);
}

/** A front end cuts what looks like its own agent's notes, also where somebody quotes them. */
function ownCut(answer: string): string {
  return answer.replace(/<task_metadata>[\s\S]*?<\/task_metadata>/g, "").trim();
}

/** What a card shows of what its call gave. */
function outputOf(call: ToolCall): string {
  if (call.kind === "edit" && call.diffs?.[0]?.newText != null) return call.diffs[0].newText;
  return call.rawOutput ?? "";
}

/** The same in a card, where the front end may print all of it as JSON. */
function shows(card: Card, call: ToolCall): boolean {
  const output = sanitizePathsInText(outputOf(call));
  if (card.rawOutput === output) return true;
  const failed = call.status === "failed" || call.status === "cancelled";
  if (failed && output === "" && card.rawOutput === sanitizePathsInText(call.error ?? "")) return true;
  if (!card.rawOutput.startsWith("{")) return false;
  const raw = JSON.parse(card.rawOutput);
  return raw.output === output || (failed && [output, call.error].includes(raw.error));
}

test("there are recorded sessions", () => expect(all.length).toBeGreaterThan(400));

describe.each(all)("$name", ({ name, items, events, packets }) => {
  const given = packets();
  const consumer = read(given);

  test("every packet is read, and none is for a call that nobody knows", () => {
    expect(consumer.lost).toEqual([]);
  });

  test("every field is there, and of its type", () => {
    for (const packet of given) expect(faults(packet), JSON.stringify(packet)).toEqual([]);
  });

  test("each text once", () => {
    for (const kind of ["text", "thinking"] as const) {
      const texts = consumer.items.flatMap((item) =>
        item.type === kind && !item.task ? [item.content] : [],
      );
      const [shown, expected] = [texts.join(""), words(items, kind).join("")];
      if (TAKEN_BACK.includes(name)) {
        expect(shown.endsWith(expected), kind).toBe(true);
        continue;
      }
      expect(shown.length, kind).toBe(expected.length);
      // Texts of subagents that work at the same time come in turns.
      if (shown !== expected) {
        expect([...shown].sort(), kind).toEqual([...expected].sort());
        expect(items.some((item) => item.parentToolCallId)).toBe(true);
      }
    }
  });

  test("each card once, with its command, its output and its status", () => {
    const shown = consumer.items.flatMap((item) => (item.type === "tool_call" ? [item.toolCall] : []));
    const calls = cards(items);
    expect(shown.map((card) => card.id).sort()).toEqual(calls.map((call) => call.id).sort());
    for (const call of calls) {
      const card = shown.find((card) => card.id === call.id)!;
      const is = { status: card.status, command: card.command };
      const command = sanitizePathsInText(call.command ?? "");
      expect(is, call.id).toEqual({ status: call.status, command });
      if (!["pending", "in_progress"].includes(call.status ?? "pending") && call.kind !== "task") {
        expect(shows(card, call), `${call.id}: ${card.rawOutput} is not ${outputOf(call)}`).toBe(true);
      }
      if (call.kind === "task") {
        const answers = consumer.items.filter((item) => "task" in item && item.task === call.id);
        const answer = call.status === "completed" && ownCut(call.taskOutput ?? "");
        const expected = answer ? [answer] : [];
        expect(answers.map((item) => (item as { content: string }).content.trim())).toEqual(expected);
        expect(card.rawOutput).toBe(sanitizePathsInText(call.rawOutput ?? ""));
      }
      if (call.kind === "edit" && call.diffs?.length) {
        const last = call.diffs.at(-1)!;
        if (last.oldText != null && last.newText != null) {
          expect([card.oldContent, card.newContent], call.id).toEqual([last.oldText, last.newText]);
        }
      }
    }
  });

  test("todos are those of the last list", () => {
    const lists = byOrder(items).flatMap((item) => (item.type === "todo_list" ? [item.todoList] : []));
    const shown = consumer.items.flatMap((item) => (item.type === "todo_list" ? [item.todos] : []));
    expect(shown.filter((todos) => todos.length === 0)).toEqual([]);
    // A plan is a list too, of which this front end knows nothing.
    const plans = given.some((packet) => packet.type === "agent_plan_update");
    if (plans || lists.length === 0) return;
    const last = lists.at(-1)!.todos.map((todo) => [todo.content, todo.activeForm]);
    expect(shown.at(-1)!.map((todo) => [todo.content, todo.activeForm])).toEqual(last);
  });

  test("one end for each turn", () => {
    expect(consumer.ends).toEqual(ends(events()));
    // Nothing but a new turn comes between two ends of which the first is an error.
    let failed = false;
    for (const packet of given) {
      if (packet.type === "prompt_response") expect(failed).toBe(false);
      failed = packet.type === "error";
    }
  });
});

/** How the turns of a session ended, by its events: one that failed has failed, whatever is said then. */
function ends(events: Record<string, unknown>[]): string[] {
  const ends: string[] = [];
  let failed = false;
  for (const event of events) {
    if (event.type === "error" && !event.parentToolCallId) {
      ends.push("error");
      failed = true;
    } else if (event.type === "prompt_response") {
      if (!failed) ends.push("prompt_response");
      failed = false;
    } else if (/^(user_message|text_chunk|thinking_chunk|tool_call_)/.test(String(event.type))) {
      failed = false;
    }
  }
  return ends;
}

describe("a field that is missing or of another type is seen", () => {
  const good = all.flatMap((one) => one.packets());
  const types = [...new Set(good.map((packet) => String(packet.type)))];
  test("there are packets of every type", () => expect(types.length).toBe(11));

  test.each(types)("%s", (type) => {
    const packet = good.find((p) => p.type === type && (!("status" in p) || p.status !== "in_progress"))!;
    const needed = Object.keys(packet).filter((key) => !EXTRA.includes(key));
    expect(needed.length).toBeGreaterThan(1);
    for (const key of needed) {
      const { [key]: _, ...without } = packet;
      expect(faults(without), `${type} without ${key}`).not.toEqual([]);
      expect(faults({ ...packet, [key]: [7] }), `${type} with another ${key}`).not.toEqual([]);
    }
  });
});
