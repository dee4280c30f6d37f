// Whether two transcripts of a session tell the same.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { once } from "node:events";

/// The items that `narrows parse` makes of a file.
export function parsed(program, from, file, root, home) {
  const args = ["parse", "--format", from, "--view", "items", "--no-env", "--root", root, "--home", home, file];
  const text = execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line)).filter((item) => item.type);
}

/// The first difference, in words; nothing when there is none.
export function difference(ours, theirs) {
  const [a, b] = [ours, theirs].map((list) => list.map((one) => JSON.stringify(sorted(one))));
  const at = a.findIndex((one, place) => one !== b[place]);
  if (at < 0 && a.length === b.length) return undefined;
  const place = at < 0 ? a.length : at;
  const [x, y] = [a[place] ?? "(nothing)", b[place] ?? "(nothing)"];
  let from = 0;
  while (from < x.length && x[from] === y[from]) from++;
  const shown = (text) => text.slice(Math.max(0, from - 90), from + 110);
  return `at ${place} of ${a.length}/${b.length}: …${shown(x)} / …${shown(y)}`;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

/// What two forms of a session must agree in, by the rules of narrows' parity tests: everything but
/// times, durations, orders, and ids that come from places.
export function normal(items) {
  return items.map((item) => {
    const { order, timestamp, blockId, origin, isStreaming, parentToolCallId, ...rest } = structuredClone(item);
    if (rest.type !== "tool_call") delete rest.id;
    for (const key of ["content", "text"]) if (typeof rest[key] === "string") rest[key] = rest[key].trimEnd();
    if (rest.toolCall) delete rest.toolCall.durationMs;
    return rest;
  });
}

/// What a replay of an ACP agent must agree in: calls, and prompts and words without space. Messages have
/// no ids there: two prompts of which the first got no answer are one.
export function told(items) {
  const joined = (type, key) =>
    items.filter((item) => item.type === type).map((item) => item[key].replace(/\s/g, "")).join("");
  const calls = items.filter((item) => item.type === "tool_call").map(({ toolCall: call }) =>
    ({ id: call.id, kind: call.kind, toolName: call.toolName, status: call.status }));
  // Gemini replays names of calls as words, too.
  const said = joined("text", "content").replace(/\[FunctionCall:\w+\]/g, "");
  return [{ asked: joined("user_message", "text") }, ...calls, { said }];
}

/// Lets a new process of an agent load a session, and keeps what it says.
export async function replay(argv, { cwd, env, session, file }) {
  const child = spawn(argv[0], argv.slice(1), { cwd, env, stdio: ["pipe", "pipe", "ignore"], detached: true });
  const lines = [];
  const answers = new Map();
  let held = "";
  let last = Date.now();
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  const keep = (dir, msg) => lines.push(JSON.stringify({ ts: new Date().toISOString(), dir, msg }));
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const parts = (held + text).split("\n");
    held = parts.pop();
    last = Date.now();
    for (const part of parts.filter((one) => one.startsWith("{"))) {
      const message = JSON.parse(part);
      keep("agent->client", message);
      answers.get(message.method ? undefined : message.id)?.(message);
    }
  });
  const ask = (id, method, params) => new Promise((resolve, reject) => {
    const message = { jsonrpc: "2.0", id, method, params };
    keep("client->agent", message);
    child.stdin.write(`${JSON.stringify(message)}\n`);
    answers.set(id, ({ error, result }) => (error ? reject(new Error(JSON.stringify(error))) : resolve(result)));
    setTimeout(() => reject(new Error(`no answer to ${method}`)), 40_000).unref();
  });
  try {
    await ask(0, "initialize", { protocolVersion: 1, clientCapabilities: {} });
    await ask(1, "session/load", { sessionId: session, cwd, mcpServers: [] });
    while (Date.now() - last < 700) await new Promise((later) => setTimeout(later, 50));
  } finally {
    const ended = once(child, "exit");
    try { process.kill(-child.pid, "SIGKILL"); } catch { /* it is gone */ }
    await ended;
    fs.writeFileSync(file, `${lines.join("\n")}\n`);
  }
}
