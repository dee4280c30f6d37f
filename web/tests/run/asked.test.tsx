import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Item, PermissionItem, QuestionItem } from "../../src/api/types";
import { SessionProvider } from "../../src/state/context";
import type { View } from "../../src/state/session";
import { Waiting } from "../../src/ui/waiting";
import { access, call } from "../items/fixtures";
import { refused, runState, served } from "./fixtures";

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const permission = {
  type: "permission",
  id: "p",
  order: 1,
  timestamp: null,
  requestId: "r1.0",
  toolCallId: "c",
  title: "Clean up",
  options: [
    { optionId: "once", name: "Allow once", kind: "allow_once" },
    { optionId: "no", name: "Reject", kind: "reject_once" },
  ],
} as PermissionItem;
const question = {
  type: "question",
  id: "q",
  order: 2,
  timestamp: null,
  requestId: "r2",
  toolCallId: "c",
  questions: [{ question: "Which?", multiSelect: false, options: [{ label: "Red" }, { label: "Blue" }] }],
} as QuestionItem;

function show(items: Item[], requests: string[], ended = false, denyReasons = false) {
  const page = (items: Item[], requests: string[]) => {
    const view = { items, ended, outline: null } as unknown as View;
    const run = runState({ state: requests.length ? "waiting" : "running", requests, denyReasons });
    return (
      <SessionProvider value={access(items, { asked: new Set(requests) })}>
        <Waiting view={view} run={run} onShow={() => {}} />
        <textarea aria-label="Elsewhere" />
      </SessionProvider>
    );
  };
  const { rerender } = render(page(items, requests));
  return (items: Item[], requests: string[]) => rerender(page(items, requests));
}
const settle = () => act(() => vi.advanceTimersByTimeAsync(500));
const button = (name: RegExp) => screen.getByRole("button", { name }) as HTMLButtonElement;

describe("a permission", () => {
  const items = [call("c", { command: "rm -r tmp" }), permission];

  test("of an agent elsewhere is only shown", () => {
    show(items, []);
    expect(screen.getByText(/The agent waits for an answer/)).toBeTruthy();
    expect(screen.queryByRole("button", { name: /Allow/ })).toBeNull();
  });

  test("is shown whatever else is known of the session", () => {
    show(items, ["r1.0"], true);
    expect(button(/Allow once/)).toBeTruthy();
    cleanup();
    show(items, [], true);
    expect(screen.getByText(/The agent waits for an answer/)).toBeTruthy();
  });

  test("is given once, with the command in sight", async () => {
    const asked = served(() => ({ body: { done: true } }));
    show(items, ["r1.0"]);
    expect(screen.getByText("rm -r tmp")).toBeTruthy();
    expect(button(/Allow once/).disabled).toBe(true);
    await settle();
    fireEvent.click(button(/Allow once/));
    fireEvent.click(button(/Reject/));
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]).toMatchObject({
      method: "POST",
      path: "/api/sessions/s/permissions/r1.0",
      body: { optionId: "once" },
    });
    expect(button(/Allow once/).disabled).toBe(true);
  });

  test("is given by a key, but not while one writes", async () => {
    const asked = served(() => ({ body: { done: true } }));
    show(items, ["r1.0"]);
    fireEvent.keyDown(document.body, { key: "1" });
    await settle();
    screen.getByLabelText("Elsewhere").focus();
    fireEvent.keyDown(screen.getByLabelText("Elsewhere"), { key: "1" });
    expect(asked).toHaveLength(0);
    screen.getByLabelText("Elsewhere").blur();
    fireEvent.keyDown(document.body, { key: "3" });
    fireEvent.keyDown(document.body, { key: "2" });
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]?.body).toEqual({ optionId: "no" });
  });

  test("a press that was meant for the one before does not give the next", async () => {
    const asked = served(() => ({ body: { done: true } }));
    const change = show(items, ["r1.0"]);
    await settle();
    fireEvent.keyDown(document.body, { key: "1" });
    await waitFor(() => expect(asked).toHaveLength(1));
    change([{ ...permission, id: "p2", requestId: "r1.1" }], ["r1.1"]);
    fireEvent.keyDown(document.body, { key: "1" });
    fireEvent.click(button(/Allow once/));
    expect(asked).toHaveLength(1);
  });

  test("that somebody gave before says so and stays shut", async () => {
    served(() => refused(409, "ALREADY_ANSWERED", "too late"));
    show(items, ["r1.0"]);
    await settle();
    fireEvent.click(button(/Allow once/));
    expect((await screen.findByRole("alert")).textContent).toContain("answered this before");
    expect(button(/Allow once/).disabled).toBe(true);
  });

  test("that could not be given can be tried again", async () => {
    served(() => "cut");
    show(items, ["r1.0"]);
    await settle();
    fireEvent.click(button(/Allow once/));
    expect((await screen.findByRole("alert")).textContent).toContain("narrows does not answer");
    expect(button(/Allow once/).disabled).toBe(false);
  });

  test("that goes away unanswered tells so for a while", async () => {
    const change = show(items, ["r1.0"]);
    await settle();
    change([items[0]!], []);
    expect(screen.getByRole("status").textContent).toContain("answered elsewhere");
    await act(() => vi.advanceTimersByTimeAsync(7000));
    expect(screen.queryByRole("status")).toBeNull();
  });

  test("to change a file shows the change, also if only the arguments tell it", () => {
    const input = { file_path: "a.ts", old_string: "const a = 1;", new_string: "const a = 2;" };
    const edit = call("c", { command: "", toolName: "edit", kind: "edit", filePath: "a.ts", input });
    show([edit, permission], ["r1.0"]);
    const card = screen.getByRole("region", { name: "The agent asks for permission" });
    expect(card.textContent).toContain("const a = 1;");
    expect(card.textContent).toContain("const a = 2;");
  });

  test("says itself what it is about, whatever the call is called and told later", () => {
    const toolCall = { ...call("c", { command: "rm -r tmp" }).toolCall, description: "Just list the files" };
    show([call("c", { command: "ls" }), { ...permission, title: "rm -r tmp", toolCall }], ["r1.0"]);
    const card = screen.getByRole("region", { name: "The agent asks for permission" });
    expect(card.textContent).toContain("wants to run this command");
    expect(card.textContent?.split("rm -r tmp")).toHaveLength(2);
    expect(card.textContent).not.toContain("Just list");
  });

  test("shows the exact command before the words of the agent, however many these are", () => {
    const { toolCall } = call("c", { command: "rm -r tmp && reboot" });
    show([{ ...permission, title: `Tidy up ${"gently ".repeat(300)}`, toolCall }], ["r1.0"]);
    const told = screen.getByRole("region", { name: "What is asked for" }).textContent ?? "";
    expect(told.indexOf("rm -r tmp && reboot")).toBeGreaterThan(0);
    expect(told.indexOf("rm -r tmp && reboot")).toBeLessThan(told.indexOf("Tidy up"));
  });

  test("to carry out a plan shows the plan, as text and not as JSON", () => {
    const plan = "# Steps\n\n- first\n- second";
    const { toolCall } = call("c", { command: "", toolName: "plan_mode", plan, input: { plan } });
    show([{ ...permission, title: "ExitPlanMode", toolCall }], ["r1.0"]);
    const card = screen.getByRole("region", { name: "The agent asks for permission" });
    expect(card.querySelectorAll("li")).toHaveLength(2 + permission.options.length);
    expect(card.textContent).toContain("leave plan mode and carry out this plan");
    expect(card.textContent).not.toMatch(/"plan"|ExitPlanMode/);
  });

  test("is refused in words where the agent can be told", async () => {
    const asked = served(() => ({ body: { done: true } }));
    show(items, ["r1.0"]);
    expect(screen.queryByLabelText(/Why not/)).toBeNull();
    cleanup();
    show(items, ["r1.0"], false, true);
    await settle();
    expect(button(/Deny and tell/).disabled).toBe(true);
    fireEvent.change(screen.getByLabelText(/Why not/), { target: { value: " use src instead " } });
    fireEvent.click(button(/Deny and tell/));
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]?.body).toEqual({ optionId: "no", message: "use src instead" });
  });

  test("shows what a tool that nobody knows is given, nothing hidden", async () => {
    const tool = call("c", { command: "", toolName: "mcp", input: { target: "a\u202eb" } });
    show([tool, permission], ["r1.0"]);
    expect(screen.getByText(/a⟨U\+202E⟩b/)).toBeTruthy();
  });
});

describe("a question", () => {
  test("with one answer is answered by a click", async () => {
    const asked = served(() => ({ body: { done: true } }));
    show([question], ["r2"]);
    await settle();
    fireEvent.click(button(/Blue/));
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]?.body).toEqual({ answers: { "Which?": "Blue" } });
  });

  test("is answered in own words", async () => {
    const asked = served(() => ({ body: { done: true } }));
    show([question], ["r2"]);
    await settle();
    expect(button(/Send/).disabled).toBe(true);
    fireEvent.change(screen.getByLabelText("Another answer"), { target: { value: " Green " } });
    fireEvent.click(button(/Send/));
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]?.body).toEqual({ answers: { "Which?": "Green" } });
  });
});
