// Sessions that are made up: as Claude Code keeps its own, and as an agent of the protocol sends them.

const SECOND = 1000;

/// A session as Claude Code writes it down. What is said last is said now, if no other time is given.
export class Claude {
  constructor({ id = crypto.randomUUID(), cwd = "/srv/shop", model = "claude-sonnet-4-5", at = Date.now() } = {}) {
    Object.assign(this, { id, cwd, model, at, records: [] });
  }

  record(type, more) {
    const n = this.records.length + 1;
    const uuid = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
    this.records.push({ type, uuid, sessionId: this.id, cwd: this.cwd, version: "2.1.325", ...more });
    return this;
  }

  user(content) {
    return this.record("user", { message: { role: "user", content } });
  }

  assistant(content) {
    // An answer is of one session: those that have one in common are forks.
    const id = `msg-${this.id.slice(0, 8)}-${this.records.length}`;
    const usage = { input_tokens: 40, output_tokens: 20 };
    return this.record("assistant", {
      requestId: `req-${id}`,
      message: { id, role: "assistant", model: this.model, content: [content], usage },
    });
  }

  says(text) {
    return this.assistant({ type: "text", text });
  }

  thinks(thinking) {
    return this.assistant({ type: "thinking", thinking, signature: "" });
  }

  /// A call; without an output it has not come back yet.
  calls(name, input, output, { id = `toolu-${this.id}-${this.records.length}`, ...more } = {}) {
    this.assistant({ type: "tool_use", id, name, input });
    if (output === undefined) return this;
    return this.user([{ type: "tool_result", tool_use_id: id, content: output, ...more }]);
  }

  /// What somebody called it.
  named(customTitle) {
    return this.record("custom-title", { customTitle });
  }

  /// What the agent calls it.
  titled(aiTitle) {
    return this.record("ai-title", { aiTitle });
  }

  get lines() {
    const first = this.at - this.records.length * SECOND;
    return this.records.map((record, n) =>
      JSON.stringify({ timestamp: new Date(first + (n + 1) * SECOND).toISOString(), ...record }),
    );
  }
}

/// A session of an agent of the protocol, with the client's side of it.
export class Acp {
  constructor({ agent = "OpenCode", cwd = "/srv/shop", at = Date.now() } = {}) {
    Object.assign(this, { at, messages: [], asked: 1, session: "ses-1" });
    this.message("client", { id: 0, method: "initialize", params: { protocolVersion: 1 } });
    this.message("agent", { id: 0, result: { protocolVersion: 1, agentInfo: { name: agent, title: agent, version: "1.18.33" } } });
    this.message("client", { id: 1, method: "session/new", params: { cwd, mcpServers: [] } });
    this.message("agent", { id: 1, result: { sessionId: this.session } });
  }

  message(from, message) {
    const dir = from === "agent" ? "agent->client" : "client->agent";
    this.messages.push({ dir, msg: { jsonrpc: "2.0", ...message } });
    return this;
  }

  update(sessionUpdate, more, parent) {
    const meta = parent && { _meta: { claudeCode: { parentToolUseId: parent } } };
    const update = { sessionUpdate, ...more, ...meta };
    return this.message("agent", { method: "session/update", params: { sessionId: this.session, update } });
  }

  prompt(text) {
    const id = ++this.asked;
    return this.message("client", { id, method: "session/prompt", params: { sessionId: this.session, prompt: [{ type: "text", text }] } });
  }

  /// The answer to the last prompt is over.
  done(stopReason = "end_turn") {
    return this.message("agent", { id: this.asked, result: { stopReason } });
  }

  says(text, parent) {
    return this.update("agent_message_chunk", { content: { type: "text", text } }, parent);
  }

  thinks(text) {
    return this.update("agent_thought_chunk", { content: { type: "text", text } });
  }

  /// A call, and how it ended unless `status` says that it goes on.
  calls(toolCallId, { title, kind, input, output, content, status = "completed", parent, ...more }) {
    this.update("tool_call", { toolCallId, title, kind, status: "pending", rawInput: input, ...more }, parent);
    const said = output === undefined ? content : [{ type: "content", content: { type: "text", text: output } }];
    return this.update("tool_call_update", { toolCallId, status, content: said, rawInput: input }, parent);
  }

  asks(toolCall, options) {
    return this.message("agent", {
      id: 1000 + this.messages.length, method: "session/request_permission",
      params: { sessionId: this.session, toolCall, options },
    });
  }

  get lines() {
    const first = this.at - this.messages.length * SECOND;
    return this.messages.map((message, n) =>
      JSON.stringify({ ts: new Date(first + (n + 1) * SECOND).toISOString(), ...message }),
    );
  }
}

/// Makes a session of these lines; its id.
export async function tell(narrows, { lines }, { label, more = "" } = {}) {
  const { id } = await narrows.ask("/api/sessions", label ? { label } : {});
  await narrows.send(id, lines, 1, more);
  return id;
}
