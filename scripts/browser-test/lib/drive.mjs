// What the tests share: a server, pages of another origin, a browser, and the end of all of them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const root = fileURLToPath(new URL("../../../", import.meta.url));
const LONGEST = 120_000;
const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--no-first-run", "--disable-quic",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];
const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/// Runs a test with a folder of its own. Whatever it opened is closed in any case.
export async function test(name, body, { longest = LONGEST } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "narrows-browser-test-"));
  const closers = [];
  const began = Date.now();
  const late = setTimeout(() => {
    console.error(`${name}: not done after ${longest / 1000} s`);
    fs.rmSync(folder, { recursive: true, force: true });
    process.exit(1);
  }, longest);
  try {
    await body({ folder, closing: (close) => closers.push(close) });
    console.log(`${name}: ok, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  } catch (error) {
    console.error(`${name}: failed\n${error.stack ?? error}`);
    process.exitCode = 1;
  } finally {
    for (const close of closers.reverse()) await close().catch(() => {});
    clearTimeout(late);
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/// Waits until something is true.
export async function until(what, is, patience = 30_000) {
  const end = Date.now() + patience;
  let last;
  do {
    last = await is();
    if (last === true) return;
    await new Promise((again) => setTimeout(again, 25));
  } while (Date.now() < end);
  throw new Error(`waited for: ${what}${last ? `\n${last}` : ""}`);
}

/// A narrows of the test's own, with a store of its own.
export class Narrows {
  constructor(test, ...options) {
    const program = path.resolve(process.env.NARROWS ?? path.join(root, "target/debug/narrows"));
    Object.assign(this, { data: path.join(test.folder, "data"), options, bind: "127.0.0.1:0", program });
    test.closing(() => this.stop("SIGTERM"));
  }

  async start(patience) {
    const args = ["serve", "--bind", this.bind, "--data", this.data, "--no-env", ...this.options];
    const env = { PATH: process.env.PATH, HOME: this.data, NARROWS_LOG: "warn" };
    this.child = spawn(this.program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    children.add(this.child);
    let printed = "";
    this.child.stdout.on("data", (bytes) => (printed += bytes));
    await until("narrows to listen", () => {
      if (this.child.exitCode !== null) throw new Error("narrows ended at once");
      return /\n {2}token /.test(printed);
    }, patience);
    this.url = printed.match(/listens on (\S+)/)[1];
    this.ticket = printed.match(/page +(\S+)/)[1];
    this.bind = new URL(this.url).host;
    this.token = fs.readFileSync(path.join(this.data, "token"), "utf8").trim();
  }

  async stop(signal) {
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill(signal);
    await ended;
    children.delete(this.child);
  }

  /// Asks as the owner; the answer's JSON.
  async ask(where, body, type = "application/json") {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": type };
    const text = typeof body === "object" ? JSON.stringify(body) : body;
    const response = await fetch(this.url + where, { method: body ? "POST" : "GET", headers, body: text });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${where}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  }

  /// Sends packets, from a place on.
  async send(session, lines, first, more = "") {
    const where = `/api/sessions/${session}/packets?first=${first}${more}`;
    return this.ask(where, lines.slice(first - 1).join("\n") + "\n", "application/x-ndjson");
  }
}

/// A config file with the scripted agents, one of each protocol, and one that is not there; its path.
export function scripted(test) {
  const agent = (name, program, protocol) => {
    const argv = JSON.stringify([program, "--state", path.join(test.folder, `${name}-state`)]);
    return `[[agent]]\nname = "${name}"\nargv = ${argv}\nprotocol = "${protocol}"\n`;
  };
  const example = (name) => path.join(root, "target/debug/examples", name);
  const file = path.join(test.folder, "config.toml");
  fs.writeFileSync(file, [
    agent("scripted", example("scripted_acp"), "acp"),
    agent("asker", example("scripted_claude"), "claude"),
    agent("missing", "/nowhere/to/be-found", "acp"),
  ].join("\n"));
  return file;
}

/// The packets of a recorded session.
export function packets() {
  const file = "crates/narrows/tests/fixtures/acp/opencode-1.18-c-files/input.jsonl";
  return fs.readFileSync(path.join(root, file), "utf8").trimEnd().split("\n");
}

/// Serves a folder as an origin of its own; its address.
export async function origin(test, folder) {
  const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8" };
  const server = http.createServer((request, response) => {
    const name = path.basename(new URL(request.url, "http://localhost").pathname) || "index.html";
    fs.readFile(path.join(folder, name), (error, bytes) => {
      // A browser asks for an icon by itself.
      if (error) return response.writeHead(name === "favicon.ico" ? 204 : 404).end();
      response.writeHead(200, { "content-type": types[path.extname(name)] ?? "text/plain" }).end(bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  test.closing(async () => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${server.address().port}`;
}

/// A browser that knows nothing; `complaints` is what its pages' consoles say.
export async function browser(test, name, more = {}) {
  const profile = path.join(test.folder, name);
  const options = { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGS, headless: true, ...more };
  const context = await chromium.launchPersistentContext(profile, options);
  test.closing(() => context.close());
  const complaints = [];
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
  return { context, complaints };
}
