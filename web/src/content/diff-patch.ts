// Patches as agents give them: unified ones, and the ones that begin with "*** Begin Patch".

export type Kind = "same" | "add" | "del";

export interface PatchLine {
  kind: Kind;
  text: string;
  /** The last of its file, without a newline. */
  bare?: boolean;
}

export interface PatchHunk {
  /** The numbers of the first lines, if they are known. */
  oldStart?: number;
  newStart?: number;
  /** What stands behind the @@: the function it is in. */
  heading?: string;
  lines: PatchLine[];
}

export interface PatchFile {
  from?: string;
  to?: string;
  hunks: PatchHunk[];
  binary?: boolean;
  action?: "add" | "update" | "delete" | "move";
}

const kinds: Record<string, Kind> = { " ": "same", "+": "add", "-": "del" };

function strip(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** A line of a hunk with its sign; null if it has none. */
export function patchLine(line: string): PatchLine | null {
  if (strip(line) === "") return { kind: "same", text: "" };
  const kind = kinds[line[0]!];
  return kind ? { kind, text: line.slice(1) } : null;
}

const hunkHead = /^@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@+ ?(.*)$/;

function named(line: string, prefix: RegExp): string | undefined {
  const name = strip(line)
    .slice(4)
    .split("\t")[0]!
    .trim()
    .replace(/^"(.*)"$/, "$1");
  return name === "/dev/null" ? undefined : name.replace(prefix, "");
}

function parseUnified(lines: readonly string[]): PatchFile[] {
  const files: PatchFile[] = [];
  let file: PatchFile | undefined;
  let hunk: PatchHunk | undefined;
  let oldLeft = 0;
  let newLeft = 0;
  const begin = (): PatchFile => {
    file = { hunks: [] };
    files.push(file);
    hunk = undefined;
    return file;
  };
  for (const [n, line] of lines.entries()) {
    const head = hunkHead.exec(strip(line));
    if (hunk && line.startsWith("\\")) {
      const last = hunk.lines.at(-1);
      if (last) last.bare = true;
    } else if (hunk && (oldLeft > 0 || newLeft > 0) && !head) {
      const found = patchLine(line);
      if (!found || (n === lines.length - 1 && line === "")) continue;
      if (found.kind !== "add") oldLeft--;
      if (found.kind !== "del") newLeft--;
      hunk.lines.push(found);
    } else if (head) {
      const into: PatchFile = file ?? begin();
      hunk = { oldStart: Number(head[1]), newStart: Number(head[3]), lines: [] };
      if (head[5]) hunk.heading = head[5].trim();
      oldLeft = Number(head[2] ?? 1);
      newLeft = Number(head[4] ?? 1);
      into.hunks.push(hunk);
    } else if (line.startsWith("diff --git ")) begin();
    else if (line.startsWith("--- ")) {
      const into: PatchFile = file && file.hunks.length === 0 && !file.from ? file : begin();
      into.from = named(line, /^a\//);
      if (into.from === undefined) into.action = "add";
    } else if (line.startsWith("+++ ")) {
      const into: PatchFile = file ?? begin();
      into.to = named(line, /^b\//);
      if (into.to === undefined) into.action = "delete";
    } else if (file && line.startsWith("rename to ")) {
      file.to = strip(line).slice(10);
      file.action = "move";
    } else if (file && line.startsWith("rename from ")) file.from = strip(line).slice(12);
    else if (/^(?:Binary files .* differ|GIT binary patch)/.test(line)) (file ?? begin()).binary = true;
  }
  return files.filter((found) => found.hunks.length > 0 || found.binary || found.action);
}

function parseBegun(lines: readonly string[]): PatchFile[] {
  const files: PatchFile[] = [];
  let file: PatchFile | undefined;
  let hunk: PatchHunk | undefined;
  for (const whole of lines) {
    const line = strip(whole);
    const named = /^\*\*\* (Add|Update|Delete) File: (.*)$/.exec(line);
    if (named) {
      const action = named[1]!.toLowerCase() as "add" | "update" | "delete";
      file = { from: named[2], to: named[2], hunks: [], action };
      files.push(file);
      hunk = undefined;
    } else if (file && line.startsWith("*** Move to: ")) {
      file.to = line.slice(13);
      file.action = "move";
    } else if (line.startsWith("*** ")) {
      hunk = undefined;
    } else if (file && line.startsWith("@@")) {
      hunk = { lines: [] };
      const heading = line.replace(/^@@ ?/, "").replace(/ ?@@$/, "").trim();
      if (heading) hunk.heading = heading;
      file.hunks.push(hunk);
    } else if (file) {
      const found = patchLine(whole);
      if (!found || (whole === "" && !hunk)) continue;
      if (!hunk) {
        hunk = { lines: [] };
        file.hunks.push(hunk);
      }
      hunk.lines.push(found);
    }
  }
  for (const one of files) one.hunks = one.hunks.filter((of) => of.lines.length > 0);
  return files;
}

/** Lines with signs and nothing else. */
function parseBare(lines: readonly string[]): PatchFile[] {
  const found: PatchLine[] = [];
  let marked = false;
  for (const [n, line] of lines.entries()) {
    if (n === lines.length - 1 && line === "") break;
    const one = patchLine(line);
    if (!one) return [];
    marked ||= one.kind !== "same";
    found.push(one);
  }
  return marked ? [{ hunks: [{ lines: found }] }] : [];
}

/** The files of a patch; none if it is not one. */
export function parsePatch(patch: string): PatchFile[] {
  const lines = patch.split("\n");
  if (lines.some((line) => /^\*\*\* (?:Begin Patch|(?:Add|Update|Delete) File: )/.test(line))) {
    return parseBegun(lines);
  }
  const unified = parseUnified(lines);
  return unified.length > 0 ? unified : parseBare(lines);
}
