import { type RefObject, useLayoutEffect, useState, useSyncExternalStore } from "react";

export type DiffStyle = "unified" | "split";

const key = "narrows.diff";
const listeners = new Set<() => void>();

function read(): DiffStyle {
  try {
    return localStorage.getItem(key) === "split" ? "split" : "unified";
  } catch {
    return "unified";
  }
}

let now: DiffStyle | undefined;

function subscribe(tell: () => void): () => void {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

export function setDiffStyle(style: DiffStyle): void {
  now = style;
  try {
    localStorage.setItem(key, style);
  } catch {
    // Not remembered, then.
  }
  for (const tell of listeners) tell();
}

/** How diffs are shown, everywhere on the page. */
export function useDiffStyle(): DiffStyle {
  return useSyncExternalStore(subscribe, () => {
    now ??= read();
    return now;
  });
}

/** Two columns of code need this much room. */
const wide = 720;

export function useWide(ref: RefObject<HTMLElement | null>): boolean {
  const [is, set] = useState(false);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const look = () => set(element.clientWidth >= wide);
    look();
    if (typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref]);
  return is;
}
