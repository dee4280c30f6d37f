import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { RunModel } from "../../src/state/run";
import { refused, runState, served } from "./fixtures";

let model: RunModel;
let hidden = false;

beforeEach(() => {
  vi.useFakeTimers();
  hidden = false;
  vi.spyOn(document, "hidden", "get").mockImplementation(() => hidden);
  model = new RunModel("s");
});

afterEach(() => {
  model.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const soon = (time = 0) => vi.advanceTimersByTimeAsync(time);
const never = new Promise<{ body: unknown }>(() => {});
const look = (is: boolean) => {
  hidden = is;
  document.dispatchEvent(new Event("visibilitychange"));
};

describe("the run of the session on the screen", () => {
  test("is asked for plainly, then waited for by its version", async () => {
    let news!: (reply: { body: unknown }) => void;
    const later = new Promise<{ body: unknown }>((done) => {
      news = done;
    });
    const asked = served(({ query }) => {
      if (!query.has("after")) return { body: runState({ version: 3 }) };
      return query.get("after") === "3" ? later : never;
    });
    const told = vi.fn();
    model.subscribe(told);
    model.start();
    await soon();
    expect(asked.map(({ path, query }) => `${path}?${query}`)).toEqual([
      "/api/sessions/s/run?",
      "/api/sessions/s/run?after=3",
    ]);
    expect(model.run?.state).toBe("idle");
    news({ body: runState({ version: 4, state: "running" }) });
    await soon();
    expect(model.run?.state).toBe("running");
    expect(told).toHaveBeenCalledTimes(2);
    expect(asked.at(-1)?.query.get("after")).toBe("4");
  });

  test("is not asked for again where nothing runs, until somebody wakes it", async () => {
    let state = runState({ version: 0, state: "none" });
    const asked = served(({ query }) => (query.has("after") ? never : { body: state }));
    model.start();
    await soon(600_000);
    expect(asked).toHaveLength(1);
    state = runState({ version: 1, state: "starting" });
    model.wake();
    await soon();
    expect(model.run?.state).toBe("starting");
    expect(asked).toHaveLength(3);
  });

  test("is asked for now and then while no process is there: the server answers at once", async () => {
    const asked = served(() => ({ body: runState({ version: 0, state: "ended" }) }));
    model.start();
    await soon(60_000);
    expect(asked.length).toBeGreaterThan(3);
    expect(asked.length).toBeLessThan(8);
    const before = asked.length;
    model.wake();
    await soon();
    expect(asked.length).toBeGreaterThan(before);
  });

  test("is left alone while nobody looks, and when one leaves", async () => {
    const asked = served(({ query }) => (query.has("after") ? never : { body: runState() }));
    model.start();
    await soon();
    look(true);
    expect(asked[1]?.signal?.aborted).toBe(true);
    await soon(60_000);
    expect(asked).toHaveLength(2);
    look(false);
    await soon();
    expect(asked).toHaveLength(4);
    expect(asked[2]?.query.has("after")).toBe(false);
    model.stop();
    expect(asked[3]?.signal?.aborted).toBe(true);
    await soon(60_000);
    look(false);
    expect(asked).toHaveLength(4);
  });

  test("a server that is away is asked ever less often, and at once when it is back", async () => {
    let away = true;
    const asked = served(({ query }) => {
      if (away) return "cut";
      return query.has("after") ? never : { body: runState({ version: 0, state: "ended" }) };
    });
    model.start();
    await soon(60_000);
    expect(asked.length).toBeGreaterThan(6);
    expect(asked.length).toBeLessThan(14);
    away = false;
    model.wake();
    await soon();
    expect(model.run?.state).toBe("ended");
  });

  test("what may not be seen is not asked for again and again", async () => {
    const asked = served(() => refused(403, "FORBIDDEN", "no"));
    model.start();
    await soon(600_000);
    expect(asked).toHaveLength(1);
    expect(model.run).toBeNull();
  });
});
