import type { ToolCall, ToolCallItem } from "../api/types";
import { visible } from "../content/visible";
import { firstLine, isCut } from "./fields";

const SHOWN = 3;
/** As much of the end of an output as is looked at: a chunk costs the same however long it is. */
const LOOKED_AT = 3000;
const LONGEST = 240;

/** Why a call failed, in one line. */
export function errorLine(call: ToolCall): string | undefined {
  const line = firstLine(call.error) ?? lastWords(call.rawOutput);
  return line && line.length > 1200 ? line.slice(0, 1200) : line;
}

const TROUBLE = /error|fail|exception|fatal|panic|denied|cannot|not found|no such|unable|invalid|✗|✖/i;

/** A command says near its end what went wrong: the last line that sounds like it, or the last one. */
function lastWords(output: string | undefined): string | undefined {
  const lines = output ? lastLines(output, 40)?.split("\n") : undefined;
  return lines?.findLast((line) => TROUBLE.test(line))?.trim() ?? lines?.at(-1)?.trim();
}

/** The last lines of what a running command says. */
export function runningLines(item: ToolCallItem): string | undefined {
  const call = item.toolCall;
  if (call.toolName !== "bash" && call.kind !== "execute") return undefined;
  // Of a text that was cut the end is not known.
  if (!call.rawOutput || isCut(item, "toolCall.rawOutput")) return undefined;
  return lastLines(call.rawOutput, SHOWN);
}

function lastLines(text: string, count: number): string | undefined {
  const end = plain(text.slice(-LOOKED_AT)).trimEnd();
  const lines = end.split("\n").filter((line) => line.trim());
  const last = lines.slice(-count).map((line) => {
    // A line that is written over shows what was written last.
    const shown = line.slice(line.lastIndexOf("\r") + 1);
    return visible(shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown);
  });
  return last.join("\n") || undefined;
}

/** Without the sequences that move the cursor and set colours. */
function plain(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g, "")
      .replace(/\r+\n/g, "\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the same
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, "")
  );
}
