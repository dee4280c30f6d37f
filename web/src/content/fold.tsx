import { useCallback, useState, useSyncExternalStore } from "react";
import { OpenState, type SessionAccess, useSession } from "../state/context";
import styles from "./fold.module.css";

/** 12 431: groups of three, never broken over lines. */
export function spaced(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function countOf(n: number, one: string, many = `${one}s`): string {
  return `${spaced(n)} ${n === 1 ? one : many}`;
}

function useMaybeSession(): SessionAccess | null {
  try {
    // biome-ignore lint/correctness/useHookAtTopLevel: it is called each time; only what it throws is caught
    return useSession();
  } catch {
    return null;
  }
}

/** Where open and closed is kept: with the session if there is a key, else with the component. */
function useOpenState(openKey: string | undefined): OpenState {
  const session = useMaybeSession();
  const [own] = useState(() => new OpenState());
  return openKey !== undefined && session ? session.open : own;
}

/** Like `useOpen`, and outside of a session too. */
export function useToggle(openKey: string | undefined, initial = false): [boolean, (on: boolean) => void] {
  const state = useOpenState(openKey);
  const key = openKey ?? "";
  const said = useSyncExternalStore(state.subscribe, () => state.get(key));
  const set = useCallback((on: boolean) => state.set(key, on), [state, key]);
  return [said ?? initial, set];
}

export interface FoldOptions {
  total: number;
  /** Up to this many are shown at once. */
  over: number;
  head: number;
  tail: number;
  openKey?: string;
  /** There is more to show than the number says: a line that was cut. */
  cut?: boolean;
}

export interface Fold {
  /** Shown from the start … */
  head: number;
  /** … and from here to the end. */
  from: number;
  hidden: number;
  opened: boolean;
  /** Something shown is not whole. */
  cut: boolean;
  /** How many the next step shows. */
  step: number;
  more(): void;
  less(): void;
}

/** More than this at once would make the page slow; a further step shows as many again. */
const page = 5000;

/** Shows the first and the last of many, and the rest in steps. */
export function useFold({ total, over, head, tail, openKey, cut }: FoldOptions): Fold {
  const state = useOpenState(openKey);
  const key = `${openKey ?? ""}/all`;
  const steps = useSyncExternalStore(state.subscribe, () => {
    let n = 0;
    while (state.get(`${key}${n}`)) n++;
    return n;
  });
  const more = useCallback(() => state.set(`${key}${steps}`, true), [state, key, steps]);
  const less = useCallback(() => {
    for (let n = steps - 1; n >= 0; n--) state.set(`${key}${n}`, false);
  }, [state, key, steps]);
  const foldable = total > over || cut === true;
  const opened = steps > 0 && foldable;
  let first = total;
  if (total > over) first = opened ? Math.min(total, steps * page) : head;
  const from = Math.max(first, total - tail);
  const hidden = from - first;
  return {
    head: first,
    from,
    hidden,
    opened,
    cut: cut === true && !opened,
    step: Math.min(hidden, page),
    more,
    less,
  };
}

export interface FoldRowProps {
  fold: Fold;
  total: number;
  /** What is counted: "line". */
  unit: string;
}

/** The button in the place of what is not shown. */
export function FoldMore({ fold, total, unit }: FoldRowProps) {
  if (fold.hidden === 0 && !fold.cut) return null;
  if (fold.hidden === 0) {
    return (
      <button type="button" className={styles.more} aria-expanded={false} onClick={fold.more}>
        <span className={styles.action}>Show whole {unit}s</span>
      </button>
    );
  }
  const all = fold.step + fold.head >= total || fold.step === fold.hidden;
  return (
    <button type="button" className={styles.more} aria-expanded={false} onClick={fold.more}>
      <span className={styles.hidden}>… {countOf(fold.hidden, `more ${unit}`)}</span>
      <span className={styles.action}>
        {all ? `Show all (${countOf(total, unit)})` : `Show ${spaced(fold.step)} more`}
      </span>
    </button>
  );
}

/** The button below what was opened. */
export function FoldLess({ fold }: { fold: Fold }) {
  if (!fold.opened) return null;
  return (
    <button type="button" className={styles.less} aria-expanded={true} onClick={fold.less}>
      Show less
    </button>
  );
}
