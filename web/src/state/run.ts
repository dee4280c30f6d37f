import { ApiError, api } from "../api/client";
import type { RunState } from "../api/types";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
/** No process is there, and nobody to wait for: the server answers at once. */
const REST = 15_000;
const AT_ONCE = 1000;

/** How the run of the session on the screen stands: one request waits for its next change. */
export class RunModel {
  /** The same value as long as nothing changes; none before it is known. */
  run: RunState | null = null;
  private listeners = new Set<() => void>();
  private asking: AbortController | null = null;
  private woken = false;
  private rouse: (() => void) | null = null;

  constructor(readonly id: string) {}

  start(): void {
    document.addEventListener("visibilitychange", this.look);
    this.look();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.look);
    this.leave();
  }

  subscribe = (tell: () => void): (() => void) => {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  };

  getRun = (): RunState | null => this.run;

  /** Something may be new: whoever rests asks now. */
  wake = (): void => {
    this.woken = true;
    this.rouse?.();
  };

  /** Only what somebody sees is asked for: browsers allow few connections to one host. */
  private look = (): void => {
    if (document.hidden) this.leave();
    else if (!this.asking) {
      this.asking = new AbortController();
      void this.follow(this.asking.signal);
    }
  };

  private leave(): void {
    this.asking?.abort();
    this.asking = null;
    this.rouse?.();
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let after: number | undefined;
    let failures = 0;
    while (!signal.aborted) {
      const began = Date.now();
      this.woken = false;
      try {
        const run = await api.run(this.id, after, signal);
        if (signal.aborted) return;
        failures = 0;
        const news = run.version !== after;
        if (news || run.state !== this.run?.state) this.show(run);
        after = run.version;
        if (run.state === "none" || !run.allowRun) {
          after = undefined;
          await this.rest(Number.POSITIVE_INFINITY, signal);
        } else if (!news && Date.now() - began < AT_ONCE) {
          await this.rest(REST, signal);
        }
      } catch (error) {
        if (signal.aborted) return;
        const refused = error instanceof ApiError && [401, 403, 404].includes(error.status);
        const wait = refused ? Number.POSITIVE_INFINITY : Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures);
        failures += 1;
        after = undefined;
        await this.rest(wait, signal);
      }
    }
  }

  private rest(wait: number, signal: AbortSignal): Promise<void> {
    if (this.woken || signal.aborted) return Promise.resolve();
    return new Promise((done) => {
      const timer = Number.isFinite(wait) ? setTimeout(() => this.rouse?.(), wait) : undefined;
      this.rouse = () => {
        clearTimeout(timer);
        this.rouse = null;
        done();
      };
    });
  }

  private show(run: RunState): void {
    this.run = run;
    for (const tell of this.listeners) tell();
  }
}
