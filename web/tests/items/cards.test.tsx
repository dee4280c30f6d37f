import { act, cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Item, PermissionItem, QuestionItem, ToolCallItem } from "../../src/api/types";
import { ErrorView } from "../../src/items/error";
import { ItemView } from "../../src/items/item";
import { Permission } from "../../src/items/permission";
import { Question } from "../../src/items/question";
import { RowView, useRows } from "../../src/items/steps-view";
import { SessionProvider } from "../../src/state/context";
import { access, call, cases, complainLoudly, show, text, thinking } from "./fixtures";

afterEach(cleanup);
complainLoudly();

const header = () => screen.getAllByRole("button")[0]!;
const base = { order: 0, timestamp: null };

describe("the line of a card", () => {
  const kinds = new Set(
    cases.flatMap(([, items]) =>
      items.flatMap((item) => (item.type === "tool_call" ? item.toolCall.kind : [])),
    ),
  );
  const words: [status: string, running: boolean, word: string][] = [
    ["pending", true, "Not started"],
    ["in_progress", true, "Running"],
    ["completed", true, "Done"],
    ["failed", true, "Failed"],
    ["cancelled", true, "Cancelled"],
    ["in_progress", false, "No end recorded"],
    ["pending", false, "No end recorded"],
    ["completed", false, "Done"],
  ];
  for (const kind of kinds) {
    test.each(words)(`${kind}, %s (running: %s) is said to be %j`, (status, running, word) => {
      const item = call("c", { kind, toolName: "unknown", status, title: "Doing" } as never);
      show(<ItemView item={item} />, access([item], { running }));
      expect(header().getAttribute("aria-expanded")).toBe("false");
      expect(header().textContent).toMatch(new RegExp(`${word}$`));
    });
  }

  test("names what it is done to, the end of it too", () => {
    const path = `${"deep/".repeat(30)}file.test.ts`;
    const item = call("c", { toolName: "read", kind: "read", title: "Reading", command: "", filePath: path });
    show(<ItemView item={item} />, access([item]));
    expect(header().textContent).toContain(path);
    expect(screen.getByText("/file.test.ts")).toBeTruthy();
  });

  test("a file that is changed at two places is one file", () => {
    const hunk = (oldText: string, newText: string) => ({ path: "a.ts", oldText, newText, scope: "hunk" });
    const change = { toolName: "edit", kind: "edit", title: "Editing", command: "", filePath: "a.ts" };
    const diffs = [hunk("one\n", "two\n"), hunk("same\n", "same\n")];
    const item = call("c", { ...change, status: "completed", diffs } as never);
    show(<ItemView item={item} />, access([item]));
    expect(header().textContent).not.toMatch(/file/);
    fireEvent.click(header());
    expect(document.body.textContent).not.toMatch(/2 files|more file|\+0|−0/);
    expect(screen.getAllByRole("region", { name: "a.ts" })).toHaveLength(2);
    cleanup();
    const other = { ...hunk("three\n", "four\n"), path: "b.ts" };
    const both = call("c", { ...change, status: "completed", diffs: [...diffs, other] } as never);
    show(<ItemView item={both} />, access([both]));
    expect(header().textContent).toContain("and 1 more file");
    fireEvent.click(header());
    expect(document.body.textContent).toContain("2 files");
  });

  test("says what came of it", () => {
    const diffs = [
      { path: "a", oldText: "", newText: "x", scope: "file", action: "add", additions: 12, deletions: 3 },
    ];
    const item = call("c", {
      toolName: "edit",
      kind: "edit",
      title: "Editing",
      command: "",
      filePath: "a",
      isNewFile: true,
      diffs: diffs as never,
      exitCode: 1,
      count: 14,
      truncated: true,
      durationMs: 400,
      permission: { decision: "rejected" },
    });
    show(<ItemView item={item} />, access([item]));
    for (const badge of ["new file", "+12", "−3", "exit 1", "14 results", "truncated", "rejected", "0.4 s"]) {
      expect(header().textContent).toContain(badge);
    }
  });

  test("does not count lines of texts that were cut", () => {
    const diffs = [{ path: "a", oldText: "", newText: "x\ny", scope: "file" }];
    const item = call("c", {
      toolName: "edit",
      kind: "edit",
      command: "",
      filePath: "a",
      diffs: diffs as never,
    });
    const cut = { ...item, clipped: { "toolCall.diffs.0.newText": 99_999 } };
    show(<ItemView item={cut} />, access([item]));
    expect(header().textContent).not.toContain("+");
  });

  test("is followed by why it failed", () => {
    const item = call("c", { status: "failed", error: "\n  No such file\nat x" });
    show(<ItemView item={item} />, access([item]));
    expect(screen.getByText("No such file")).toBeTruthy();
  });

  test("is followed by the last lines of a command that runs", () => {
    const rawOutput = "one\ntwo\n\u001b[32mthree\u001b[0m\n10%\r50%\r99%\nfive\n";
    const item = call("c", { status: "in_progress", rawOutput });
    const { container } = show(<ItemView item={item} />, access([item], { running: true }));
    expect(container.querySelector("pre")?.textContent).toBe("three\n99%\nfive");
  });
});

describe("a card", () => {
  test("fetches what was cut when it is opened, and once more when asked", async () => {
    const item = call("c", { rawOutput: "beginning and all the rest" });
    const cut = { ...call("c", { rawOutput: "beginning" }), clipped: { "toolCall.rawOutput": 26 } };
    const whole = vi.fn<() => Promise<Item>>().mockRejectedValueOnce(new Error("gone away"));
    whole.mockResolvedValue(item);
    const { container } = show(<ItemView item={cut} />, access([item], { whole }));
    expect(whole).not.toHaveBeenCalled();
    await act(async () => fireEvent.click(header()));
    expect(container.textContent).toContain("gone away");
    expect(container.textContent).toContain("beginning");
    await act(async () => fireEvent.click(screen.getByText("Try again")));
    expect(container.textContent).toContain("all the rest");
    expect(container.textContent).not.toContain("gone away");
  });

  test("does not fetch with every piece of a long output", async () => {
    vi.useFakeTimers();
    const at = (length: number): ToolCallItem => ({
      ...call("c", { status: "in_progress", rawOutput: "beginning" }),
      clipped: { "toolCall.rawOutput": length },
    });
    const whole = vi.fn(async () => call("c", { status: "in_progress", rawOutput: "all of it" }) as Item);
    const session = access([], { whole, running: true });
    session.open.set("c", true);
    const { container, rerender } = show(<ItemView item={at(0)} />, session);
    for (let piece = 1; piece <= 100; piece += 1) {
      rerender(
        <SessionProvider value={session}>
          <ItemView item={at(piece)} />
        </SessionProvider>,
      );
      await act(async () => vi.advanceTimersByTimeAsync(50));
    }
    vi.useRealTimers();
    expect(whole.mock.calls.length).toBeLessThan(6);
    expect(container.textContent).toContain("all of it");
  });

  test("is the same whether it came in pieces or at once", () => {
    const item = call("c", { rawOutput: "out" });
    const session = access([item], { running: true });
    const { container, rerender } = show(<ItemView item={call("c", { status: "in_progress" })} />, session);
    const { container: fresh } = show(<ItemView item={item} />, access([item], { running: true }));
    rerender(<div />);
    const again = show(<ItemView item={item} />, session);
    expect(again.container.innerHTML).toBe(fresh.innerHTML);
    expect(container).toBeTruthy();
  });
});

describe("a task", () => {
  const task = call("t", {
    toolName: "task",
    kind: "task",
    title: "Running task",
    description: "Look",
    command: "",
    rawOutput: "Look around",
    taskOutput: "It is **fine**.",
    input: { prompt: "Look around" },
  });
  const children: Item[] = [
    { ...base, type: "user_message", id: "u", text: "Look around", images: [], origin: "agent" } as Item,
    ...Array.from({ length: 5 }, (_, at) => call(`k${at}`)),
    text("end", "It is **fine**."),
  ].map((item) => ({ ...item, parentToolCallId: "t" }) as Item);

  test("shows its steps folded, and says prompt and report once", () => {
    const { container } = show(<ItemView item={task} />, access([task, ...children]));
    fireEvent.click(header());
    expect(container.textContent!.split("Look around")).toHaveLength(2);
    expect(container.textContent!.split("fine")).toHaveLength(2);
    expect(container.textContent).toContain("5 steps");
    expect(container.textContent).not.toContain("echo k0");
    fireEvent.click(screen.getByText("5 steps"));
    expect(container.textContent).toContain("echo k0");
  });

  test("loads earlier steps when asked", () => {
    const before = vi.fn();
    const known = { items: children, loading: false, more: true };
    const access_ = access([task], { children: { watch: () => () => {}, get: () => known, before } });
    show(<ItemView item={task} />, access_);
    fireEvent.click(header());
    fireEvent.click(screen.getByText("Show earlier"));
    expect(before).toHaveBeenCalledWith("t");
  });
});

describe("a thought", () => {
  test("is open while it comes and folds when it is done", () => {
    const done = thinking("t");
    const { container, unmount } = show(
      <ItemView item={{ ...done, isStreaming: true } as Item} />,
      access([done]),
    );
    expect(container.textContent).toContain("Hm.");
    unmount();
    const folded = show(<ItemView item={done} />, access([done]));
    expect(folded.container.textContent).not.toContain("Hm.");
    expect(header().textContent).toBe("Thought · 1 word");
  });

  test("that is hidden or empty is no card", () => {
    for (const odd of [{ hidden: true }, { content: "" }]) {
      const { container, unmount } = show(
        <ItemView item={{ ...thinking("t"), ...odd } as Item} />,
        access([]),
      );
      expect(container.textContent).toContain("not shown by the agent");
      expect(container.querySelector("button")).toBeNull();
      unmount();
    }
  });
});

describe("what needs a person", () => {
  const permission = {
    ...base,
    type: "permission",
    id: "p",
    requestId: "0",
    toolCallId: "c",
    title: "rm -r tmp",
    options: [{ optionId: "once", name: "Allow once", kind: "allow_once" }],
  } as PermissionItem;
  const question = {
    ...base,
    type: "question",
    id: "q",
    toolCallId: "c",
    questions: [
      { question: "Which?", multiSelect: false, options: [{ label: "Red" }, { label: "Blue" }] },
      { question: "More?", multiSelect: true, options: [{ label: "A" }, { label: "B" }] },
    ],
  } as QuestionItem;

  test("is shown, and can only be answered where somebody listens", () => {
    show(<ItemView item={permission} />, access([]));
    expect(screen.getByText("waiting for an answer")).toBeTruthy();
    expect(screen.queryByRole("button", { name: /Allow/ })).toBeNull();
    cleanup();
    const answer = vi.fn();
    show(<Permission item={permission} call={call("c").toolCall} onAnswer={answer} />, access([]));
    expect(screen.getByText("echo c")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: /Allow once/ }));
    expect(answer).toHaveBeenCalledWith("once");
  });

  test("is answered when every question has its answer", () => {
    const answer = vi.fn();
    show(<Question item={question} onAnswer={answer} />, access([]));
    for (const name of ["Red", "Blue", "A", "B"]) {
      expect((screen.getByText(/^Send/) as HTMLButtonElement).disabled).toBe(
        name === "Red" || name === "Blue" || name === "A",
      );
      fireEvent.click(screen.getByText(name));
    }
    fireEvent.click(screen.getByText(/^Send/));
    expect(answer).toHaveBeenCalledWith({ "Which?": "Blue", "More?": "A, B" });
  });

  test("is a form with fields of their own kinds, of which some may be left out", () => {
    const [answer, decline] = [vi.fn(), vi.fn()];
    const options = [{ label: "Europe" }, { label: "America" }];
    const part = { multiSelect: false, options: [] };
    const questions = [
      { ...part, question: "Where to?\nPlace", name: "place", options },
      { ...part, question: "Nodes", name: "nodes", format: "integer", default: "3", optional: true },
      {
        ...part,
        question: "Fast",
        name: "fast",
        options: [{ label: "Yes" }, { label: "No" }],
        optional: true,
      },
    ];
    const form = <Question item={{ ...question, questions }} onAnswer={answer} onDecline={decline} />;
    show(form, access([]));
    const send = () => screen.getByText(/^Send/) as HTMLButtonElement;
    const number = screen.getByRole("spinbutton") as HTMLInputElement;
    expect([send().disabled, number.value, screen.queryAllByRole("textbox").length]).toEqual([true, "3", 0]);
    fireEvent.click(screen.getByText("Europe"));
    fireEvent.change(number, { target: { value: "5" } });
    // What was chosen and may be left out can be taken back.
    fireEvent.click(screen.getByText("Yes"));
    fireEvent.click(screen.getByText("Yes"));
    fireEvent.click(send());
    expect(answer).toHaveBeenCalledWith({ place: "Europe", nodes: "5" });
    fireEvent.click(screen.getByText("Do not answer"));
    expect(decline).toHaveBeenCalledOnce();
  });

  test("is an address to visit: nothing is typed", () => {
    const answer = vi.fn();
    const words = "Log in there https://example.com/login";
    const questions = [{ question: words, options: [], multiSelect: false, format: "url", optional: true }];
    show(<Question item={{ ...question, questions }} onAnswer={answer} />, access([]));
    expect(screen.getByRole("link").getAttribute("href")).toBe("https://example.com/login");
    expect(screen.queryByRole("textbox")).toBeNull();
    fireEvent.click(screen.getByText("Done"));
    expect(answer).toHaveBeenCalledWith({});
  });

  test("marks what was chosen", () => {
    const answers = [
      { question: "Which?", answer: "Blue" },
      { question: "More?", answer: "None of them" },
    ];
    show(<Question item={{ ...question, answers }} />, access([]));
    expect(screen.getByLabelText("Chosen").closest("li")?.textContent).toBe("Blue");
    expect(screen.getByText("None of them")).toBeTruthy();
  });
});

test("an error says what happened, what was kept, and what can be done", () => {
  const message = '{"error":{"code":400,"message":"prompt is too long","details":[]}}';
  const error = {
    ...base,
    type: "error",
    id: "e",
    message,
    code: 400,
    details: null,
    retryable: true,
  } as never;
  const retry = vi.fn();
  const { container } = show(<ErrorView item={error} onRetry={retry} />, access([]));
  expect(container.textContent).toContain("prompt is too long");
  expect(container.textContent).toContain("Code 400");
  expect(container.textContent).toContain("Everything before it is kept.");
  expect(container.textContent).not.toContain("{");
  fireEvent.click(screen.getByText("Try again"));
  expect(retry).toHaveBeenCalled();
  fireEvent.click(screen.getByText("Details"));
  expect(container.textContent).toContain("{");
});

test("a run of calls opens and folds", () => {
  const items = [
    ...Array.from({ length: 4 }, (_, at) => call(`k${at}`, { durationMs: 500 })),
    call("e", {
      kind: "edit",
      toolName: "edit",
      command: "",
      filePath: "a.ts",
      status: "failed",
      error: "Not so",
    }),
  ];
  function List({ items }: { items: ToolCallItem[] }) {
    return useRows(items, false).map((row) => <RowView key={row.key} row={row} />);
  }
  const { container } = show(<List items={items} />, access(items));
  expect(header().textContent).toBe("5 steps4 commands1 edit1 failed2.0 s");
  expect(container.textContent).toContain("Not so");
  expect(container.textContent).not.toContain("echo k0");
  fireEvent.click(header());
  expect(container.textContent).toContain("echo k0");
  expect(container.textContent!.split("Not so")).toHaveLength(2);
  fireEvent.click(header());
  expect(container.textContent).not.toContain("echo k0");
});
