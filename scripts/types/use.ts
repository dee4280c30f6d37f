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

type Item = components["schemas"]["Item"];
type Change = components["schemas"]["Change"];

/** What an item says, by its kind: a new kind does not compile until it is decided. */
export function text(item: Item): string {
  switch (item.type) {
    case "user_message":
      return item.text + item.images.map((image) => image.blob).join();
    case "text":
    case "thinking":
      return item.isStreaming ? `${item.content}…` : item.content;
    case "tool_call": {
      const call = item.toolCall;
      const files = call.diffs?.map((diff) => `${diff.path} ${diff.hunks?.[0]?.newStart ?? ""}`);
      const made = call.isNewFile === null ? "?" : call.isNewFile;
      return [call.title, call.status, call.rawOutput ?? "", made, call.exitCode, files].join();
    }
    case "todo_list":
      return item.todoList.todos.map((todo) => `${todo.status} ${todo.content}`).join();
    case "artifact":
      return item.artifact.preview_url ?? item.artifact.path;
    case "permission":
      return item.options.map((option) => option.optionId).join();
    case "plan":
      return item.content;
    case "question":
      return item.answers?.[0]?.answer ?? item.questions[0]?.question ?? "";
    case "background_task":
      return item.summary ?? item.status;
    case "compaction":
    case "notice":
      return item.text;
    case "error":
      return item.retryable ? `${item.message}, again` : item.message;
    default:
      return item satisfies never;
  }
}

export function apply(items: Map<string, Item>, change: Change): void {
  switch (change.change) {
    case "put":
      items.set(change.item.id, change.item);
      break;
    case "set": {
      const item = items.get(change.id);
      if (item?.type === "tool_call" && change.toolCall) Object.assign(item.toolCall, change.toolCall);
      if (item?.type === "text" && change.isStreaming !== undefined) item.isStreaming = change.isStreaming;
      break;
    }
    case "append": {
      const item = items.get(change.id);
      if (item?.type === "text" && change.field === "content") item.content += change.text;
      break;
    }
    case "remove":
      items.delete(change.id);
      break;
    case "info":
      console.log(change.info.title ?? change.info.status, change.info.usage?.outputTokens);
      break;
    default:
      change satisfies never;
  }
}

export function clipped(item: Item): number {
  return Object.values(item.clipped ?? {}).length;
}

export type Items =
  paths["/api/sessions/{id}/items"]["get"]["responses"]["200"]["content"]["application/json"]["items"][number]["type"];
export const kind: Items = "tool_call";

export type Sessions =
  paths["/api/sessions"]["get"]["responses"]["200"]["content"]["application/json"]["sessions"];

type Packet = components["schemas"]["Packet"];

/** What a packet says, by its type and its tool: a new type does not compile until it is decided. */
export function told(packet: Packet): string {
  switch (packet.type) {
    case "agent_message_chunk":
    case "agent_thought_chunk":
    case "user_message_chunk":
      return packet.content.text;
    case "tool_call_start":
      return `${packet.title} ${packet.status}`;
    case "tool_call_progress":
      if (packet.toolName === "bash") {
        return `${packet.rawInput.command} ${packet.rawOutput?.metadata.exit ?? packet.status}`;
      }
      if (packet.toolName === "todowrite") return packet.rawInput.todos.map((todo) => todo.activeForm).join();
      return packet.rawOutput?.error ?? packet.rawOutput?.output ?? packet.status;
    case "agent_plan_update":
      return packet.entries.map((entry) => `${entry.priority} ${entry.content}`).join();
    case "prompt_response":
      return packet.stopReason;
    case "artifact_created":
      return packet.artifact.path;
    case "notice":
      return `${packet.severity} ${packet.kind} ${packet.title}`;
    case "compaction_update":
      return `${packet.compactionId} ${packet.summary.map((block) => block.text).join("")}`;
    case "error":
      return `${packet.message} ${packet.code?.toFixed() ?? ""} ${packet.details?.code ?? ""}`;
    default:
      return packet satisfies never;
  }
}
