import { useSyncExternalStore } from "react";

/** What the address says is on the screen. */
export interface Route {
  session: string | null;
  /** An item to go to. */
  item: string | null;
  /** What was searched for when it was found. */
  query: string | null;
  /** Nothing is at this address. */
  unknown: boolean;
  /** Grows with every step, so that the same item can be gone to again. */
  step: number;
}

let step = 0;
let current = read();
const listeners = new Set<() => void>();

function read(): Route {
  const path = location.pathname.match(/^\/s\/([^/]+)\/?$/);
  const params = new URLSearchParams(location.search);
  const session = path?.[1] ? decode(path[1]) : null;
  const unknown = !session && location.pathname !== "/";
  return { session, item: params.get("item"), query: params.get("q"), unknown, step: step++ };
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

export function address(session: string | null, item?: string | null, query?: string | null): string {
  if (!session) return "/";
  const params = new URLSearchParams();
  if (item) params.set("item", item);
  if (query) params.set("q", query);
  const path = `/s/${encodeURIComponent(session)}`;
  return params.size ? `${path}?${params}` : path;
}

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  changed();
}

function changed(): void {
  current = read();
  for (const tell of listeners) tell();
}

window.addEventListener("popstate", changed);

export function useRoute(): Route {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => current,
  );
}
