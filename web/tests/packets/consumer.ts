// What such a front end makes of a stream of packets: its stream items, its status, the ends of turns.
import { type Artifact, type ParsedToolCallProgress, parsePacket, type TodoItem } from "./parse";

export interface Card {
  id: string;
  kind: string;
  title: string;
  status: string;
  description: string;
  command: string;
  rawOutput: string;
  subagentType?: string | undefined;
  isNewFile: boolean;
  oldContent: string;
  newContent: string;
}

export type StreamItem =
  | { type: "text" | "thinking"; content: string; task?: string }
  | { type: "tool_call"; toolCall: Card }
  | { type: "todo_list"; id: string; todos: TodoItem[] };

/** One session, as it streams. */
export class Consumer {
  items: StreamItem[] = [];
  artifacts: Artifact[] = [];
  status: "idle" | "running" | "failed" = "idle";
  error: string | null = null;
  /** How each turn ended. */
  ends: string[] = [];
  /** What a front end could not do anything with. */
  lost: string[] = [];
  private lastItemType: string | null = null;

  take(raw: unknown): void {
    const packet = parsePacket(raw);
    switch (packet.type) {
      case "text_chunk":
        this.text("text", packet.text);
        break;
      case "thinking_chunk":
        this.text("thinking", packet.text);
        break;
      case "tool_call_start":
        this.lastItemType = "tool";
        this.status = "running";
        if (packet.isTodo) break;
        this.items.push({
          type: "tool_call",
          toolCall: {
            id: packet.toolCallId,
            kind: packet.kind,
            title: "",
            status: "pending",
            description: "",
            command: "",
            rawOutput: "",
            subagentType: undefined,
            isNewFile: true,
            oldContent: "",
            newContent: "",
          },
        });
        break;
      case "tool_call_progress":
        this.progress(packet);
        break;
      case "prompt_response":
        this.status = "idle";
        this.ends.push("prompt_response");
        this.lastItemType = null;
        break;
      case "artifact_created":
        this.artifacts.push(packet.artifact);
        break;
      case "error":
        this.status = "failed";
        this.error = packet.message;
        this.ends.push("error");
        this.lastItemType = null;
        break;
    }
  }

  private text(type: "text" | "thinking", text: string) {
    this.status = "running";
    const last = this.items.at(-1);
    if (this.lastItemType === type && last?.type === type) last.content += text;
    else this.items.push({ type, content: text });
    this.lastItemType = type;
  }

  private progress(packet: ParsedToolCallProgress) {
    if (packet.isTodo) {
      const { toolCallId: id, todos } = packet;
      const open = this.items.find((item) => item.type === "todo_list" && item.id === id);
      if (open?.type === "todo_list") open.todos = todos;
      else this.items.push({ type: "todo_list", id, todos });
      return;
    }
    const found = this.items.find(
      (item) => item.type === "tool_call" && item.toolCall.id === packet.toolCallId,
    );
    if (found?.type !== "tool_call") {
      this.lost.push(packet.toolCallId);
      return;
    }
    Object.assign(found.toolCall, {
      status: packet.status,
      title: packet.title,
      description: packet.description,
      command: packet.command,
      rawOutput: packet.rawOutput,
      subagentType: packet.subagentType ?? undefined,
      ...(packet.kind === "edit" && {
        isNewFile: packet.isNewFile,
        oldContent: packet.oldContent,
        newContent: packet.newContent,
      }),
    });
    if (packet.taskOutput) {
      this.items.push({ type: "text", content: packet.taskOutput, task: packet.toolCallId });
      this.lastItemType = "text-of-task";
    }
  }
}
