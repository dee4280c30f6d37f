// How the page stands up to a long session and to a fast one. Figures, no checks but for what is lost.
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { Narrows, browser, root, test } from "../browser-test/lib/drive.mjs";
import { ITEMS_PER_TURN, long } from "../browser-test/lib/long.mjs";

const ITEMS = Number(process.env.NARROWS_ITEMS ?? 100_000);
const ROUNDS = Number(process.env.NARROWS_ROUNDS ?? 5);
const ms = (n) => `${Math.round(n)} ms`;
const mb = (n) => `${(n / 1e6).toFixed(1)} MB`;
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

function assets() {
  const dist = path.join(root, "web/dist");
  const files = fs.readdirSync(dist, { recursive: true }).map((name) => path.join(dist, name));
  let [plain, packed, first] = [0, 0, 0];
  const entry = fs.readFileSync(path.join(dist, "index.html"), "utf8");
  for (const file of files.filter((name) => fs.statSync(name).isFile())) {
    const bytes = fs.readFileSync(file);
    const small = zlib.gzipSync(bytes, { level: 9 }).length;
    plain += bytes.length;
    packed += small;
    if (entry.includes(path.basename(file)) || file.endsWith("index.html")) first += small;
  }
  console.log(`assets: ${mb(plain)}, ${mb(packed)} with gzip; ${Math.round(first / 1000)} KB of that at the first visit`);
}

async function fill(narrows, label, turns) {
  const { id } = await narrows.ask("/api/sessions", { label });
  let [lines, first, bytes] = [[], 1, 0];
  const send = async () => {
    await narrows.ask(`/api/sessions/${id}/packets?first=${first}`, `${lines.join("\n")}\n`, "application/x-ndjson");
    first += lines.length;
    [lines, bytes] = [[], 0];
  };
  for (const line of long(turns)) {
    lines.push(line);
    bytes += line.length;
    if (bytes > 4e6) await send();
  }
  if (lines.length) await send();
  return { id, next: first };
}

/// In the page: when the first row was painted, and when the page was quiet after that.
const watch = () => {
  window.seen = { row: 0, quiet: 0 };
  let busy = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) busy = Math.max(busy, entry.startTime + entry.duration);
  }).observe({ type: "longtask", buffered: true });
  const look = () => {
    const row = document.querySelector("[data-row]");
    if (!row?.textContent) return requestAnimationFrame(look);
    requestAnimationFrame(() => {
      window.seen.row = performance.now();
      const rest = () => {
        if (performance.now() - Math.max(busy, window.seen.row) > 300) window.seen.quiet = Math.max(busy, window.seen.row);
        else setTimeout(rest, 50);
      };
      rest();
    });
  };
  requestAnimationFrame(look);
};

/// A page that only fetches the same window and shows its texts: what any page would have to do.
const bare = async (id) => {
  const began = performance.now();
  const headers = { authorization: `Bearer ${localStorage.getItem("narrows.login")}` };
  const page = await (await fetch(`/api/sessions/${id}/items?top=true&limit=120&preview=4000`, { headers })).json();
  const list = document.createElement("pre");
  list.textContent = page.items.map((item) => item.content ?? item.text ?? item.toolCall?.rawOutput ?? "").join("\n");
  document.body.replaceChildren(list);
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  return performance.now() - began;
};

async function opening(context, narrows, id) {
  const [rows, quiets, bares] = [[], [], []];
  for (let round = 0; round <= ROUNDS; round++) {
    const page = await context.newPage();
    await page.addInitScript(watch);
    await page.goto(`${narrows.url}/s/${id}`, { waitUntil: "commit" });
    await page.waitForFunction(() => window.seen?.quiet > 0);
    const seen = await page.evaluate("window.seen");
    await page.goto(`${narrows.url}/healthz`);
    const plain = await page.evaluate(bare, id);
    // The first one warms the caches of both.
    if (round) [rows, quiets, bares].forEach((list, i) => list.push([seen.row, seen.quiet, plain][i]));
    await page.close();
  }
  const [row, quiet, plain] = [rows, quiets, bares].map(median);
  console.log(
    `opening ${ITEMS} items (median of ${ROUNDS}): first content ${ms(row)}, interactive ${ms(quiet)};` +
      ` a bare page that shows the same window ${ms(plain)}`,
  );
}

/// In the page: the time between frames, and tasks that held one up.
const frames = () => {
  window.frames_ = [];
  window.held = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.held.push(entry.duration);
  }).observe({ type: "longtask" });
  let last = performance.now();
  const tick = (now) => {
    window.frames_.push(now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
};

async function streaming(context, narrows, rate, seconds) {
  const { id } = await narrows.ask("/api/sessions", { label: `stream-${rate}` });
  const page = await context.newPage();
  await page.goto(`${narrows.url}/s/${id}`);
  await page.waitForTimeout(1000);
  const packets = long(1e6);
  let sent = 0;
  const send = async (count) => {
    const lines = Array.from({ length: count }, () => packets.next().value);
    await narrows.ask(`/api/sessions/${id}/packets?first=${sent + 1}`, `${lines.join("\n")}\n`, "application/x-ndjson");
    sent += count;
  };
  await send(rate);
  await page.waitForTimeout(1000);
  await page.evaluate(frames);
  const began = Date.now();
  const start = sent;
  while (Date.now() - began < seconds * 1000) {
    const due = start + Math.floor(((Date.now() - began) * rate) / 1000) - sent;
    if (due > 0) await send(Math.min(due, rate));
    await new Promise((next) => setTimeout(next, 20));
  }
  const { gaps, held } = await page.evaluate("({ gaps: window.frames_, held: window.held })");
  gaps.sort((a, b) => a - b);
  const part = (q) => gaps[Math.floor((gaps.length - 1) * q)].toFixed(1);
  const late = gaps.filter((gap) => gap > 50).length;
  console.log(
    `${rate} events/s for ${seconds} s: ${gaps.length} frames, p50 ${part(0.5)} ms, p99 ${part(0.99)} ms, worst ${part(1)} ms;` +
      ` ${late} over 50 ms (${((100 * late) / gaps.length).toFixed(2)} %), ${held.length} long tasks`,
  );
  return { page, id };
}

async function memory(context, narrows) {
  const { page, id } = await streaming(context, narrows, 1000, 10);
  const client = await context.newCDPSession(page);
  await client.send("Performance.enable");
  const used = async () => {
    await client.send("HeapProfiler.collectGarbage");
    const { metrics } = await client.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map((metric) => [metric.name, metric.value]));
  };
  const before = await used();
  const read = await narrows.ask(`/api/sessions/${id}/packets`);
  let next = read.sources[0].read + 1;
  const packets = long(1e6, 5000);
  while (next < 100_000) {
    const lines = Array.from({ length: 2000 }, () => packets.next().value);
    await narrows.ask(`/api/sessions/${id}/packets?first=${next}`, `${lines.join("\n")}\n`, "application/x-ndjson");
    next += lines.length;
  }
  const session = await narrows.ask(`/api/sessions/${id}`);
  await page.waitForTimeout(3000);
  const after = await used();
  console.log(
    `after ${session.events} events in an open tab: heap ${mb(after.JSHeapUsedSize)} (${mb(before.JSHeapUsedSize)} after the first` +
      ` ${read.sources[0].read}), ${after.Nodes} nodes`,
  );
  await page.close();
}

await test(
  "bench-page",
  async (test) => {
    assets();
    const narrows = new Narrows(test, "--no-follow");
    await narrows.start();
    const began = Date.now();
    const { id } = await fill(narrows, "long", Math.ceil(ITEMS / ITEMS_PER_TURN));
    console.log(`filled ${ITEMS} items in ${((Date.now() - began) / 1000).toFixed(1)} s`);
    const { context } = await browser(test, "profile");
    const first = await context.newPage();
    await first.goto(narrows.ticket);
    await first.waitForTimeout(500);
    await first.close();
    await opening(context, narrows, id);
    await (await streaming(context, narrows, 200, 20)).page.close();
    await memory(context, narrows);
  },
  { longest: 600_000 },
);
