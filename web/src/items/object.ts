// What a call is done to: the words of a card's line.
import type { ToolCall } from "../api/types";
import { inputNumber } from "./fields";

export interface CallObject {
  text: string;
  path?: boolean;
  mono?: boolean;
  /** Said after it where there is room. */
  aside?: string;
}

/** Said by the server when the agent said nothing. */
const EMPTY_WORDS = new Set(["Running command", "Running subagent", "Running tool"]);

export function objectOf(call: ToolCall): CallObject {
  const said = saidOf(call);
  if (call.command) {
    return { text: call.command, mono: true, aside: said === call.command ? undefined : said };
  }
  if (call.pattern && (call.kind === "search" || !said)) {
    const place = call.filePath && call.filePath !== "." ? `in ${call.filePath}` : undefined;
    return { text: call.pattern, mono: call.toolName !== "websearch", aside: place };
  }
  const files = new Set(call.diffs?.map((diff) => diff.path)).size;
  if (files > 1) {
    const more = `and ${files - 1} more ${files === 2 ? "file" : "files"}`;
    return { text: call.filePath || call.diffs?.[0]?.path || said, path: true, mono: true, aside: more };
  }
  if (call.filePath) return { text: call.filePath, path: true, mono: true, aside: linesOf(call) };
  if (call.toolName === "webfetch") return { text: said, mono: true };
  return { text: said, aside: call.subagentType || call.pattern || undefined };
}

/** What the agent or the server said it is about; nothing when that is only the verb again. */
function saidOf(call: ToolCall): string {
  for (const words of [call.description, call.agentTitle, call.name]) {
    if (!words || words === call.title || EMPTY_WORDS.has(words)) continue;
    if (words.toLowerCase() === call.toolName) continue;
    return words;
  }
  return "";
}

/** Which lines of a file are read, when not all. */
function linesOf(call: ToolCall): string | undefined {
  if (call.toolName !== "read") return undefined;
  const from = firstLineOf(call);
  const count = inputNumber(call, "limit");
  if (from === undefined && count === undefined) return undefined;
  if (count === undefined) return from! > 1 ? `from line ${from}` : undefined;
  return `lines ${from ?? 1}–${(from ?? 1) + count - 1}`;
}

/** The number of the first line of what was read. */
export function firstLineOf(call: ToolCall): number | undefined {
  const asked = inputNumber(call, "offset", "start_line", "startLine");
  // Agents count from 1; a 0 means the first line too.
  if (asked !== undefined && Number.isInteger(asked) && asked >= 0) return Math.max(1, asked);
  const line = call.locations?.[0]?.line;
  return typeof line === "number" && line > 0 ? line : undefined;
}
