import {
  Bot,
  Brain,
  CircleQuestionMark,
  FilePen,
  FilePlus,
  FileSymlink,
  FileText,
  FolderSearch,
  FolderTree,
  Globe,
  ListTodo,
  type LucideIcon,
  Map as MapIcon,
  NotebookPen,
  Plug,
  ScanText,
  Search,
  Sparkles,
  Terminal,
  Trash2,
  Wrench,
} from "lucide-react";
import type { ToolCall } from "../api/types";
import { spaced as formatCount, countOf as plural } from "../content/fold";
import { visibleProse } from "../content/visible";

export { formatCount, plural };

const TOOL_ICONS: Record<string, LucideIcon> = {
  bash: Terminal,
  read: FileText,
  write: FilePlus,
  edit: FilePen,
  apply_patch: FilePen,
  notebook: NotebookPen,
  glob: FolderSearch,
  grep: Search,
  list: FolderTree,
  task: Bot,
  todowrite: ListTodo,
  webfetch: Globe,
  websearch: Globe,
  skill: Sparkles,
  lsp: ScanText,
  question: CircleQuestionMark,
  plan_mode: MapIcon,
  mcp: Plug,
};

const KIND_ICONS: Record<string, LucideIcon> = {
  execute: Terminal,
  read: FileText,
  edit: FilePen,
  search: Search,
  fetch: Globe,
  task: Bot,
  delete: Trash2,
  move: FileSymlink,
  think: Brain,
  switch_mode: MapIcon,
};

/** Of a table that is asked with words of an agent: `constructor` is no entry. */
function entry<T>(table: Record<string, T>, name: string | undefined): T | undefined {
  return name !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

export function iconOf(call: Pick<ToolCall, "toolName" | "kind">): LucideIcon {
  return entry(TOOL_ICONS, call.toolName) ?? entry(KIND_ICONS, call.kind) ?? Wrench;
}

/** The server's titles in one word where one says it: the words of a run stand in a column. */
const VERBS: Record<string, string> = {
  "Running command": "Running",
  "Searching files": "Finding",
  "Searching content": "Searching",
  "Listing files": "Listing",
  "Fetching web content": "Fetching",
  "Running task": "Task",
  "Running tool": "Using",
  "Asking a question": "Asking",
  "Presenting the plan": "Planning",
  "Using a skill": "Skill",
};

export function verbOf(call: Pick<ToolCall, "title" | "kind">): string {
  return entry(VERBS, call.title) ?? (call.title || "Using");
}

export type StatusKey = "waiting" | "running" | "done" | "failed" | "cancelled" | "unfinished" | "unknown";

const STATUS_WORDS: Record<StatusKey, string> = {
  waiting: "Not started",
  running: "Running",
  done: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
  unfinished: "No end recorded",
  unknown: "Unknown state",
};

/** A call that never ended does not spin in a session in which nobody works. */
export function statusOf(status: string | undefined, running: boolean): StatusKey {
  switch (status) {
    case "pending":
      return running ? "waiting" : "unfinished";
    case "in_progress":
      return running ? "running" : "unfinished";
    case "completed":
      return "done";
    case "failed":
      return "failed";
    case "cancelled":
      return "cancelled";
    case undefined:
      return running ? "waiting" : "unfinished";
    default:
      return "unknown";
  }
}

export function statusWord(key: StatusKey): string {
  return STATUS_WORDS[key];
}

/** What a kind of call is called in a sum: "5 edits". */
const KIND_WORDS: Record<string, [string, string]> = {
  edit: ["edit", "edits"],
  execute: ["command", "commands"],
  read: ["read", "reads"],
  search: ["search", "searches"],
  fetch: ["fetch", "fetches"],
  task: ["task", "tasks"],
  delete: ["removal", "removals"],
  move: ["move", "moves"],
};

export function kindWords(kind: string, count: number): string {
  const words = entry(KIND_WORDS, kind) ?? ["other", "others"];
  return `${formatCount(count)} ${words[count === 1 ? 0 : 1]}`;
}

/** Whether sums name the kind. */
export function isCounted(kind: string): boolean {
  return Object.hasOwn(KIND_WORDS, kind);
}

/** 25 ms, 0.4 s, 42 s, 2 min 3 s, 1 h 4 min, 2 d 3 h. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "";
  if (ms < 95) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return pair(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 24 * 60) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`;
}

/** 812, 3.1k, 152k, 1.2M. */
export function formatTokens(count: number): string {
  return scaled(count, 1000, ["", "k", "M", "G"]);
}

function scaled(value: number, step: number, units: readonly string[]): string {
  if (!Number.isFinite(value)) return "";
  let at = 0;
  let rest = Math.abs(value);
  while (at < units.length - 1 && rest >= (at === 0 ? step : step - 0.5)) {
    rest /= step;
    at += 1;
  }
  const digits = at > 0 && rest < 9.95 ? rest.toFixed(1).replace(/\.0$/, "") : String(Math.round(rest));
  return `${value < 0 ? "−" : ""}${digits}${units[at]}`;
}

/** $0.12, $1 240; less than a cent is said so. */
export function formatCost(usd: number | null | undefined): string {
  if (usd === null || usd === undefined || !Number.isFinite(usd)) return "";
  if (usd > 0 && usd < 0.005) return "< $0.01";
  return usd < 100 ? `$${usd.toFixed(2)}` : `$${formatCount(Math.round(usd))}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** How long ago a time is, in as few letters as say it: now, 2 min, 1 h, 3 d, 12 Nov. */
export function ago(ms: number, now: number): string {
  if (!Number.isFinite(ms)) return "";
  const seconds = Math.max(0, (now - ms) / 1000);
  if (seconds < 45) return "now";
  if (seconds < 3570) return `${Math.max(1, Math.round(seconds / 60))} min`;
  if (seconds < 23.5 * 3600) return `${Math.round(seconds / 3600)} h`;
  const days = Math.round(seconds / 86_400);
  if (days < 7) return `${days} d`;
  const date = new Date(ms);
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]}`;
  return date.getFullYear() === new Date(now).getFullYear() ? day : `${day} ${date.getFullYear()}`;
}

interface Named {
  info: { title?: string | null };
  prompt?: string | null;
  label?: string | null;
}

/** What a session is called. */
export function titleOf(session: Named): string {
  for (const name of [session.info.title, session.prompt, session.label]) {
    const text = name?.trim();
    if (text) return visibleProse(text);
  }
  return "Untitled session";
}
