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

test("a session that was over and goes on is not over", async () => {
  let take: (message: Message) => void = () => {};
  const socket = {
    link: "live",
    subscribe: () => () => {},
    follow: (wanted: { take(message: Message): void }) => {
      take = wanted.take;
      return () => {};
    },
  } as unknown as Socket;
  served(({ path }) => {
    if (path.endsWith("/items")) return { body: page("idle", true) };
    if (path.endsWith("/outline")) return { body: { turns: [], files: [], waiting: [] } };
    return { body: { info: info("running"), ended: false } };
  });
  const model = new SessionModel("s", socket);
  await model.start({ end: true });
  expect(model.view.ended).toBe(true);
  const text = { type: "text", id: "t", order: 0, timestamp: null, content: "On.", isStreaming: true };
  take({ type: "changes", cursor: "e-6", seq: 6, changes: [{ change: "put", item: text }] });
  expect(model.view.ended).toBe(false);
  await vi.waitFor(() => expect(isRunning(model.view, undefined)).toBe(true));
  await vi.waitFor(() => expect(model.view.items).toMatchObject([{ isStreaming: true }]));
  take({ type: "ended", cursor: "e-6" });
  expect(isRunning(model.view, undefined)).toBe(false);
  model.stop();
});
