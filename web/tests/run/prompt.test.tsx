import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { createRef } from "react";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { RunState } from "../../src/api/types";
import { newKey } from "../../src/state/send";
import { Prompt } from "../../src/ui/prompt";
import { refused, runState, served } from "./fixtures";

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

let sessions = 0;
const show = (run: Partial<RunState> = {}, id = `s${++sessions}`) => {
  const done = vi.fn();
  const of = (more: Partial<RunState>) => (
    <Prompt id={id} run={runState(more)} input={createRef()} onDone={done} />
  );
  const page = render(of(run));
  return { id, done, change: (more: Partial<RunState>) => page.rerender(of(more)), unmount: page.unmount };
};
const box = () => screen.getByRole("textbox", { name: "Message" }) as HTMLTextAreaElement;
const write = (value: string) => fireEvent.change(box(), { target: { value } });
const taken = { status: 202, body: { id: "7", state: "queued", cursor: null } };

describe("a message", () => {
  test("is sent by Enter, once, and leaves the box empty", async () => {
    const asked = served(() => taken);
    const { id, done } = show();
    write("Do it");
    fireEvent.keyDown(box(), { key: "Enter", shiftKey: true });
    expect(asked).toHaveLength(0);
    fireEvent.keyDown(box(), { key: "Enter" });
    fireEvent.keyDown(box(), { key: "Enter" });
    await waitFor(() => expect(box().value).toBe(""));
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ path: `/api/sessions/${id}/send-message`, body: { content: "Do it" } });
    expect(asked[0]?.query.get("wait")).toBe("false");
    expect(done).toHaveBeenCalled();
  });

  test("is tried once more under the same key when the answer is lost", async () => {
    let tries = 0;
    const asked = served(() => (++tries === 1 ? "cut" : taken));
    show();
    write("Do it");
    fireEvent.click(screen.getByRole("button", { name: "Send" }));
    await waitFor(() => expect(box().value).toBe(""), { timeout: 30_000 });
    expect(asked).toHaveLength(2);
    expect(asked[0]?.headers["idempotency-key"]).toBeTruthy();
    expect(asked[1]?.headers["idempotency-key"]).toBe(asked[0]?.headers["idempotency-key"]);
  });

  test("that is refused stays, with the reason; sent again it has the same key, changed another", async () => {
    const asked = served(() => refused(429, "TOO_MANY", "too many messages wait"));
    show();
    const keys = () => asked.map(({ headers }) => headers["idempotency-key"]);
    for (const [n, words] of ["Do it", "Do it", "Do that"].entries()) {
      if (box().value !== words) write(words);
      fireEvent.click(screen.getByRole("button", { name: "Send" }));
      await waitFor(() => expect(asked).toHaveLength(n + 1));
      await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("too many messages wait"));
      expect(box().value).toBe(words);
    }
    expect(keys()[1]).toBe(keys()[0]);
    expect(keys()[2]).not.toBe(keys()[0]);
  });

  test("that is half written waits for its writer", () => {
    const { id, unmount } = show();
    write("Half a");
    unmount();
    show();
    expect(box().value).toBe("");
    cleanup();
    show({}, id);
    expect(box().value).toBe("Half a");
  });

  test("is a new line on a phone", () => {
    const asked = served(() => taken);
    vi.spyOn(window, "matchMedia").mockReturnValue({ matches: true } as MediaQueryList);
    show();
    write("Do it");
    fireEvent.keyDown(box(), { key: "Enter" });
    expect(asked).toHaveLength(0);
    vi.restoreAllMocks();
  });

  test("of a page without TLS has a key too", () => {
    vi.stubGlobal("crypto", {
      getRandomValues: (bytes: Uint8Array) => bytes.fill(171),
    });
    expect(newKey()).toBe("ab".repeat(16));
  });
});

describe("pictures", () => {
  const paste = (file: File) =>
    fireEvent.paste(box(), { clipboardData: { files: [file], types: ["Files"], getData: () => "" } });

  test("go with a message, and can be removed", async () => {
    const asked = served(() => taken);
    show();
    paste(new File([new Uint8Array([1, 2, 3])], "a.png", { type: "image/png" }));
    expect((await screen.findByRole("img", { name: "a.png" })).getAttribute("src")).toBe(
      "data:image/png;base64,AQID",
    );
    paste(new File([new Uint8Array([4])], "b.gif", { type: "image/gif" }));
    await screen.findByRole("img", { name: "b.gif" });
    fireEvent.click(screen.getByRole("button", { name: "Remove b.gif" }));
    fireEvent.click(screen.getByRole("button", { name: "Send" }));
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]?.body).toEqual({ content: "", images: [{ mimeType: "image/png", data: "AQID" }] });
  });

  test("of other kinds, or too large, are refused", async () => {
    show();
    paste(new File(["<svg/>"], "a.svg", { type: "image/svg+xml" }));
    expect((await screen.findByRole("alert")).textContent).toContain("a.svg is no PNG");
    paste(new File([new Uint8Array((5 << 20) + 1)], "b.png", { type: "image/png" }));
    await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("larger than 5 MB"));
    expect(screen.queryByRole("img")).toBeNull();
  });
});

describe("the agent", () => {
  const says = () => screen.getByRole("status").textContent;

  test("is told of in words", () => {
    const { change } = show({ state: "starting" });
    expect(says()).toBe("Starting scripted…");
    change({ state: "running", turn: { id: "1", cursor: "a-1" } });
    expect(says()).toBe("Working");
    change({ state: "waiting", turn: { id: "1", cursor: "a-1" } });
    expect(says()).toBe("Waiting for you");
    change({ state: "idle" });
    expect(says()).toBe("Idle");
    change({ state: "ended", error: "exit 3\nout of luck" });
    expect(says()).toContain("A message starts it again");
    expect(screen.getByRole("alert").textContent).toContain("out of luck");
  });

  test("is stopped by a press, ended by a second one", async () => {
    vi.useFakeTimers();
    const asked = served(() => ({ body: { done: true } }));
    const { id } = show({ state: "running", turn: { id: "1", cursor: "a-1" } });
    const stop = (name: string) => screen.getByRole("button", { name });
    await act(async () => {
      stop("Stop").click();
      await vi.advanceTimersByTimeAsync(10);
    });
    await act(async () => stop("Stopping…").click());
    expect(asked.map(({ path }) => path)).toEqual([`/api/sessions/${id}/cancel`]);
    await act(() => vi.advanceTimersByTimeAsync(5000));
    await act(async () => stop("End agent").click());
    expect(asked.map(({ path }) => path)).toEqual([`/api/sessions/${id}/cancel`, `/api/sessions/${id}/stop`]);
  });

  test("has no button to stop what does not run", () => {
    show({ state: "idle" });
    expect(screen.queryByRole("button", { name: /Stop/ })).toBeNull();
  });

  test("is set to another mode", async () => {
    const asked = served(() => ({ body: { done: true } }));
    const { id } = show({
      modes: [
        { id: "build", name: "Build" },
        { id: "plan", name: "Plan" },
      ],
      mode: "build",
      models: [{ id: "only", name: "Only" }],
    });
    fireEvent.change(screen.getByRole("combobox", { name: "Mode" }), { target: { value: "plan" } });
    await waitFor(() => expect(asked).toHaveLength(1));
    expect(asked[0]).toMatchObject({
      method: "PATCH",
      path: `/api/sessions/${id}/run`,
      body: { mode: "plan" },
    });
    expect(screen.queryByRole("combobox", { name: "Model" })).toBeNull();
    await waitFor(() =>
      expect((screen.getByRole("combobox", { name: "Mode" }) as HTMLSelectElement).disabled).toBe(false),
    );
  });
});

describe("messages that wait", () => {
  test("are taken back whole, if they are of this page", async () => {
    const asked = served(({ method }) => (method === "DELETE" ? { body: { done: true } } : taken));
    const { id, change } = show({ state: "running", turn: { id: "1", cursor: "a-1" } });
    write("First line\nSecond line");
    fireEvent.keyDown(box(), { key: "Enter" });
    await waitFor(() => expect(box().value).toBe(""));
    change({ state: "running", turn: { id: "1", cursor: "a-1" }, queue: [{ id: "7", text: "First li" }] });
    fireEvent.click(screen.getByRole("button", { name: "Take back" }));
    await waitFor(() => expect(box().value).toBe("First line\nSecond line"));
    expect(asked.at(-1)).toMatchObject({ method: "DELETE", path: `/api/sessions/${id}/queue/7` });
  });

  test("may have begun before", async () => {
    served(() => ({ body: { done: false } }));
    show({ queue: [{ id: "9", text: "Something" }] });
    fireEvent.click(screen.getByRole("button", { name: "Take back" }));
    expect((await screen.findByRole("alert")).textContent).toContain("has this message already");
  });
});
