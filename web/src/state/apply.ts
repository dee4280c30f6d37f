import type { Change, Item, ToolCall } from "../api/types";

/** A text that grows beyond this is kept in part: whoever opens it fetches it whole. */
const MAX_KEPT = 512 * 1024;
const HEAD = 16 * 1024;

type ItemChange = Exclude<Change, { change: "info" } | { change: "put" } | { change: "remove" }>;

/** The item after a change. The same object when nothing changes. */
export function changed(item: Item, change: ItemChange): Item {
  if (change.change === "append") return appended(item, change.field, change.text);
  switch (item.type) {
    case "text":
    case "thinking": {
      const now = { ...item };
      if (change.isStreaming !== undefined) now.isStreaming = change.isStreaming;
      if (change.content !== undefined) {
        now.content = change.content;
        now.clipped = uncut(item.clipped, "content");
      }
      if (change.images !== undefined && now.type === "text") now.images = change.images;
      return tidy(now);
    }
    case "user_message": {
      const now = { ...item };
      if (change.content !== undefined) {
        now.text = change.content;
        now.clipped = uncut(item.clipped, "text");
      }
      if (change.images !== undefined) now.images = change.images;
      return tidy(now);
    }
    case "plan":
      if (change.content === undefined) return item;
      return tidy({ ...item, content: change.content, clipped: uncut(item.clipped, "content") });
    case "tool_call":
      return change.toolCall ? called(item, change.toolCall) : item;
    case "todo_list":
      return change.todoList ? { ...item, todoList: change.todoList } : item;
    default:
      return item;
  }
}

function called(item: Extract<Item, { type: "tool_call" }>, news: Partial<ToolCall>): Item {
  const toolCall = { ...item.toolCall, ...news, id: item.toolCall.id };
  // Whoever does not know the tool says so; that is no news.
  if (news.toolName === "unknown") toolCall.toolName = item.toolCall.toolName;
  let clipped = item.clipped;
  for (const field of Object.keys(news)) clipped = uncut(clipped, `toolCall.${field}`);
  return tidy({ ...item, toolCall, clipped });
}

function appended(item: Item, field: string, text: string): Item {
  switch (item.type) {
    case "text":
    case "thinking": {
      const { value, clipped } = grown(item, "content", item.content, text);
      return tidy({ ...item, content: value, clipped });
    }
    case "user_message": {
      const { value, clipped } = grown(item, "text", item.text, text);
      return tidy({ ...item, text: value, clipped });
    }
    case "tool_call": {
      if (field !== "rawOutput") return item;
      const { value, clipped } = grown(item, "toolCall.rawOutput", item.toolCall.rawOutput ?? "", text);
      return tidy({ ...item, toolCall: { ...item.toolCall, rawOutput: value }, clipped });
    }
    default:
      return item;
  }
}

/** A text that was cut stays cut: only its length grows. */
function grown(item: Item, path: string, old: string, more: string) {
  const cut = item.clipped?.[path];
  if (cut !== undefined) return { value: old, clipped: { ...item.clipped, [path]: cut + letters(more) } };
  const value = old + more;
  if (value.length <= MAX_KEPT) return { value, clipped: item.clipped };
  return { value: value.slice(0, HEAD), clipped: { ...item.clipped, [path]: letters(value) } };
}

/** The server counts letters, not UTF-16 units. */
export function letters(text: string): number {
  let n = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00) n--;
  }
  return n;
}

function uncut(clipped: Item["clipped"], path: string): Item["clipped"] {
  if (!clipped) return undefined;
  const left = Object.entries(clipped).filter(([at]) => at !== path && !at.startsWith(`${path}.`));
  return left.length ? Object.fromEntries(left) : undefined;
}

function tidy<T extends Item>(item: T): T {
  if (item.clipped === undefined) delete item.clipped;
  return item;
}

/** The source is over: nothing streams any more. */
export function settled(items: Item[]): Item[] {
  return items.map((item) =>
    (item.type === "text" || item.type === "thinking") && item.isStreaming
      ? { ...item, isStreaming: false }
      : item,
  );
}
