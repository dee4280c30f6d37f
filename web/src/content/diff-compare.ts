import { diffArrays } from "diff";
import type { Kind } from "./diff-patch";

export interface Run {
  kind: Kind;
  /** Where it begins on each side, and how many lines it has. */
  old: number;
  new: number;
  count: number;
}

export interface Compared {
  runs: Run[];
  /** The texts were too different to compare line by line. */
  coarse: boolean;
}

/** What was removed and added between two texts. What they share at both ends is found at once; the
 * middle is compared as long as that is quick. */
export function compareLines(before: readonly string[], after: readonly string[]): Compared {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const runs: Run[] = [];
  let old = 0;
  let now = 0;
  const add = (kind: Kind, count: number) => {
    if (count === 0) return;
    runs.push({ kind, old, new: now, count });
    if (kind !== "add") old += count;
    if (kind !== "del") now += count;
  };
  add("same", head);
  const removed = before.slice(head, before.length - tail);
  const added = after.slice(head, after.length - tail);
  let coarse = false;
  if (removed.length === 0 || added.length === 0) {
    add("del", removed.length);
    add("add", added.length);
  } else {
    const small = removed.length + added.length < 40_000;
    const changes = small ? diffArrays(removed, added, { maxEditLength: 2000, timeout: 250 }) : undefined;
    if (changes) for (const change of order(changes)) add(kindOf(change), change.count);
    else {
      coarse = true;
      add("del", removed.length);
      add("add", added.length);
    }
  }
  add("same", tail);
  return { runs, coarse };
}

interface Change {
  added: boolean;
  removed: boolean;
  count: number;
}

function kindOf(change: Change): Kind {
  return change.added ? "add" : change.removed ? "del" : "same";
}

/** Removed lines come before those that were added in their place. */
function order(changes: readonly Change[]): Change[] {
  const found = [...changes];
  for (let n = 1; n < found.length; n++) {
    if (found[n]!.removed && found[n - 1]!.added) [found[n - 1], found[n]] = [found[n]!, found[n - 1]!];
  }
  return found;
}
