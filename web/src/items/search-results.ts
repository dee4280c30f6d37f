// Reads the output of searches: `file:line:text`, `file:` with `Line 3: text` below, or paths.

export interface SearchHit {
  line?: number;
  text: string;
  /** A line beside a hit. */
  beside?: boolean;
}

export interface SearchGroup {
  path: string;
  hits: SearchHit[];
}

export interface SearchResults {
  groups: SearchGroup[];
  /** Lines that are neither a path nor a hit, as they are. */
  notes: string[];
  hits: number;
}

const NOTE = /^\s*(?:\(.*\)|\[.*\]|(?:found|no|showing|search|results?)\b.*)$/i;
const HIT = /^((?:[A-Za-z]:[\\/])?[^:\n]+):(\d{1,9}):(.*)$/;
const BELOW = /^\s*(?:Line |L)(\d{1,9}): ?(.*)$/;
const BARE = /^(\d{1,9})([:-])(.*)$/;
const COUNT = /^((?:[A-Za-z]:[\\/])?[^:\n]+):(\d{1,9})$/;
/** A name without spaces inside, or one with a folder or an ending. */
const PATH = /^(?:\S+|\S[^:<>|"*?]*[\\/.][^:<>|"*?]*)$/;

/** What was found, by file; nothing when the text has another form. */
export function searchResults(output: string, tool: string, onePath?: string): SearchResults | undefined {
  const groups = new Map<string, SearchGroup>();
  const notes: string[] = [];
  let hits = 0;
  let strange = 0;
  let lines = 0;
  let now: SearchGroup | undefined;
  const group = (path: string): SearchGroup => {
    let found = groups.get(path);
    if (!found) {
      found = { path, hits: [] };
      groups.set(path, found);
    }
    return found;
  };
  const hit = (to: SearchGroup, line: string | undefined, text: string, beside?: boolean) => {
    to.hits.push({ line: line === undefined ? undefined : Number(line), text, beside });
    if (!beside) hits += 1;
  };
  for (const raw of output.split(/\r?\n/)) {
    if (!raw.trim() || /^-{2,}$/.test(raw)) continue;
    lines += 1;
    const below = now && BELOW.exec(raw);
    if (below) {
      hit(now!, below[1], below[2] ?? "");
      continue;
    }
    const header = /^(?:File: (.+)|(\S.*):)$/.exec(raw);
    if (header && !HIT.test(raw) && (header[1] || PATH.test(header[2]!))) {
      now = group(header[1] ?? header[2]!);
      continue;
    }
    const beside = now && besideOf(raw, now.path);
    if (beside) {
      hit(now!, beside[0], beside[1], true);
      continue;
    }
    const bare = onePath ? BARE.exec(raw) : null;
    if (bare) {
      now = group(onePath!);
      hit(now, bare[1], bare[3] ?? "", bare[2] === "-");
      continue;
    }
    const found = HIT.exec(raw);
    if (found && !/^\d+$/.test(found[1]!)) {
      now = group(found[1]!);
      hit(now, found[2], found[3] ?? "");
      continue;
    }
    const counted = COUNT.exec(raw);
    if (counted && tool === "grep") {
      hit(group(counted[1]!), undefined, `${counted[2]} ${counted[2] === "1" ? "match" : "matches"}`);
    } else if (NOTE.test(raw)) {
      notes.push(raw.trim());
    } else if (PATH.test(raw) && !/\s{2}/.test(raw) && raw.length < 1000) {
      group(raw);
    } else {
      strange += 1;
      notes.push(raw);
    }
  }
  // Something else, with a line that happens to look like a hit.
  if (strange > 1 && strange * 10 > lines) return undefined;
  return { groups: [...groups.values()], notes, hits };
}

/** `src/a.ts-12-text` beside hits in `src/a.ts`. */
function besideOf(line: string, path: string): [line: string, text: string] | undefined {
  if (!line.startsWith(`${path}-`)) return undefined;
  const rest = /^(\d{1,9})-(.*)$/.exec(line.slice(path.length + 1));
  return rest ? [rest[1]!, rest[2] ?? ""] : undefined;
}
