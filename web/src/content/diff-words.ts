import { diffWordsWithSpace } from "diff";
import type { DiffLine, DiffRow } from "./diff-lines";
import type { TokenLine } from "./highlight";

/** From where to where in a line something changed. */
export type Range = readonly [from: number, to: number];
export type Marks = ReadonlyMap<DiffLine, readonly Range[]>;

const maxPairs = 300;
const maxLine = 400;
/** Lines that share less than this are other lines, not changed ones. */
const alike = 0.4;

function pair(before: DiffLine, after: DiffLine, marks: Map<DiffLine, readonly Range[]>): void {
  if (before.text.length > maxLine || after.text.length > maxLine) return;
  const removed: Range[] = [];
  const added: Range[] = [];
  let same = 0;
  let old = 0;
  let now = 0;
  for (const change of diffWordsWithSpace(before.text, after.text)) {
    const length = change.value.length;
    if (change.removed) removed.push([old, old + length]);
    else if (change.added) added.push([now, now + length]);
    else same += change.value.trim().length;
    if (!change.added) old += length;
    if (!change.removed) now += length;
  }
  const longer = Math.max(before.text.trim().length, after.text.trim().length);
  if (same < longer * alike) return;
  marks.set(before, removed);
  marks.set(after, added);
}

/** What changed within lines: the lines of a removed run and those added in their place, one by one. */
export function wordMarks(rows: readonly DiffRow[]): Marks {
  const marks = new Map<DiffLine, readonly Range[]>();
  let pairs = 0;
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const close = () => {
    for (let n = 0; n < removed.length && n < added.length && pairs < maxPairs; n++, pairs++) {
      pair(removed[n]!, added[n]!, marks);
    }
    removed = [];
    added = [];
  };
  for (const row of rows) {
    if (row.kind === "del") {
      if (added.length > 0) close();
      removed.push(row);
    } else if (row.kind === "add") added.push(row);
    else close();
  }
  close();
  return marks;
}

export interface Piece {
  text: string;
  kind: string;
  marked: boolean;
}

/** The words of a line with their colours, cut where marks begin and end. */
export function pieces(text: string, tokens: TokenLine | undefined, ranges: readonly Range[] = []): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  let next = 0;
  // Colours of another text than this one would show that other text.
  const fits =
    tokens !== undefined && tokens.reduce((sum, token) => sum + token.text.length, 0) === text.length;
  for (const token of fits ? tokens : [{ text, kind: "" }]) {
    const end = at + token.text.length;
    while (at < end) {
      while (next < ranges.length && ranges[next]![1] <= at) next++;
      const range = ranges[next];
      const marked = range !== undefined && range[0] <= at;
      const stop = Math.min(end, range === undefined ? end : marked ? range[1] : range[0]);
      found.push({ text: text.slice(at, stop), kind: token.kind, marked });
      at = stop;
    }
  }
  return found;
}
