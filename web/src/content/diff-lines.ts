import type { Diff } from "../api/types";
import { compareLines, type Run } from "./diff-compare";
import { type Kind, type PatchFile, type PatchHunk, parsePatch, patchLine } from "./diff-patch";

export interface DiffLine {
  kind: Kind;
  text: string;
  /** Its numbers in the files, where they are known. */
  old?: number;
  new?: number;
  /** Where it is in the texts of the two sides. */
  oldAt?: number;
  newAt?: number;
  /** The last of its file, without a newline. */
  bare?: boolean;
}

/** Lines that did not change and are not shown. */
export interface Gap {
  kind: "gap";
  count?: number;
  heading?: string;
  /** The lines, if they are known. */
  open?: () => DiffLine[];
}

export type DiffRow = DiffLine | Gap;

export interface FileDiff {
  rows: DiffRow[];
  /** The texts that the lines are from, for their colours. */
  oldText: string;
  newText: string;
  additions: number;
  deletions: number;
  /** What is to be said besides. */
  remarks: string[];
  movedFrom?: string;
}

const context = 3;
const none: FileDiff = { rows: [], oldText: "", newText: "", additions: 0, deletions: 0, remarks: [] };

interface Side {
  lines: string[];
  crlf: boolean;
  /** It ends with a newline, or it is empty. */
  closed: boolean;
}

function side(text: string | null): Side {
  if (text === null || text === "") return { lines: [], crlf: false, closed: true };
  const lines = text.split("\n");
  const closed = lines.at(-1) === "";
  if (closed) lines.pop();
  const ends = lines.filter((line) => line.endsWith("\r")).length;
  // All but a last line without an end.
  const crlf = ends > 0 && ends >= lines.length - 1;
  return { lines: crlf ? lines.map((line) => line.replace(/\r$/, "")) : lines, crlf, closed };
}

/** Lines of two whole texts, with what did not change folded away. */
function fromTexts(diff: Diff): FileDiff {
  const before = side(diff.oldText);
  const after = side(diff.newText);
  const whole = diff.scope === "file";
  const remarks: string[] = [];
  const both = before.lines.length > 0 && after.lines.length > 0;
  if (both && before.crlf !== after.crlf) {
    remarks.push(`Line endings changed from ${before.crlf ? "CRLF" : "LF"} to ${after.crlf ? "CRLF" : "LF"}`);
  }
  if (whole && both && before.closed !== after.closed) {
    // A newline at the end is part of the last line: without it, that line is another one.
    const last = before.closed ? after : before;
    last.lines[last.lines.length - 1] += "\0";
  }
  const { runs, coarse } = compareLines(before.lines, after.lines);
  if (coarse) remarks.push("Too different to compare line by line: shown as removed and added");
  const bare = (line: string) => line.endsWith("\0");
  const make = (run: Run, n: number): DiffLine => {
    const text = run.kind === "del" ? before.lines[run.old + n]! : after.lines[run.new + n]!;
    const line: DiffLine = { kind: run.kind, text: bare(text) ? text.slice(0, -1) : text };
    if (run.kind !== "add") line.oldAt = run.old + n;
    if (run.kind !== "del") line.newAt = run.new + n;
    if (whole && line.oldAt !== undefined) line.old = line.oldAt + 1;
    if (whole && line.newAt !== undefined) line.new = line.newAt + 1;
    const closed = run.kind === "del" ? before.closed : after.closed;
    const end = run.kind === "del" ? before.lines.length : after.lines.length;
    const at = run.kind === "del" ? run.old + n : run.new + n;
    if (whole && !closed && at === end - 1) line.bare = true;
    return line;
  };
  const rows: DiffRow[] = [];
  const lines = (run: Run, from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => make(run, from + n));
  for (const [n, run] of runs.entries()) {
    const head = n === 0 ? 0 : context;
    const tail = n === runs.length - 1 ? 0 : context;
    const hidden = run.count - head - tail;
    if (run.kind !== "same" || hidden <= 1) {
      for (const line of lines(run, 0, run.count)) rows.push(line);
      continue;
    }
    rows.push(...lines(run, 0, head));
    rows.push({ kind: "gap", count: hidden, open: () => lines(run, head, run.count - tail) });
    rows.push(...lines(run, run.count - tail, run.count));
  }
  const total = (kind: Kind) => runs.reduce((sum, run) => (run.kind === kind ? sum + run.count : sum), 0);
  const unmarked = (of: Side) => of.lines.map((line) => (bare(line) ? line.slice(0, -1) : line)).join("\n");
  const [additions, deletions] = [total("add"), total("del")];
  if (additions + deletions === 0) return { ...none, remarks: remarks.length ? remarks : ["No changes"] };
  return { rows, oldText: unmarked(before), newText: unmarked(after), additions, deletions, remarks };
}

/** Lines of the parts that a patch gives. */
function fromHunks(hunks: readonly PatchHunk[], file?: PatchFile): FileDiff {
  const rows: DiffRow[] = [];
  const oldLines: string[] = [];
  const newLines: string[] = [];
  let oldNext: number | undefined = 1;
  let additions = 0;
  let deletions = 0;
  let crlf = 0;
  for (const [n, hunk] of hunks.entries()) {
    const gap: Gap = { kind: "gap" };
    if (hunk.heading) gap.heading = hunk.heading;
    const skipped: number | undefined =
      hunk.oldStart !== undefined && oldNext !== undefined ? hunk.oldStart - oldNext : undefined;
    if (skipped !== undefined && skipped > 0) gap.count = skipped;
    if (n > 0 || gap.count || gap.heading) rows.push(gap);
    let old = hunk.oldStart;
    let now = hunk.newStart;
    for (const line of hunk.lines) {
      const row: DiffLine = { kind: line.kind, text: line.text };
      if (row.text.endsWith("\r")) crlf++;
      if (line.bare) row.bare = true;
      if (line.kind !== "add") {
        row.oldAt = oldLines.push(line.text) - 1;
        if (old !== undefined) row.old = old++;
      }
      if (line.kind !== "del") {
        row.newAt = newLines.push(line.text) - 1;
        if (now !== undefined) row.new = now++;
      }
      if (line.kind === "add") additions++;
      if (line.kind === "del") deletions++;
      rows.push(row);
    }
    oldNext = old;
  }
  const remarks: string[] = [];
  const lines = rows.filter((row): row is DiffLine => row.kind !== "gap");
  if (crlf > 0 && crlf === lines.length) {
    for (const line of lines) line.text = line.text.replace(/\r$/, "");
    remarks.push("CRLF line endings");
  }
  if (lines.length === 0)
    remarks.push(
      file?.binary ? "Binary file" : file?.action === "move" ? "Moved, not changed" : "No changes",
    );
  const joined = (of: string[]) => of.join("\n").replaceAll("\r\n", "\n");
  return { rows, oldText: joined(oldLines), newText: joined(newLines), additions, deletions, remarks };
}

/** The parts of a patch that are about a file: all of them if none says so. */
function filesFor(path: string, files: readonly PatchFile[]): PatchFile[] {
  const same = (name: string | undefined) =>
    name !== undefined && (name === path || path.endsWith(`/${name}`) || name.endsWith(`/${path}`));
  const found = files.filter((file) => same(file.to) || same(file.from));
  return found.length > 0 ? found : [...files];
}

function fromPatch(path: string, patch: string): FileDiff | null {
  const files = filesFor(path, parsePatch(patch));
  if (files.length === 0) return null;
  // Parts of other files are headed by their names.
  const hunks = files.flatMap((file) =>
    files.length > 1 && file.to
      ? file.hunks.map((hunk, n) => (n === 0 ? { ...hunk, heading: file.to } : hunk))
      : file.hunks,
  );
  const found = fromHunks(hunks, files[0]);
  const [only] = files;
  if (files.length === 1 && only?.from && only.to && only.from !== only.to) found.movedFrom = only.from;
  return found;
}

function read(diff: Diff): FileDiff {
  if (diff.oldText?.includes("\0") || diff.newText?.includes("\0"))
    return { ...none, remarks: ["Binary file"] };
  if (diff.hunks && diff.hunks.length > 0) {
    const hunks = diff.hunks.map((hunk) => {
      const known = diff.scope === "file" || hunk.oldStart > 0 || hunk.newStart > 0;
      const lines: PatchHunk["lines"] = [];
      for (const line of hunk.lines) {
        const found = line.startsWith("\\") ? null : patchLine(line);
        if (found) lines.push(found);
        else if (lines.length) lines[lines.length - 1]!.bare = true;
      }
      return known ? { oldStart: hunk.oldStart, newStart: hunk.newStart, lines } : { lines };
    });
    return fromHunks(hunks);
  }
  if (diff.patch) {
    const found = fromPatch(diff.path, diff.patch);
    if (found && (found.rows.length > 0 || (diff.oldText === null && diff.newText === null))) return found;
  }
  if (diff.oldText === null && diff.newText === null) return { ...none, remarks: ["No text of this change"] };
  return fromTexts(diff);
}

const known = new WeakMap<Diff, FileDiff>();

/** What a diff says, read once. */
export function readDiff(diff: Diff): FileDiff {
  let found = known.get(diff);
  if (!found) {
    found = read(diff);
    known.set(diff, found);
  }
  return found;
}

function lineCount(text: string): number {
  let n = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) n++;
  return n;
}

/** How many lines were added and removed: as it was told, else counted. */
export function countDiff(diff: Diff): { additions: number; deletions: number } {
  if (diff.additions !== undefined && diff.deletions !== undefined) {
    return { additions: diff.additions, deletions: diff.deletions };
  }
  const oneSided = !diff.patch && !diff.hunks?.length;
  if (oneSided && diff.oldText === null) return { additions: lineCount(diff.newText ?? ""), deletions: 0 };
  if (oneSided && diff.newText === null) return { additions: 0, deletions: lineCount(diff.oldText ?? "") };
  const { additions, deletions } = readDiff(diff);
  return { additions, deletions };
}
