// A model that says what a script tells it to, in the tongues of the agents: Anthropic Messages, OpenAI
// Responses, OpenAI Chat Completions, Gemini. It listens on loopback only.
import http from "node:http";
import { steps } from "./scripts.mjs";
import { call } from "./tools.mjs";

/// `[[agent:script]]` in a prompt says which script is played.
const MARK = /\[\[([a-z-]+):([a-z-]+)\]\]/g;
let count = 0;
const id = (kind) => `${kind}_narrows${String(++count).padStart(6, "0")}`;

/// Begins to listen. `roots` has the folder in which each agent works.
export async function listen(roots, log = () => {}) {
  const server = http.createServer((request, response) => {
    serve(roots, request, response, log).catch((error) => {
      log(`model: ${error.stack}`);
      response.destroy();
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const close = () => (server.closeAllConnections(), server.close());
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

async function serve(roots, request, response, log) {
  const { pathname } = new URL(request.url, "http://127.0.0.1");
  let text = "";
  for await (const bytes of request.setEncoding("utf8")) text += bytes;
  log(`model: ${request.method} ${pathname} ${text.length}`);
  const body = text.startsWith("{") ? JSON.parse(text) : {};
  if (/count_?tokens$/i.test(pathname)) return json(response, { input_tokens: 100, totalTokens: 100 });
  const tongue = tongues.find(([path]) => path.test(pathname))?.[1];
  if (tongue) return tongue(body, (asked) => answer(roots, asked), response, pathname);
  if (request.method === "GET") return json(response, { object: "list", data: [], models: [] });
  json(response, { error: { message: "not here" } }, 404);
}

/// What is said next. `said` is the conversation: texts of the user, and calls of the model.
function answer(roots, { said, tools, schema }) {
  // Requests beside the conversation (titles, checks) get something that fits.
  if (!tools.size) return { text: schema ? JSON.stringify(made(schema)) : "A small task" };
  let found;
  const before = [];
  said.forEach((one, at) => {
    for (const [, agent, script] of (one.user ?? "").matchAll(MARK)) {
      if (found) before.push(found.script);
      found = { agent, script, at };
    }
  });
  if (!found) return { text: "There is nothing to do." };
  const done = said.slice(found.at + 1).filter((one) => one.call).length;
  const step = steps(found.script, [...new Set(before)])[done] ?? { text: "There is no more to do." };
  return step.text === undefined ? { ...step, call: call(step, tools, roots.get(found.agent)) } : step;
}

/// Something that a schema allows.
function made(schema) {
  if (schema.enum) return schema.enum[0];
  switch (String(schema.type).toLowerCase()) {
    case "object":
      return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, of]) => [name, made(of)]));
    case "array":
      return [];
    case "boolean":
      return false;
    case "number":
    case "integer":
      return 1;
    default:
      return "A small task";
  }
}

function json(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/// Sends events, with a little time between them, as a model does.
async function stream(response, frames) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const [name, value] of frames) {
    if (response.destroyed) return;
    const data = typeof value === "string" ? value : JSON.stringify(value);
    response.write(`${name ? `event: ${name}\n` : ""}data: ${data}\n\n`);
    await new Promise((next) => setTimeout(next, 2));
  }
  response.end();
}

const pieces = (text) => text.match(/[^]{1,7}/gu) ?? [];
const words = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");

// --- Anthropic Messages

async function messages(body, ask, response) {
  const said = [];
  for (const { role, content } of body.messages ?? []) {
    if (role === "user") said.push({ user: words(content) });
    else if (Array.isArray(content)) said.push(...content.filter((part) => part.type === "tool_use").map(() => ({ call: true })));
  }
  const tools = new Set((body.tools ?? []).map((tool) => tool.name));
  const told = ask({ said, tools, schema: body.output_config?.format?.schema ?? body.output_format?.schema });
  const content = [];
  if (told.text) content.push({ type: "text", text: told.text });
  if (told.call) content.push({ type: "tool_use", id: id("toolu"), name: told.call.name, input: told.call.input });
  const usage = { input_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 10 };
  const whole = {
    id: id("msg"), type: "message", role: "assistant", model: body.model, content,
    stop_reason: told.call ? "tool_use" : "end_turn", stop_sequence: null, usage,
  };
  if (!body.stream) return json(response, whole);
  const frames = [];
  const frame = (type, more) => frames.push([type, { type, ...more }]);
  frame("message_start", { message: { ...whole, content: [], stop_reason: null } });
  content.forEach((part, index) => {
    const isText = part.type === "text";
    frame("content_block_start", { index, content_block: isText ? { type: "text", text: "" } : { ...part, input: {} } });
    for (const piece of pieces(isText ? part.text : JSON.stringify(part.input))) {
      const delta = isText ? { type: "text_delta", text: piece } : { type: "input_json_delta", partial_json: piece };
      frame("content_block_delta", { index, delta });
    }
    frame("content_block_stop", { index });
  });
  frame("message_delta", { delta: { stop_reason: whole.stop_reason, stop_sequence: null }, usage });
  frame("message_stop", {});
  return stream(response, frames);
}

// --- OpenAI Responses

async function responses(body, ask, response) {
  const input = typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input ?? [];
  const said = [];
  for (const one of input) {
    if (one.role === "user") said.push({ user: words(one.content) });
    else if (/^(function|custom_tool|local_shell)_call$/.test(one.type)) said.push({ call: true });
  }
  const all = (body.tools ?? []).flatMap((tool) => (tool.type === "namespace" ? tool.tools : [tool]));
  const tools = new Set(all.map((tool) => tool.name));
  const free = new Set(all.filter((tool) => tool.type === "custom").map((tool) => tool.name));
  const told = ask({ said, tools, schema: body.text?.format?.schema });
  const output = [];
  if (told.text) {
    const content = [{ type: "output_text", text: told.text, annotations: [] }];
    output.push({ id: id("msg"), type: "message", status: "completed", role: "assistant", content });
  }
  if (told.call) {
    const { name, input: given } = told.call;
    const head = { status: "completed", call_id: id("call"), name };
    if (free.has(name)) output.push({ id: id("ctc"), type: "custom_tool_call", ...head, input: given.input });
    else output.push({ id: id("fc"), type: "function_call", ...head, arguments: JSON.stringify(given) });
  }
  const usage = {
    input_tokens: 20, input_tokens_details: { cached_tokens: 0 }, output_tokens: 10,
    output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 30,
  };
  const whole = { id: id("resp"), object: "response", created_at: 1, status: "completed", model: body.model, output, usage };
  if (!body.stream) return json(response, whole);
  const frames = [];
  const frame = (type, more) => frames.push([type, { type, sequence_number: frames.length, ...more }]);
  const begun = { ...whole, status: "in_progress", output: [], usage: null };
  frame("response.created", { response: begun });
  output.forEach((item, output_index) => {
    const place = { item_id: item.id, output_index };
    if (item.type === "message") {
      const [part] = item.content;
      frame("response.output_item.added", { output_index, item: { ...item, status: "in_progress", content: [] } });
      frame("response.content_part.added", { ...place, content_index: 0, part: { ...part, text: "" } });
      for (const delta of pieces(part.text)) frame("response.output_text.delta", { ...place, content_index: 0, delta });
      frame("response.output_text.done", { ...place, content_index: 0, text: part.text });
      frame("response.content_part.done", { ...place, content_index: 0, part });
    } else {
      frame("response.output_item.added", { output_index, item: { ...item, status: "in_progress" } });
    }
    frame("response.output_item.done", { output_index, item });
  });
  frame("response.completed", { response: whole });
  return stream(response, frames);
}

// --- OpenAI Chat Completions

async function chat(body, ask, response) {
  const said = [];
  for (const { role, content, tool_calls } of body.messages ?? []) {
    if (role === "user") said.push({ user: words(content) });
    said.push(...(tool_calls ?? []).map(() => ({ call: true })));
  }
  const tools = new Set((body.tools ?? []).map((tool) => tool.function?.name));
  const told = ask({ said, tools, schema: body.response_format?.json_schema?.schema });
  const message = { role: "assistant", content: told.text ?? "" };
  if (told.call) {
    const asked = { name: told.call.name, arguments: JSON.stringify(told.call.input) };
    message.tool_calls = [{ index: 0, id: id("call"), type: "function", function: asked }];
  }
  const finish_reason = told.call ? "tool_calls" : "stop";
  const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
  const head = { id: id("chat"), created: 1, model: body.model };
  if (!body.stream) {
    return json(response, { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage });
  }
  const frame = (delta, finish = null) =>
    ["", { ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] }];
  const frames = pieces(message.content).map((content) => frame({ role: "assistant", content }));
  if (message.tool_calls) frames.push(frame({ role: "assistant", tool_calls: message.tool_calls }));
  frames.push(frame({}, finish_reason));
  frames.push(["", { ...head, object: "chat.completion.chunk", choices: [], usage }], ["", "[DONE]"]);
  return stream(response, frames);
}

// --- Gemini

async function gemini(body, ask, response, path) {
  const said = [];
  for (const { role, parts } of body.contents ?? []) {
    for (const part of parts ?? []) {
      if (role === "user" && part.text) said.push({ user: part.text });
      if (part.functionCall) said.push({ call: true });
    }
  }
  const tools = new Set((body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map((tool) => tool.name));
  const { responseJsonSchema, responseSchema } = body.generationConfig ?? {};
  const told = ask({ said, tools, schema: responseJsonSchema ?? responseSchema });
  const streams = /:stream/.test(path);
  const parts = streams ? pieces(told.text ?? "").map((text) => ({ text })) : [{ text: told.text ?? "" }];
  if (told.call) parts.push({ functionCall: { id: id("call"), name: told.call.name, args: told.call.input } });
  const head = {
    modelVersion: "scripted", responseId: id("resp"),
    usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 10, totalTokenCount: 30 },
  };
  const frame = (list, finishReason) =>
    ({ candidates: [{ content: { role: "model", parts: list }, index: 0, finishReason }], ...head });
  if (!streams) return json(response, frame(parts, "STOP"));
  return stream(response, parts.map((part, at) => ["", frame([part], at === parts.length - 1 ? "STOP" : undefined)]));
}

const tongues = [
  [/\/messages$/, messages],
  [/\/responses$/, responses],
  [/\/chat\/completions$/, chat],
  [/:(stream)?generateContent$/i, gemini],
];
