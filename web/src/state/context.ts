import { createContext, useCallback, useContext, useEffect, useState, useSyncExternalStore } from "react";
import type { Item } from "../api/types";
import { wholeOf } from "./parts";

/** What the parts of a transcript can ask for. */
export interface SessionAccess {
  sessionId: string;
  /** The address of a picture. */
  blob(hash: string): string;
  /** An item with all its texts. */
  whole(id: string): Promise<Item>;
  /** Keeps up the items of a subagent while somebody looks; gives what is known of them. */
  children: ChildrenAccess;
  /** What is open, by a key: rows come and go while one scrolls. */
  open: OpenState;
  /** Whether the agent is at work. */
  running: boolean;
  /** Questions that can be answered on this page, by their `requestId`. */
  asked?: ReadonlySet<string>;
  /** A link to an item, whole address. */
  link(id: string): string;
}

export interface ChildrenAccess {
  /** Begins to show the items below a call; the answer ends it. */
  watch(parent: string, changed: () => void): () => void;
  /** The same value as long as nothing changes. */
  get(parent: string): ChildItems;
  /** More of them, before the first. */
  before(parent: string): void;
}

export interface ChildItems {
  items: readonly Item[];
  loading: boolean;
  /** There are more before the first. */
  more: boolean;
  error?: string;
}

/** Which cards are open. */
export class OpenState {
  private states = new Map<string, boolean>();
  private listeners = new Set<() => void>();

  get(key: string): boolean | undefined {
    return this.states.get(key);
  }

  set(key: string, open: boolean): void {
    this.states.set(key, open);
    for (const tell of this.listeners) tell();
  }

  subscribe = (tell: () => void): (() => void) => {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  };
}

const Access = createContext<SessionAccess | null>(null);
export const SessionProvider = Access.Provider;

export function useSession(): SessionAccess {
  const access = useContext(Access);
  if (!access) throw new Error("a part of a transcript outside of one");
  return access;
}

/** Whether something is open; until somebody says otherwise, as `initial` says. */
export function useOpen(key: string, initial = false): [boolean, (open: boolean) => void] {
  const { open } = useSession();
  const said = useSyncExternalStore(open.subscribe, () => open.get(key));
  const set = useCallback((now: boolean) => open.set(key, now), [open, key]);
  return [said ?? initial, set];
}

export interface Whole<T extends Item> {
  item: T;
  loading: boolean;
  error?: string;
  retry(): void;
}

/** The item with all its texts, fetched when it is `wanted` and something of it was cut. */
export function useWhole<T extends Item>(item: T, wanted: boolean): Whole<T> {
  const { whole } = useSession();
  const [found, setFound] = useState<{ of: Item; item?: T; error?: string }>();
  const [tries, setTries] = useState(0);
  const cut = item.clipped !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` asks once more
  useEffect(() => {
    if (!wanted || !cut) return;
    let stale = false;
    wholeOf(item, whole).then(
      (full) => stale || setFound({ of: item, item: full }),
      (error) => stale || setFound({ of: item, error: String(error?.message ?? error) }),
    );
    return () => {
      stale = true;
    };
  }, [whole, item, wanted, cut, tries]);
  const retry = useCallback(() => setTries((n) => n + 1), []);
  if (!cut || !wanted) return { item, loading: false, retry };
  if (found?.item?.id === item.id) return { item: found.item, loading: found.of !== item, retry };
  if (found?.of === item && found.error) return { item, loading: false, error: found.error, retry };
  return { item, loading: true, retry };
}

/** The items below a call, kept up while `wanted`. */
export function useChildren(parent: string, wanted: boolean): ChildItems {
  const { children } = useSession();
  const subscribe = useCallback(
    (changed: () => void) => (wanted ? children.watch(parent, changed) : () => {}),
    [children, parent, wanted],
  );
  return useSyncExternalStore(subscribe, () => children.get(parent));
}
