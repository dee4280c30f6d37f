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
    const last = runs.at(-1);
    if (last?.kind === kind) last.count += count;
    else runs.push({ kind, old, new: now, count });
    if (kind !== "add") old += count;
    if (kind !== "del") now += count;
  };
  add("same", head);
  const removed = before.slice(head, before.length - tail);
  const added = after.slice(head, after.length - tail);
  const coarse = !between(removed, added, add, Date.now() + LONGEST);
  add("same", tail);
  return { runs, coarse };
}

/** Comparing takes at most so long, in milliseconds. */
const LONGEST = 250;
/** Longer texts are parted first. */
const LONG = 4000;

/** Adds what was removed and added; false where that is everything, as the texts are too different. */
function between(
  removed: readonly string[],
  added: readonly string[],
  add: (kind: Kind, count: number) => void,
  until: number,
): boolean {
  if (removed.length > 0 && added.length > 0) {
    const timeout = until - Date.now();
    const lines = removed.length + added.length;
    const changes =
      lines < LONG && timeout > 0
        ? diffArrays([...removed], [...added], { maxEditLength: 2000, timeout })
        : null;
    if (changes) {
      for (const change of order(changes)) add(kindOf(change), change.count);
      return true;
    }
    const marks = timeout > 0 ? inBoth(removed, added) : [];
    if (marks.length > 0) {
      let fine = true;
      let [old, now] = [0, 0];
      for (const [a, b] of marks) {
        fine = between(removed.slice(old, a), added.slice(now, b), add, until) && fine;
        add("same", 1);
        [old, now] = [a + 1, b + 1];
      }
      return between(removed.slice(old), added.slice(now), add, until) && fine;
    }
    if (lines >= LONG && lines < 10 * LONG && timeout > 0) {
      const changes = diffArrays([...removed], [...added], { maxEditLength: 2000, timeout });
      if (changes) {
        for (const change of order(changes)) add(kindOf(change), change.count);
        return true;
      }
    }
  }
  add("del", removed.length);
  add("add", added.length);
  return removed.length === 0 || added.length === 0;
}

/** Where lines stand that are in either text once, as many as stand in the same order. */
function inBoth(before: readonly string[], after: readonly string[]): [number, number][] {
  const once = (lines: readonly string[]) => {
    const places = new Map<string, number>();
    lines.forEach((line, at) => {
      places.set(line, places.has(line) ? -1 : at);
    });
    return places;
  };
  const [mine, theirs] = [once(before), once(after)];
  const pairs: [number, number][] = [];
  before.forEach((line, at) => {
    const other = theirs.get(line) ?? -1;
    if (mine.get(line) === at && other >= 0) pairs.push([at, other]);
  });
  // The longest row that rises: of each length the one that ends first, and what was before it.
  const ends: number[] = [];
  const earlier: number[] = [];
  pairs.forEach(([, place], n) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]!]![1] < place) low = middle + 1;
      else high = middle;
    }
    earlier.push(low > 0 ? ends[low - 1]! : -1);
    ends[low] = n;
  });
  const row: [number, number][] = [];
  for (let n = ends.at(-1) ?? -1; n >= 0; n = earlier[n]!) row.push(pairs[n]!);
  return row.reverse();
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
