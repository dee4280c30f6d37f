// Runs the real agents by narrows, against the model of this folder. One line for each agent and check.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { AGENTS, configure, environment, programs } from "./agents.mjs";
import { difference, normal, parsed, replay, told } from "./compare.mjs";
import { listen } from "./model.mjs";
import { HELLO, LONG } from "./scripts.mjs";
import { Narrows, Watcher, pause, until } from "./server.mjs";

const top = fileURLToPath(new URL("../../", import.meta.url));
const program = path.resolve(process.env.NARROWS ?? path.join(top, "target/debug/narrows"));
const packages = path.join(top, "target/agents/node_modules");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "narrows-agents-"));
const [home, bin, tmp] = ["home", "bin", "tmp"].map((name) => path.join(folder, name));
const PATIENCE = 90_000;
let failures = 0;

function tell(agent, check, problem, began) {
  if (problem) failures++;
  const time = began ? `  ${((Date.now() - began) / 1000).toFixed(1)} s` : "";
  console.log(`${problem ? "FAIL" : "ok  "} ${agent.padEnd(10)} ${check}${problem ? `: ${problem}` : time}`);
}

/// Processes that work in a folder, with their command lines.
function processes(where) {
  const found = [];
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const cwd = fs.readlinkSync(`/proc/${pid}/cwd`);
      const environ = fs.readFileSync(`/proc/${pid}/environ`, "utf8");
      const state = fs.readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "")[0];
      const line = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      const here = `${cwd}/`.startsWith(`${where}/`) || environ.includes(`${where}/`);
      if (here && state !== "Z" && Number(pid) !== process.pid) found.push(`${pid} ${line}`);
    } catch {
      // It has ended meanwhile, or is not ours.
    }
  }
  return found;
}

/// One agent in one session.
class Trial {
  constructor(narrows, agent, env, root) {
    Object.assign(this, { narrows, agent, env, root, packets: [] });
  }

  async check(name, body) {
    const began = Date.now();
    let problem;
    try {
      problem = await body();
    } catch (error) {
      problem = error.message || String(error);
    }
    tell(this.agent.name, name, problem, began);
    return !problem;
  }

  /// Sends a message and waits for the end of its turn. `choice` is the answer to whatever is asked.
  async turn(script, choice = "allow", during) {
    const where = `/api/sessions/${this.session}/send-message`;
    const content = `Please do this. [[${this.agent.name}:${script}]]`;
    const packets = [];
    const over = new AbortController();
    const late = setTimeout(() => over.abort(new Error(`the turn did not end in ${PATIENCE / 1000} s`)), PATIENCE);
    const answering = this.answer(choice, over.signal);
    answering.catch(() => {});
    const beside = during?.();
    // What goes wrong there is told below.
    beside?.catch(() => {});
    try {
      for await (const { data } of this.narrows.frames(where, { content }, over.signal)) packets.push(data);
      await beside;
    } finally {
      clearTimeout(late);
      over.abort();
      this.packets.push(...packets);
    }
    const asked = await answering;
    const last = packets.at(-1);
    if (last?.type !== "prompt_response") throw new Error(`the stream ends with ${JSON.stringify(last)}`);
    return { packets, asked, stopReason: last.stopReason };
  }

  /// Answers what the agent asks, over REST, until the turn is over.
  async answer(choice, over) {
    const seen = new Map();
    const done = new Set();
    while (!over.aborted) {
      const { requests } = await this.narrows.ask(`/api/sessions/${this.session}/run`);
      for (const request of requests.filter((one) => !done.has(one))) {
        const item = (await this.narrows.items(this.session)).find((one) => one.requestId === request);
        if (!item) {
          if (!seen.has(request)) seen.set(request, Date.now());
          if (Date.now() - seen.get(request) < 2000) continue;
          await this.narrows.ask(`/api/sessions/${this.session}/cancel`, {});
          throw new Error(`the agent asks (${request}), but no item tells so`);
        }
        done.add(request);
        const option = item.options.find((one) => one.kind === `${choice}_once`);
        if (!option) throw new Error(`none of the options fits: ${JSON.stringify(item.options)}`);
        const where = `/api/sessions/${this.session}/permissions/${encodeURIComponent(request)}`;
        await this.narrows.ask(where, { optionId: option.optionId });
        const again = await this.narrows.fetch(where, { optionId: option.optionId });
        if (again.status !== 409) throw new Error(`a second answer was taken: ${again.status}`);
      }
      await pause(60);
    }
    return done.size;
  }

  async last(type) {
    return (await this.narrows.items(this.session)).filter((item) => item.type === type).at(-1);
  }

  async said(text) {
    const found = (await this.last("text"))?.content;
    return found?.includes(text) ? undefined : `the agent said ${JSON.stringify(found)}`;
  }

  file(name) {
    const file = path.join(this.root, name);
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined;
  }

  async run() {
    const { agent, narrows } = this;
    fs.mkdirSync(this.root, { recursive: true });
    fs.writeFileSync(path.join(this.root, "notes.md"), "# Notes\n\nteh first line\nthe second line\n");
    const begins = await this.check("begins", async () => {
      const made = await narrows.ask("/api/runs", { agent: agent.name, cwd: this.root, mode: agent.mode });
      this.session = made.id;
      this.watcher = new Watcher(narrows, made.id);
    });
    if (!begins) return;
    const works = await this.check("text", async () => {
      await this.turn("text");
      return this.said(HELLO);
    });
    if (works) {
      await this.deeds();
      await this.cancelled();
      await this.resumed();
      await this.agreed();
    }
    await this.check("stop leaves no process", async () => {
      await narrows.ask(`/api/sessions/${this.session}/stop`, {});
      const gone = await until(() => processes(this.root).length === 0, 5000);
      return gone ? undefined : processes(this.root).join("; ");
    });
    await this.watcher.stop();
  }

  async deeds() {
    await this.check("edits", async () => {
      const { packets } = await this.turn("edits");
      if (!this.file("notes.md").includes("the first line")) return "notes.md is as it was";
      if (this.file("made.txt") !== "made by an agent\n") return "made.txt is not there";
      const items = await this.narrows.items(this.session);
      const calls = items.filter((item) => item.type === "tool_call").map((item) => item.toolCall);
      if (calls.length !== 3) return `${calls.length} calls, not 3`;
      const wrong = calls.find((call) => call.status !== "completed");
      if (wrong) return `${wrong.id} is ${wrong.status}: ${wrong.error}`;
      for (const name of ["notes.md", "made.txt"]) {
        if (!calls.some((call) => call.diffs?.some((diff) => diff.path === name))) return `no diff of ${name}`;
      }
      if (JSON.stringify([packets, items]).includes(this.root)) return "the folder's path is told";
    });
    await this.check("command", async () => {
      await this.turn("run");
      const { toolCall } = await this.last("tool_call");
      if (toolCall.status !== "completed") return `it is ${toolCall.status}`;
      const printed = toolCall.rawOutput ?? "";
      if (!this.agent.silent && !printed.includes("from-the-command")) return `it printed ${JSON.stringify(printed)}`;
    });
    await this.check("permission allowed", async () => {
      const { asked } = await this.turn("allow");
      if (!asked) return "nobody was asked";
      if (this.file("allowed.txt") !== "yes\n") return "the command did not run";
      const { toolCall } = await this.last("tool_call");
      if (toolCall.permission?.decision !== "allowed") return `the call says ${JSON.stringify(toolCall.permission)}`;
    });
    await this.check("permission rejected", async () => {
      const { asked } = await this.turn("reject", "reject");
      if (!asked) return "nobody was asked";
      if (this.file("refused.txt") !== undefined) return "the command ran";
      const { toolCall } = await this.last("tool_call");
      if (toolCall.permission?.decision !== "rejected") return `the call says ${JSON.stringify(toolCall.permission)}`;
      if (toolCall.status === "completed") return "the call is completed";
    });
  }

  async cancelled() {
    const sleeps = () => processes(this.root).some((line) => line.endsWith(` sleep ${LONG}`));
    await this.check("cancel in a command", async () => {
      const { stopReason } = await this.turn("long", "allow", async () => {
        if (!(await until(sleeps, 30_000))) throw new Error("the command does not run");
        await this.narrows.ask(`/api/sessions/${this.session}/cancel`, {});
      });
      if (stopReason !== "cancelled") return `the turn ended with ${stopReason}`;
      if (!(await until(() => !sleeps(), 5000))) return "the command runs on";
      const { toolCall } = await this.last("tool_call");
      // Some agents call that completed.
      if (["pending", "in_progress"].includes(toolCall.status)) return `the call is ${toolCall.status}`;
      if (toolCall.rawOutput?.includes("it-ends\n")) return "the command came to its end";
    });
    await this.check("goes on after it", async () => {
      await this.turn("after");
      const { error } = await this.narrows.ask(`/api/sessions/${this.session}/run`);
      return error ?? this.said("Still here after that.");
    });
  }

  async resumed() {
    await this.check("resumes", async () => {
      // Gemini names the file of a session by the minute, and one that is begun in the same minute takes
      // the place of the older one.
      if (this.agent.byMinute) await pause(60_500 - (Date.now() % 60_000));
      const before = await this.narrows.items(this.session);
      const { done } = await this.narrows.ask(`/api/sessions/${this.session}/stop`, {});
      if (!done) return "there was no agent to stop";
      await this.turn("recall");
      const wrong = await this.said("Before this came: text edits run allow reject long after.");
      if (wrong) return wrong;
      const items = await this.narrows.items(this.session);
      const doubled = difference(before, items.slice(0, before.length));
      if (doubled) return `what was there has changed: ${doubled}`;
      const more = items.slice(before.length).map((item) => item.type);
      if (more.join() !== "user_message,text") return `new are ${more}`;
    });
  }

  async agreed() {
    const { agent, narrows } = this;
    const items = await narrows.items(this.session);
    await this.check("watched as stored", async () => {
      if (this.watcher.error) return String(this.watcher.error);
      await until(() => !difference(this.watcher.list(), items), 3000);
      return difference(this.watcher.list(), items);
    });
    await this.check("packets as stored", () => {
      const file = path.join(folder, `${agent.name}-packets.jsonl`);
      fs.writeFileSync(file, this.packets.map((packet) => `${JSON.stringify(packet)}\n`).join(""));
      return difference(told(parsed(program, "auto", file, this.root, home)), told(items));
    });
    const { nativeId, info } = await narrows.ask(`/api/sessions/${this.session}`);
    await this.check("everything understood", () =>
      info.unknown + info.malformed ? `${info.unknown} unknown, ${info.malformed} malformed` : undefined);
    if (!agent.acp) {
      await this.check("history as stored", () => {
        const files = fs.readdirSync(path.join(home, ".claude/projects"), { recursive: true });
        const file = files.find((name) => name.endsWith(`${nativeId}.jsonl`));
        if (!file) return `there is no history of ${nativeId}`;
        const kept = parsed(program, "claude-history", path.join(home, ".claude/projects", file), this.root, home);
        return difference(normal(items), normal(kept));
      });
      return;
    }
    await this.check("replay as stored", async () => {
      await narrows.ask(`/api/sessions/${this.session}/stop`, {});
      if (agent.byMinute) await pause(60_500 - (Date.now() % 60_000));
      const file = path.join(folder, `${agent.name}-replay.jsonl`);
      await replay(agent.acp, { cwd: this.root, env: this.env, session: nativeId, file });
      const replayed = parsed(program, "acp", file, this.root, home);
      const kept = items.filter((item) => !(agent.forgets && item.type === "tool_call" && cutOff(item.toolCall)));
      return difference(told(kept), told(replayed));
    });
  }
}

/// A call that was refused or cancelled.
const cutOff = (call) => call.status === "cancelled" || call.permission?.decision === "rejected";

async function main() {
  for (const each of [home, tmp]) fs.mkdirSync(each);
  programs(packages, bin);
  const roots = new Map();
  const log = path.join(folder, "model.log");
  const model = await listen(roots, (line) => fs.appendFileSync(log, `${line}\n`));
  const env = environment(model.url, { home, bin, tmp });
  const config = configure(model.url, home);
  const narrows = new Narrows(program, { data: path.join(folder, "data"), config, env, log: path.join(folder, "server.log") });
  await narrows.start();
  const chosen = AGENTS.filter(({ name }) => process.argv.length < 3 || process.argv.includes(name));
  const known = (await narrows.ask("/api/agents")).agents;
  const waiting = chosen.filter(({ name, acp }) => {
    const there = fs.existsSync(path.join(bin, acp?.[0] ?? name));
    const problem = there ? known.find((one) => one.name === name)?.problem : "its package is not there for this system";
    if (problem) tell(name, "installed", problem);
    return !problem;
  });
  const lane = async () => {
    for (let agent = waiting.shift(); agent; agent = waiting.shift()) {
      const root = path.join(folder, "roots", agent.name);
      roots.set(agent.name, root);
      await new Trial(narrows, agent, env, root).run();
    }
  };
  try {
    await Promise.all(Array.from({ length: Number(process.env.LANES ?? 2) }, lane));
  } finally {
    await narrows.stop();
    model.close();
  }
  const left = (await until(() => processes(folder).length === 0, 5000)) ? undefined : processes(folder).join("; ");
  tell("all", "no process is left", left);
}

await main().catch((error) => tell("all", "the test itself", error.stack));
if (failures) console.log(`\n${failures} failed; what was left is in ${folder}`);
else fs.rmSync(folder, { recursive: true, force: true });
process.exit(failures ? 1 : 0);
