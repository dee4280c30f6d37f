// The fields that front ends of these packets rely on, written from the tables of the two documents
// about them. There may be more fields; one that is missing or of another type is a fault.

type Fields = Record<string, unknown>;
type Check = (value: unknown) => boolean;

const text: Check = (v) => typeof v === "string";
const name: Check = (v) => typeof v === "string" && v !== "";
const number: Check = (v) => typeof v === "number";
const flag: Check = (v) => typeof v === "boolean";
const nothing: Check = (v) => v === null;
const isObject = (v: unknown): v is Fields => typeof v === "object" && v !== null && !Array.isArray(v);
const empty: Check = (v) => isObject(v) && Object.keys(v).length === 0;
const noEntries: Check = (v) => Array.isArray(v) && v.length === 0;
const time: Check = (v) => typeof v === "string" && !Number.isNaN(Date.parse(v));
const orNull =
  (check: Check): Check =>
  (v) =>
    v === null || check(v);
const word =
  (...words: string[]): Check =>
  (v) =>
    typeof v === "string" && words.includes(v);
const list =
  (check: Check): Check =>
  (v) =>
    Array.isArray(v) && v.every(check);
const object =
  (fields: Record<string, Check>): Check =>
  (v) =>
    isObject(v) && wrong(v, fields).length === 0;
const may =
  (check: Check): Check =>
  (v) =>
    v === undefined || check(v);

/** The fields that are not what they should be. */
function wrong(value: Fields, fields: Record<string, Check>): string[] {
  return Object.entries(fields).flatMap(([key, check]) => (check(value[key]) ? [] : [key]));
}

const textContent = object({ type: word("text"), text, annotations: nothing, _meta: nothing });
const location = object({ path: text, line: orNull(number), _meta: nothing });
const block: Check = (v) => {
  if (!isObject(v) || v._meta !== null) return false;
  if (v.type === "content") return textContent(v.content);
  return v.type === "diff" && text(v.path) && text(v.newText) && may(text)(v.oldText);
};
const kind = word("search", "read", "execute", "edit", "other");
const todoStatus = word("pending", "in_progress", "completed");
const todos = list(object({ content: text, status: todoStatus, activeForm: text }));

const inputs: Record<string, Check> = {
  search: object({ pattern: text, path: may(text) }),
  read: object({ filePath: text }),
  write: object({ filePath: text, content: text }),
  edit: object({ filePath: text, old_string: text, new_string: text }),
  execute: object({ command: text, description: text }),
  task: object({ prompt: text, description: text, subagent_type: text }),
  todowrite: object({ todos }),
  apply_patch: object({ patchText: text }),
  other: isObject,
};

const output = (metadata: Record<string, Check>): Check =>
  object({ output: text, metadata: object({ truncated: flag, ...metadata }) });
const written = { diagnostics: isObject, filepath: text, exists: flag };
const file = object({
  filePath: text,
  relativePath: text,
  type: word("add", "update", "delete"),
  diff: text,
  before: text,
  after: text,
  additions: number,
  deletions: number,
});
const outputs: Record<string, Check> = {
  search: output({ count: number }),
  read: output({ preview: text }),
  write: output(written),
  edit: output(written),
  execute: output({ output: text, exit: number, description: text }),
  task: output({}),
  todowrite: output({ todos }),
  apply_patch: output({ diff: text, files: list(file), diagnostics: isObject }),
  other: output({}),
};

/** Which of the tables a call goes by: that of its tool, else that of its kind. */
function tableOf(packet: Fields): string {
  const byName: Record<string, string> = {
    bash: "execute",
    glob: "search",
    grep: "search",
    websearch: "search",
  };
  const tool = String(packet.toolName);
  if (byName[tool]) return byName[tool];
  return inputs[tool] ? tool : String(packet.kind);
}

const progress = {
  _meta: nothing,
  sessionUpdate: word("tool_call_update"),
  timestamp: time,
  toolCallId: name,
  title: text,
  kind,
  status: word("pending", "in_progress", "completed", "failed", "cancelled"),
  content: orNull(list(block)),
  locations: orNull(list(location)),
};

function wrongProgress(packet: Fields): string[] {
  const found = wrong(packet, progress);
  const table = tableOf(packet);
  if (!inputs[table]!(packet.rawInput)) found.push(`rawInput of ${table}`);
  const given = packet.rawOutput;
  if (packet.status === "completed") {
    if (!outputs[table]!(given)) found.push(`rawOutput of ${table}`);
  } else if (packet.status === "failed" || packet.status === "cancelled") {
    if (!isObject(given) || !name(given.error)) found.push("rawOutput.error");
  } else if (given !== null) {
    found.push("rawOutput of a call that runs");
  }
  return found;
}

const chunk = (type: string): Record<string, Check> => ({
  _meta: nothing,
  sessionUpdate: word(type),
  timestamp: time,
  content: textContent,
});

const tables: Record<string, Record<string, Check>> = {
  agent_message_chunk: chunk("agent_message_chunk"),
  agent_thought_chunk: chunk("agent_thought_chunk"),
  user_message_chunk: chunk("user_message_chunk"),
  tool_call_start: {
    _meta: nothing,
    sessionUpdate: word("tool_call"),
    timestamp: time,
    toolCallId: name,
    title: name,
    kind,
    status: word("pending"),
    content: nothing,
    rawInput: empty,
    rawOutput: nothing,
    locations: noEntries,
  },
  agent_plan_update: {
    _meta: nothing,
    sessionUpdate: word("plan"),
    timestamp: time,
    entries: list(
      object({
        _meta: nothing,
        content: text,
        status: todoStatus,
        priority: word("high", "medium", "low"),
      }),
    ),
  },
  // Not of the documents: the protocol's own words for what came later.
  notice: {
    _meta: nothing,
    sessionUpdate: word("notice"),
    timestamp: time,
    severity: word("info", "warning", "error"),
    kind: name,
    title: text,
    description: nothing,
  },
  compaction_update: {
    _meta: nothing,
    sessionUpdate: word("compaction_update"),
    timestamp: time,
    compactionId: name,
    status: word("completed"),
    summary: list(textContent),
  },
  prompt_response: { _meta: empty, timestamp: time, stopReason: name },
  error: { message: text, code: orNull(number), details: orNull(isObject), timestamp: time },
  artifact_created: {
    timestamp: time,
    artifact: object({ id: text, type: text, name: text, path: text, preview_url: orNull(text) }),
  },
};

/** What is wrong with a packet. */
export function faults(packet: Fields): string[] {
  if (packet.type === "tool_call_progress") return wrongProgress(packet);
  const table = tables[String(packet.type)];
  return table ? wrong(packet, table) : [`nobody knows ${packet.type}`];
}
