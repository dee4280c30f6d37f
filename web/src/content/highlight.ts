import { useEffect, useRef, useState } from "react";
import "./highlight.css";
import type { State, TokenLine } from "./engine";
import { languageOf } from "./languages";

export type { Token, TokenLine } from "./engine";

// Colours come after the text: in slices of a few milliseconds whenever the browser has nothing else to do.

/** Longer texts stay plain. */
const maxLength = 300_000;
const sliceMs = 8;
/** As long as this if the browser says that it has the time. */
const idleMs = 30;
const maxSlice = 2000;
const firstLines = 40;
/** All texts that are kept coloured, in characters. */
const cacheLength = 4_000_000;

interface Cached {
  lang: string;
  lines: TokenLine[];
}

/** By text, the one used last at the end. */
const cache = new Map<string, Cached>();
let cached = 0;

function recall(lang: string, text: string): TokenLine[] | null {
  const found = cache.get(text);
  if (found?.lang !== lang) return null;
  cache.delete(text);
  cache.set(text, found);
  return found.lines;
}

function forget(text: string): void {
  if (cache.delete(text)) cached -= text.length;
}

function keep(lang: string, text: string, lines: TokenLine[]): void {
  forget(text);
  cache.set(text, { lang, lines });
  cached += text.length;
  for (const oldest of cache.keys()) {
    if (cached <= cacheLength) break;
    forget(oldest);
  }
}

/** How far a text was coloured: whole lines, and how the grammar stood after them. */
interface Progress {
  lang: string;
  text: string;
  lines: TokenLine[];
  state?: State;
  /** The text that was kept when it ended here; a longer one takes its place. */
  kept?: string;
}

interface Job {
  progress: Progress;
  text: string;
  /** The name that the grammar gives itself. */
  name: string;
  tell(lines: TokenLine[]): void;
  told: boolean;
  over: boolean;
  /** How many characters are taken at once: less while the patterns are made. */
  slice: number;
}

type Engine = typeof import("./engine");

let engine: Engine | undefined;
const jobs: Job[] = [];
let planned = false;

function plan(): void {
  if (planned || jobs.length === 0) return;
  planned = true;
  if (typeof requestIdleCallback === "function") requestIdleCallback(work, { timeout: 300 });
  else setTimeout(() => work(), 0);
}

function work(idle?: IdleDeadline): void {
  planned = false;
  const until = performance.now() + Math.max(sliceMs, Math.min(idleMs, idle?.timeRemaining() ?? 0));
  while (jobs.length > 0 && performance.now() < until) {
    const job = jobs[0]!;
    if (job.over || !step(job, until)) jobs.shift();
  }
  plan();
}

/** Colours some lines; whether there are more. */
function step(job: Job, until: number): boolean {
  const { progress, text } = job;
  const at = progress.text.length;
  // At least a line, and lines up to the length of a slice.
  let end = text.lastIndexOf("\n", at + job.slice);
  if (end < at) end = text.indexOf("\n", at);
  const last = end < 0;
  try {
    const found = engine!.tokenise(text.slice(at, last ? text.length : end), job.name, progress.state, until);
    if (last) {
      finish(job, found.lines);
      return false;
    }
    for (const line of found.lines) progress.lines.push(line);
    progress.state = found.state;
    progress.text = text.slice(0, end + 1);
  } catch (error) {
    job.slice = 0;
    // Else it is a grammar that cannot be used: the text stays as it is.
    return error instanceof engine!.Pause;
  }
  job.slice = Math.min(maxSlice, 2 * job.slice + 100);
  // The first lines at once, the others when all are done.
  if (!job.told && progress.lines.length >= firstLines) {
    job.told = true;
    job.tell(progress.lines.slice());
  }
  return true;
}

function finish({ progress, text, tell }: Job, last: TokenLine[]): void {
  const lines = progress.lines.concat(last);
  if (progress.kept !== undefined) forget(progress.kept);
  progress.kept = text;
  keep(progress.lang, text, lines);
  tell(lines);
}

async function begin(job: Job): Promise<void> {
  try {
    engine ??= await import("./engine");
    job.name = await engine.ready(job.progress.lang);
  } catch {
    return;
  }
  if (job.over) return;
  jobs.push(job);
  plan();
}

/** The coloured lines of a text, of all its lines or of the first ones; null while there are none. */
export function useTokens(text: string, lang: string | null | undefined): TokenLine[] | null {
  const language = text.length <= maxLength ? languageOf(lang) : null;
  const [drawn, setDrawn] = useState<{ lang: string; text: string; lines: TokenLine[] }>();
  const progress = useRef<Progress>(undefined);
  useEffect(() => {
    if (!language || recall(language, text)) return;
    const before = progress.current;
    const goesOn = before?.lang === language && text.startsWith(before.text);
    if (!goesOn) progress.current = { lang: language, text: "", lines: [] };
    const job: Job = {
      progress: progress.current!,
      text,
      name: language,
      // What was coloured before is shown meanwhile, there is no need to draw the first lines again.
      told: goesOn,
      over: false,
      slice: 0,
      tell: (lines) => setDrawn({ lang: language, text, lines }),
    };
    begin(job);
    return () => {
      job.over = true;
    };
  }, [text, language]);
  if (!language) return null;
  const all = recall(language, text);
  if (all) return all;
  if (drawn?.lang !== language) return null;
  if (drawn.text === text) return drawn.lines;
  // A text that grew: the whole lines of what it was are the same.
  if (!text.startsWith(drawn.text)) return null;
  return drawn.text.endsWith("\n") ? drawn.lines : drawn.lines.slice(0, -1);
}
