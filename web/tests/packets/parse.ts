// How a front end of these packets reads one: written from the description of such a front end, with
// its casts. Nothing is caught: a field that is missing or of another type shows here.
import { sanitizePathsInText, stripSessionPrefix } from "./paths";

export type ToolKind = "search" | "read" | "execute" | "edit" | "task" | "other";
export type ToolStatus = "pending" | "in_progress" | "completed" | "failed" | "cancelled";
export type ToolName =
  | "glob"
  | "grep"
  | "read"
  | "write"
  | "edit"
  | "bash"
  | "task"
  | "todowrite"
  | "webfetch"
  | "websearch"
  | "unknown";

export interface TodoItem {
  content: string;
  status: "pending" | "in_progress" | "completed";
  activeForm: string;
}

export interface ParsedToolCallStart {
  type: "tool_call_start";
  toolCallId: string;
  toolName: ToolName;
  kind: ToolKind;
  isTodo: boolean;
}

export interface ParsedToolCallProgress {
  type: "tool_call_progress";
  toolCallId: string;
  toolName: ToolName;
  kind: ToolKind;
  status: ToolStatus;
  isTodo: boolean;
  title: string;
  description: string;
  command: string;
  rawOutput: string;
  filePath: string;
  subagentType: string | null;
  isNewFile: boolean;
  oldContent: string;
  newContent: string;
  todos: TodoItem[];
  taskOutput: string | null;
}

export interface Artifact {
  id: string;
  type: string;
  name: string;
  path: string;
  preview_url: string | null;
}

export type ParsedPacket =
  | { type: "text_chunk"; text: string }
  | { type: "thinking_chunk"; text: string }
  | ParsedToolCallStart
  | ParsedToolCallProgress
  | { type: "prompt_response" }
  | { type: "artifact_created"; artifact: Artifact }
  | { type: "error"; message: string }
  | { type: "unknown" };

type Fields = Record<string, unknown>;

const rawInputOf = (p: Fields) => (p.raw_input ?? p.rawInput ?? null) as Fields | null;
const rawOutputOf = (p: Fields) => (p.raw_output ?? p.rawOutput ?? null) as Fields | null;
const toolCallIdOf = (p: Fields) => (p.tool_call_id ?? p.toolCallId ?? "") as string;
const toolNameOf = (p: Fields) => ((p.tool_name ?? p.toolName ?? p.title ?? "") as string).toLowerCase();

export function parsePacket(raw: unknown): ParsedPacket {
  if (!raw || typeof raw !== "object") return { type: "unknown" };
  const p = raw as Fields;
  switch (p.type as string | undefined) {
    case "agent_message_chunk":
    case "agent_message":
      return { type: "text_chunk", text: extractText(p.content) };
    case "agent_thought_chunk":
    case "agent_thought":
      return { type: "thinking_chunk", text: extractText(p.content) };
    case "tool_call_start":
      return parseToolCallStart(p);
    case "tool_call_progress":
      return parseToolCallProgress(p);
    case "prompt_response":
      return { type: "prompt_response" };
    case "artifact_created":
      return parseArtifact(p);
    case "error":
      return { type: "error", message: (p.message ?? "") as string };
    default:
      return { type: "unknown" };
  }
}

const NAME_MAP: Record<string, ToolName> = {
  glob: "glob",
  grep: "grep",
  read: "read",
  write: "write",
  edit: "edit",
  bash: "bash",
  task: "task",
  todowrite: "todowrite",
  todo_write: "todowrite",
  webfetch: "webfetch",
  websearch: "websearch",
};

function resolveToolName(p: Fields): ToolName {
  const named = NAME_MAP[toolNameOf(p)];
  if (named) return named;
  const ri = rawInputOf(p);
  if (ri?.subagent_type || ri?.subagentType) return "task";
  if (ri?.todos && Array.isArray(ri.todos)) return "todowrite";
  return "unknown";
}

const TOOL_KIND_MAP: Record<ToolName, ToolKind> = {
  glob: "search",
  grep: "search",
  read: "read",
  write: "edit",
  edit: "edit",
  bash: "execute",
  task: "task",
  todowrite: "other",
  webfetch: "other",
  websearch: "search",
  unknown: "other",
};

function resolveKind(toolName: ToolName, rawKind: string | null): ToolKind {
  const fromName = TOOL_KIND_MAP[toolName];
  if (fromName !== "other") return fromName;
  const known = ["search", "read", "execute", "edit", "task"];
  return known.includes(rawKind ?? "") ? (rawKind as ToolKind) : "other";
}

function extractText(content: unknown): string {
  if (!content) return "";
  if (typeof content === "string") return content;
  const obj = content as Fields;
  if (obj.type === "text" && typeof obj.text === "string") return obj.text;
  if (Array.isArray(content)) {
    const texts = content.filter((c) => c?.type === "text" && typeof c.text === "string");
    return texts.map((c) => c.text).join("");
  }
  return typeof obj.text === "string" ? obj.text : "";
}

function normalizeStatus(status: string | null | undefined): ToolStatus {
  const known = ["pending", "in_progress", "completed", "failed", "cancelled"];
  return known.includes(status ?? "") ? (status as ToolStatus) : "pending";
}

// biome-ignore lint/suspicious/noExplicitAny: the front end reads content blocks untyped
type Block = any;

function extractDiffData(content: unknown) {
  let [oldText, newText] = ["", ""];
  for (const item of Array.isArray(content) ? (content as Block[]) : []) {
    if (item?.type !== "diff") continue;
    if (typeof item.oldText === "string") oldText = item.oldText;
    if (typeof item.newText === "string") newText = item.newText;
  }
  return { oldText, newText, isNewFile: oldText === "" };
}

function extractDiffPath(p: Fields): string {
  if (!Array.isArray(p.content)) return "";
  for (const item of p.content as Block[]) {
    if (item?.type === "diff" && item.path) return stripSessionPrefix(item.path);
  }
  const title = p.title as string | undefined;
  return title?.includes("/") ? stripSessionPrefix(title) : "";
}

function buildDescription(name: ToolName, kind: ToolKind, filePath: string, ri: Fields | null, said: string) {
  if (name === "task") return said || "Running subagent";
  if ((kind === "read" || kind === "edit") && filePath) return filePath;
  if (kind === "execute") return sanitizePathsInText(said) || "Running command";
  if (kind === "search" && ri?.pattern && typeof ri.pattern === "string") return ri.pattern;
  return buildTitle(name, kind, true);
}

function buildTitle(name: ToolName, kind: ToolKind, isNewFile: boolean): string {
  if (kind === "edit") return isNewFile ? "Writing" : "Editing";
  const titles: Record<ToolName, string> = {
    glob: "Searching files",
    grep: "Searching content",
    read: "Reading",
    write: "Writing",
    edit: "Editing",
    bash: "Running command",
    task: "Running task",
    todowrite: "Updating todos",
    webfetch: "Fetching web content",
    websearch: "Searching web",
    unknown: "Running tool",
  };
  return titles[name];
}

function extractRawOutputText(name: ToolName, kind: ToolKind, p: Fields, ro: Fields | null): string {
  if (name === "task") {
    const prompt = rawInputOf(p)?.prompt;
    return typeof prompt === "string" ? prompt : "";
  }
  if (kind === "execute") {
    const metadata = ro?.metadata as Fields | null | undefined;
    return (metadata?.output || ro?.output || "") as string;
  }
  if (kind === "read") {
    const fileContent = extractFileContent(p.content);
    if (fileContent) return fileContent;
    if (typeof ro?.content === "string") return ro.content;
  }
  if (kind === "edit") {
    for (const item of Array.isArray(p.content) ? (p.content as Block[]) : []) {
      if (item?.type === "diff" && typeof item.newText === "string") return item.newText;
    }
  }
  if (kind === "search") {
    if (typeof ro?.output === "string") return ro.output;
    if (Array.isArray(ro?.files)) return (ro.files as string[]).join("\n");
  }
  return ro ? JSON.stringify(ro, null, 2) : "";
}

function extractFileContent(content: unknown): string {
  for (const item of Array.isArray(content) ? (content as Block[]) : []) {
    if (item?.type !== "content" || item?.content?.type !== "text") continue;
    const text = item.content.text as string;
    const file = text.match(/<file>\n?([\s\S]*?)\n?\(End of file[^)]*\)\n?<\/file>/);
    return file?.[1] ? file[1].replace(/^\d+\| /gm, "") : text;
  }
  return "";
}

function extractTodos(ri: Fields | null): TodoItem[] {
  if (!ri?.todos || !Array.isArray(ri.todos)) return [];
  return ri.todos.map((t: Fields) => ({
    content: (t.content as string) || "",
    status: normalizeTodoStatus(t.status),
    activeForm: (t.activeForm as string) || (t.content as string) || "",
  }));
}

function normalizeTodoStatus(status: unknown): TodoItem["status"] {
  return status === "in_progress" || status === "completed" ? status : "pending";
}

function extractTaskOutput(ro: Fields | null): string | null {
  if (!ro?.output || typeof ro.output !== "string") return null;
  return ro.output.replace(/<task_metadata>[\s\S]*?<\/task_metadata>/g, "").trim() || null;
}

function parseArtifact(p: Fields): ParsedPacket {
  const artifact = p.artifact as Fields | undefined;
  return {
    type: "artifact_created",
    artifact: {
      id: (artifact?.id ?? "") as string,
      type: (artifact?.type ?? "") as string,
      name: (artifact?.name ?? "") as string,
      path: (artifact?.path ?? "") as string,
      preview_url: (artifact?.preview_url as string) || null,
    },
  };
}

function parseToolCallStart(p: Fields): ParsedToolCallStart {
  const toolName = resolveToolName(p);
  const kind = resolveKind(toolName, p.kind as string | null);
  return {
    type: "tool_call_start",
    toolCallId: toolCallIdOf(p),
    toolName,
    kind,
    isTodo: toolName === "todowrite",
  };
}

function parseToolCallProgress(p: Fields): ParsedToolCallProgress {
  const toolName = resolveToolName(p);
  const kind = resolveKind(toolName, p.kind as string | null);
  const ri = rawInputOf(p);
  const ro = rawOutputOf(p);
  const isTodo = toolName === "todowrite";
  const diff = kind === "edit" ? extractDiffData(p.content) : { oldText: "", newText: "", isNewFile: true };
  const rawFilePath = (ri?.file_path ?? ri?.filePath ?? ri?.path ?? "") as string;
  const filePath = rawFilePath ? stripSessionPrefix(rawFilePath) : extractDiffPath(p);
  const status = normalizeStatus(p.status as string | null);
  return {
    type: "tool_call_progress",
    toolCallId: toolCallIdOf(p),
    toolName,
    kind,
    status,
    isTodo,
    title: buildTitle(toolName, kind, diff.isNewFile),
    description: buildDescription(toolName, kind, filePath, ri, (ri?.description ?? "") as string),
    command: sanitizePathsInText((ri?.command ?? "") as string),
    rawOutput: sanitizePathsInText(extractRawOutputText(toolName, kind, p, ro)),
    filePath,
    subagentType: (ri?.subagent_type ?? ri?.subagentType ?? null) as string | null,
    isNewFile: diff.isNewFile,
    oldContent: diff.oldText,
    newContent: diff.newText,
    todos: isTodo ? extractTodos(ri) : [],
    taskOutput: toolName === "task" && status === "completed" ? extractTaskOutput(ro) : null,
  };
}
