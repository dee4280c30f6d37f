import { afterEach, expect, test, vi } from "vitest";
import type { Message, Socket } from "../../src/api/socket";
import { SessionModel } from "../../src/state/session";
import { isRunning } from "../../src/ui/rows";
import { served } from "../run/fixtures";

afterEach(() => vi.useRealTimers());

const info = (status: string) => ({ status, turns: 1, answers: 0, unknown: 0, malformed: 0 });
const page = (status: string, ended: boolean) => ({
  items: [],
  cursor: "e-5",
  before: false,
  after: false,
  info: info(status),
  ended,
  total: 0,
  nextOrder: 0,
});

function following() {
  const wire = { take: (_: Message): void => {} };
  const socket = {
    link: "live",
    subscribe: () => () => {},
    follow: (wanted: { take(message: Message): void }) => {
      wire.take = wanted.take;
      return () => {};
    },
  } as unknown as Socket;
  return { wire, socket };
}

test("a session that was over and goes on is not over", async () => {
  const { wire, socket } = following();
  served(({ path }) => {
    if (path.endsWith("/items")) return { body: page("idle", true) };
    if (path.endsWith("/outline")) return { body: { turns: [], files: [], waiting: [] } };
    return { body: { info: info("running"), ended: false } };
  });
  const model = new SessionModel("s", socket);
  await model.start({ end: true });
  expect(model.view.ended).toBe(true);
  const text = { type: "text", id: "t", order: 0, timestamp: null, content: "On.", isStreaming: true };
  wire.take({ type: "changes", cursor: "e-6", seq: 6, changes: [{ change: "put", item: text }] });
  expect(model.view.ended).toBe(false);
  await vi.waitFor(() => expect(isRunning(model.view, undefined)).toBe(true));
  await vi.waitFor(() => expect(model.view.items).toMatchObject([{ isStreaming: true }]));
  wire.take({ type: "ended", cursor: "e-6" });
  expect(isRunning(model.view, undefined)).toBe(false);
  model.stop();
});

test("text of an agent that pauses is shown until the next frame, and never twice", async () => {
  const { wire, socket } = following();
  served(({ path }) => {
    if (path.endsWith("/items")) return { body: page("running", false) };
    return { body: { turns: [], files: [], waiting: [] } };
  });
  const model = new SessionModel("s", socket);
  await model.start({ end: true });
  const shown = () => model.view.items.map((item) => (item.type === "text" ? item.content : item.type));
  const text = (content: string) => ({
    ...{ type: "text", id: "t", order: 0, timestamp: null },
    ...{ content, isStreaming: true },
  });
  const append = (text: string) => ({ change: "append", id: "t", field: "content", text });
  // Of an item that has not come yet, which then comes.
  wire.take({ type: "preview", cursor: "e-5", changes: [{ change: "put", item: text("Hel") }] });
  await vi.waitFor(() => expect(shown()).toEqual(["Hel"]));
  wire.take({ type: "changes", cursor: "e-6", seq: 6, changes: [{ change: "put", item: text("Hello ") }] });
  await vi.waitFor(() => expect(shown()).toEqual(["Hello "]));
  // Of one that is there.
  wire.take({ type: "preview", cursor: "e-6", changes: [append("wor")] });
  await vi.waitFor(() => expect(shown()).toEqual(["Hello wor"]));
  wire.take({ type: "preview", cursor: "e-6", changes: [append("worl")] });
  await vi.waitFor(() => expect(shown()).toEqual(["Hello worl"]));
  // What follows takes its place; both may come within one frame of the screen.
  wire.take({ type: "changes", cursor: "e-7", seq: 7, changes: [append("world, ")] });
  wire.take({ type: "preview", cursor: "e-7", changes: [append("an")] });
  await vi.waitFor(() => expect(shown()).toEqual(["Hello world, an"]));
  wire.take({ type: "preview", cursor: "e-7", changes: [] });
  await vi.waitFor(() => expect(shown()).toEqual(["Hello world, "]));
  // A frame of nothing but a cursor takes it back as well, and so does the end.
  wire.take({ type: "preview", cursor: "e-7", changes: [append("an")] });
  await vi.waitFor(() => expect(shown()).toEqual(["Hello world, an"]));
  wire.take({ type: "cursor", cursor: "e-8" });
  await vi.waitFor(() => expect(shown()).toEqual(["Hello world, "]));
  model.stop();
});
