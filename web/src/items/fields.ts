// Reads what agents sent: nothing of it has the shape it should.
import type { Item, ToolCall } from "../api/types";

export function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

/** The first of the arguments that is a text with something in it. */
export function inputText(call: ToolCall, ...names: string[]): string | undefined {
  const input = record(call.input);
  for (const name of names) {
    const value = input && Object.hasOwn(input, name) ? input[name] : undefined;
    if (typeof value === "string" && value.trim()) return value;
  }
  return undefined;
}

export function inputNumber(call: ToolCall, ...names: string[]): number | undefined {
  const input = record(call.input);
  for (const name of names) {
    const value = input && Object.hasOwn(input, name) ? input[name] : undefined;
    if (typeof value === "number" && Number.isFinite(value)) return value;
  }
  return undefined;
}

export function inputFlag(call: ToolCall, ...names: string[]): boolean {
  const input = record(call.input);
  return names.some((name) => input !== undefined && Object.hasOwn(input, name) && input[name] === true);
}

/** Whether a field of the item, or something in it, was cut. */
export function isCut(item: Item, path: string): boolean {
  if (!item.clipped) return false;
  return Object.keys(item.clipped).some((cut) => cut === path || cut.startsWith(`${path}.`));
}

/** Whether the call goes on without the agent waiting for it. */
export function inBackground(call: ToolCall): boolean {
  return inputFlag(call, "run_in_background", "is_background", "background");
}

/** The first line that says something. */
export function firstLine(text: string | undefined): string | undefined {
  if (!text) return undefined;
  const line = /\S[^\n\r]*/.exec(text.slice(0, 4000));
  return line?.[0].trimEnd();
}

/** The value a text holds as JSON, when it is a list or an object. */
export function parsedJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || text.length > 2_000_000) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
