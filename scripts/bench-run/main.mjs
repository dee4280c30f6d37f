// From an agent's line to a frame in a browser, and many agents at once. What is lost or doubled is counted.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { Narrows, browser, root, test, until } from "../browser-test/lib/drive.mjs";

const AGENT = path.resolve(root, process.env.AGENT);
const AGENTS = Number(process.env.NARROWS_AGENTS ?? 50);
const STAMPS = Number(process.env.NARROWS_STAMPS ?? 400);
const micros = (n) => (n < 10_000 ? `${Math.round(n)} µs` : `${(n / 1000).toFixed(1)} ms`);
const part = (list, p) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * p))];
const told = (list) => `p50 ${micros(part(list, 0.5))}, p99 ${micros(part(list, 0.99))}, worst ${micros(part(list, 1))}`;
const stamps = (text) => [...text.matchAll(/@(\d{16}) /g)].map(([, at]) => Number(at));
const now = () => (performance.timeOrigin + performance.now()) * 1000;

/// The agent's own pipe: the least that anything can take.
async function bare() {
  const child = spawn(AGENT, [], { stdio: ["pipe", "pipe", "inherit"] });
  const times = [];
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  send({ id: 0, method: "initialize", params: { protocolVersion: 1 } });
  send({ id: 1, method: "session/new", params: { cwd: root, mcpServers: [] } });
  for await (const line of readline.createInterface({ input: child.stdout })) {
    const at = now();
    const message = JSON.parse(line);
    if (message.id === 1) {
      const prompt = [{ type: "text", text: `stamps ${STAMPS} 10` }];
      send({ id: 2, method: "session/prompt", params: { sessionId: message.result.sessionId, prompt } });
    }
    for (const stamp of stamps(line)) times.push(at - stamp);
    if (message.id === 2) break;
  }
  child.kill();
  return times;
}

/// In the page: a socket of its own that notes when frames come.
function listen(sessionId) {
  window.times = [];
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}/api/ws`);
  socket.onopen = () => socket.send(JSON.stringify({ type: "subscribe", sessionId, view: "items" }));
  socket.onmessage = ({ data }) => {
    const at = (performance.timeOrigin + performance.now()) * 1000;
    for (const [, stamp] of data.matchAll(/@(\d{16}) /g)) window.times.push(at - Number(stamp));
  };
}

function spent(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  const pages = Number(fs.readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return { cpu: (Number(fields[11]) + Number(fields[12])) / 100, memory: (pages * 4096) / 1e6 };
}

await test("bench-run", async (test) => {
  const config = path.join(test.folder, "config.toml");
  const agent = `[[agent]]\nname = "scripted"\nargv = [${JSON.stringify(AGENT)}]\n`;
  fs.writeFileSync(config, `${agent}[run]\nagents = ${AGENTS + 4}\n`);
  const narrows = new Narrows(test, "--no-follow", "--allow-run", "--config", config);
  await narrows.start();
  const least = await bare();
  const { context } = await browser(test, "reader");
  const page = context.pages()[0] ?? (await context.newPage());
  await page.goto(narrows.ticket);
  await page.getByRole("navigation", { name: "Sessions" }).waitFor();
  const { id } = await narrows.ask("/api/runs", { agent: "scripted" });
  await narrows.ask(`/api/sessions/${id}/send-message?wait=false`, { content: "say ready" });
  await page.evaluate(listen, id);
  await page.goto(narrows.ticket.split("#")[0]);
  await page.evaluate(listen, id);
  const idle = async (id) => (await narrows.ask(`/api/sessions/${id}/run`)).state === "idle";
  await until("ready", () => idle(id));
  await narrows.ask(`/api/sessions/${id}/send-message?wait=false`, { content: `stamps ${STAMPS} 10` });
  await until("all frames", async () => (await page.evaluate(() => window.times.length)) >= STAMPS, 60_000);
  const times = await page.evaluate(() => window.times);
  console.log(`agent's line to its own pipe: ${told(least)}`);
  console.log(`agent's line, durable, to a frame in the browser: ${told(times)} (${(part(times, 0.5) / part(least, 0.5)).toFixed(1)} times the pipe); ${times.length} of ${STAMPS}`);

  const ids = [];
  for (let n = 0; n < AGENTS; n++) ids.push((await narrows.ask("/api/runs", { agent: "scripted" })).id);
  for (const id of ids) await narrows.ask(`/api/sessions/${id}/send-message?wait=false`, { content: "say ready" });
  for (const id of ids) await until("ready", () => idle(id), 60_000);
  const before = spent(narrows.child.pid);
  const began = Date.now();
  for (const id of ids) await narrows.ask(`/api/sessions/${id}/send-message?wait=false`, { content: "stamps 400 20" });
  for (const id of ids) await until("done", () => idle(id), 120_000);
  const [took, after] = [(Date.now() - began) / 1000, spent(narrows.child.pid)];
  let [kept, doubled] = [0, 0];
  for (const id of ids) {
    const { items } = await narrows.ask(`/api/sessions/${id}/items?limit=500`);
    const found = items.flatMap((item) => stamps(`${item.content ?? ""} `));
    kept += new Set(found).size;
    doubled += found.length - new Set(found).size;
  }
  const cpu = after.cpu - before.cpu;
  console.log(`${AGENTS} agents, ${AGENTS * 400} lines in ${took.toFixed(1)} s: ${cpu.toFixed(1)} s of CPU (${Math.round((cpu / took) * 100)} % of one core), ${after.memory.toFixed(0)} MB (${before.memory.toFixed(0)} MB before); lost ${AGENTS * 400 - kept}, doubled ${doubled}`);
}, { longest: 300_000 });
