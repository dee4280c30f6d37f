import { afterEach, vi } from "vitest";
import type { RunState } from "../../src/api/types";

export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: unknown;
  signal: AbortSignal | undefined;
}

type Reply = { status?: number; body?: unknown } | "cut" | Promise<{ status?: number; body?: unknown }>;

/** A server that answers as it is told. */
export function served(reply: (asked: Asked) => Reply): Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal("fetch", (address: string, options: RequestInit = {}) => {
    const url = new URL(address, "http://narrows.test");
    const one: Asked = {
      method: options.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      headers: (options.headers ?? {}) as Record<string, string>,
      body: options.body ? JSON.parse(String(options.body)) : undefined,
      signal: options.signal ?? undefined,
    };
    asked.push(one);
    const answer = reply(one);
    if (answer === "cut") return Promise.reject(new TypeError("Failed to fetch"));
    return new Promise((done, failed) => {
      one.signal?.addEventListener("abort", () => failed(new DOMException("aborted", "AbortError")));
      void Promise.resolve(answer).then(({ status = 200, body = {} }) =>
        done(new Response(JSON.stringify(body), { status })),
      );
    });
  });
  return asked;
}

export const refused = (status: number, code: string, message: string) => ({
  status,
  body: { error: { code, message } },
});

afterEach(() => vi.unstubAllGlobals());

export function runState(more: Partial<RunState> = {}): RunState {
  return {
    version: 1,
    allowRun: true,
    agent: "scripted",
    state: "idle",
    queue: [],
    turn: null,
    cancelling: false,
    modes: [],
    mode: null,
    models: [],
    model: null,
    requests: [],
    error: null,
    ...more,
  };
}
