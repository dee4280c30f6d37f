// A narrows of the test's own, asked over HTTP.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";

export const pause = (time) => new Promise((over) => setTimeout(over, time));

/// Waits until something is true; false when it does not become so.
export async function until(is, patience) {
  const end = Date.now() + patience;
  while (!(await is())) {
    if (Date.now() > end) return false;
    await pause(50);
  }
  return true;
}

export class Narrows {
  constructor(program, { data, config, env, log }) {
    Object.assign(this, { program, data, config, env, log, printed: "" });
  }

  async start() {
    const args = ["serve", "--allow-run", "--bind", "127.0.0.1:0", "--data", this.data, "--config", this.config];
    const env = { ...this.env, NARROWS_LOG: "info" };
    this.child = spawn(this.program, args, { env, stdio: ["ignore", "pipe", fs.openSync(this.log, "a")] });
    this.child.stdout.on("data", (bytes) => (this.printed += bytes));
    const listens = () => {
      if (this.child.exitCode !== null) throw new Error("narrows ended at once");
      return /\n {2}token /.test(this.printed);
    };
    if (!(await until(listens, 20_000))) throw new Error("narrows does not listen");
    this.url = this.printed.match(/listens on (\S+)/)[1];
    this.token = fs.readFileSync(path.join(this.data, "token"), "utf8").trim();
  }

  async stop() {
    if (!this.child || this.child.exitCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGTERM");
    await ended;
  }

  async ask(where, body) {
    const response = await this.fetch(where, body);
    const answer = await response.json();
    if (!response.ok) throw new Error(`${where}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  }

  fetch(where, body, signal) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    const method = body ? "POST" : "GET";
    return fetch(this.url + where, { method, headers, body: body && JSON.stringify(body), signal });
  }

  /// The frames of a stream of server-sent events, as they come.
  async *frames(where, body, signal) {
    const response = await this.fetch(where, body, signal);
    if (!response.ok) throw new Error(`${where}: ${response.status} ${await response.text()}`);
    let held = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (held + text).split("\n\n");
      held = blocks.pop();
      for (const block of blocks) {
        const lines = block.split("\n");
        const value = (name) => lines.filter((l) => l.startsWith(`${name}: `)).map((l) => l.slice(name.length + 2));
        const data = value("data").join("\n");
        if (data) yield { event: value("event")[0], data: JSON.parse(data) };
      }
    }
  }

  /// All items of a session, whole.
  async items(session) {
    const items = [];
    for (let from = 0, more = true; more; ) {
      const page = await this.ask(`/api/sessions/${session}/items?from=${from}&limit=500&preview=0`);
      items.push(...page.items);
      more = page.after && page.items.length > 0;
      from = more ? page.items.at(-1).order + 1 : from;
    }
    return items;
  }
}

/// The items of a session as one who watches it from the beginning has them.
export class Watcher {
  constructor(narrows, session) {
    this.items = new Map();
    this.over = new AbortController();
    this.done = this.follow(narrows, session).catch((error) => {
      if (!this.over.signal.aborted) this.error = error;
    });
  }

  async follow(narrows, session) {
    const where = `/api/sessions/${session}/events?view=items`;
    for await (const { data } of narrows.frames(where, undefined, this.over.signal)) {
      for (const change of data.changes ?? (data.change ? [data] : [])) this.apply(change);
    }
  }

  apply(change) {
    if (change.change === "put") return this.items.set(change.item.id, structuredClone(change.item));
    if (change.change === "remove") return this.items.delete(change.id);
    const item = this.items.get(change.id);
    if (!item) return;
    const text = item.type === "user_message" ? "text" : "content";
    if (change.change === "append" && change.field === "rawOutput") {
      item.toolCall.rawOutput = (item.toolCall.rawOutput ?? "") + change.text;
    } else if (change.change === "append") {
      item[text] += change.text;
    } else if (change.change === "set") {
      const { change: _, id: __, content, toolCall, ...rest } = change;
      Object.assign(item, rest);
      if (content !== undefined) item[text] = content;
      if (toolCall?.toolName === "unknown") toolCall.toolName = item.toolCall.toolName;
      if (toolCall) Object.assign(item.toolCall, toolCall, { id: item.toolCall.id });
    }
  }

  list() {
    return [...this.items.values()].sort((a, b) => a.order - b.order);
  }

  async stop() {
    this.over.abort();
    await this.done;
  }
}
