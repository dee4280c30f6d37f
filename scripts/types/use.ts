// Uses the types as a product would: this must compile.
import type { components, paths } from "./narrows";

type ServerMessage = components["schemas"]["ServerMessage"];
type ClientMessage = components["schemas"]["ClientMessage"];

export const subscribe: ClientMessage = {
  type: "subscribe",
  workOrderId: "order-7",
  includeToolCalls: true,
  includeToolResults: true,
  includeOutput: false,
  includeFileChanges: true,
  includeProgress: false,
};

export function show(message: ServerMessage): string {
  switch (message.type) {
    case "agent_tool_call":
      return `${message.tool} ${message.toolUseId}`;
    case "agent_tool_result":
      return `${message.success} ${message.contentPreview} ${message.contentLength}`;
    case "agent_output":
      return message.content;
    case "file_changed":
      return `${message.action} ${message.path}`;
    case "progress_update":
      return `${message.percentage} % ${message.currentPhase}`;
    default:
      return message.type;
  }
}

export type Sessions =
  paths["/api/sessions"]["get"]["responses"]["200"]["content"]["application/json"]["sessions"];
