// Whatever an agent writes is text: in every field, of every packet, loaded and live.
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { Narrows, test, until } from "./lib/drive.mjs";
import { NAMES, everything, poisoned, vectors } from "./lib/hostile.mjs";
import { Acp, Claude, tell } from "./lib/made.mjs";
import { TRANSCRIPT, open, openAll, reader } from "./lib/page.mjs";

const DEEP = 10_000;

/// A session as Claude keeps it, in which every field says everything.
function claude(evil, texts) {
  const session = new Claude({ cwd: `/srv/${evil}`, model: evil }).user(evil).thinks(evil);
  session.calls("Bash", { command: evil, description: evil }, evil);
  session.calls("Bash", { command: "false" }, evil, { is_error: true });
  session.calls("Read", { file_path: `/srv/${evil}` }, evil);
  session.calls("Edit", { file_path: `/srv/${evil}`, old_string: `${evil}\nold`, new_string: `${evil}\nnew` }, evil);
  session.calls("Write", { file_path: `/srv/${evil}`, content: evil }, evil);
  session.calls("Grep", { pattern: evil, path: evil, output_mode: "content" }, `${evil}\nsrc/a.ts:1:${evil}`);
  session.calls("Glob", { pattern: evil }, evil);
  session.calls("WebFetch", { url: "javascript:alert(1)", prompt: evil }, evil);
  session.calls("WebSearch", { query: evil }, `Links: ${JSON.stringify([{ title: evil, url: "javascript:alert(1)" }, { title: evil, url: "https://example.com/x" }])}\n\n${evil}`);
  session.calls("Task", { description: evil, prompt: evil, subagent_type: evil }, [{ type: "text", text: evil }]);
  session.calls("TodoWrite", { todos: [{ content: evil, activeForm: evil, status: "in_progress" }, { content: evil, activeForm: evil, status: evil }] }, evil);
  session.calls("AskUserQuestion", { questions: [{ question: evil, header: evil, multiSelect: true, options: [{ label: evil, description: evil }] }] }, evil);
  session.calls("ExitPlanMode", { plan: evil }, evil);
  session.calls("NotebookEdit", { notebook_path: evil, new_source: evil }, evil);
  for (const [n, name] of NAMES.entries()) {
    const input = JSON.parse(`{"__proto__": ${JSON.stringify({ [name]: texts[n] })}, "constructor": ${JSON.stringify(texts.at(-n))}}`);
    session.calls(name, input, texts[n], { id: name });
  }
  session.calls(`mcp__${evil}__${evil}`, { [evil]: evil }, [{ type: "text", text: evil }]);
  session.record("system", { subtype: "api_error", level: "error", content: evil, error: { message: evil, status: 500 } });
  session.record("system", { subtype: "informational", content: evil });
  session.record("system", { subtype: "local_command", content: `<command-name>${evil}</command-name>` });
  session.record("summary", { summary: evil, leafUuid: evil });
  return session.says(evil).named(evil);
}

/// The same as an agent of the protocol says it.
function acp(evil) {
  const session = new Acp({ agent: evil, cwd: `/srv/${evil}` }).prompt(evil).thinks(evil);
  const place = [{ path: `/srv/${evil}`, line: 3 }];
  for (const [n, kind] of ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other", "__proto__", evil].entries()) {
    session.calls(`${evil.slice(0, 60)} ${n}`, {
      title: evil, kind, locations: place, name: n % 2 ? evil : undefined,
      input: { command: evil, filePath: `/srv/${evil}`, pattern: evil, url: "javascript:alert(1)", [evil]: evil },
      content: [
        { type: "content", content: { type: "text", text: evil } },
        { type: "diff", path: `/srv/${evil}`, oldText: `${evil}\na`, newText: `${evil}\nb` },
        { type: "content", content: { type: "resource_link", uri: "javascript:alert(1)", name: evil } },
      ],
      status: n % 3 === 2 ? "failed" : "completed",
    });
  }
  session.update("plan", { entries: [{ content: evil, priority: evil, status: "pending" }, { content: evil, priority: "high", status: evil }] });
  session.update("session_info_update", { title: evil });
  session.update("current_mode_update", { currentModeId: evil });
  session.update("usage_update", { used: 1, size: 2, _meta: { "_claude/model": evil } });
  session.update(evil, { content: { type: "text", text: evil } });
  for (const type of ["web_app", "image", "constructor", evil]) {
    for (const url of ["javascript:window.__pwned=1", "data:text/html,<script>window.__pwned=1</script>", "//127.0.0.1:9/p", evil]) {
      session.messages.push({ type: "artifact_created", artifact: { id: `${evil} ${type} ${url}`, type, name: evil, path: evil, preview_url: url } });
    }
  }
  session.messages.push({ type: "error", code: evil, message: evil, details: { [evil]: evil } });
  session.says(evil).done(evil);
  session.prompt("again").done("constructor");
  return session.prompt("and then").asks(
    { toolCallId: "asked", title: evil, kind: "execute", status: "pending", rawInput: { command: evil } },
    [{ optionId: evil, name: evil, kind: "allow_once" }, { optionId: "constructor", name: evil, kind: "constructor" }],
  );
}

/// Texts that are only deep or long.
function deep() {
  const session = new Claude().user("Deep").says(`${"[".repeat(DEEP)}x${"](y)".repeat(DEEP)}`);
  for (const text of [
    `${">".repeat(DEEP)} quoted`, "*".repeat(DEEP), `${"**a ".repeat(DEEP / 4)}`, "`".repeat(DEEP), `${"![".repeat(DEEP / 2)}`, "<".repeat(DEEP), `${"<div>".repeat(DEEP / 5)}`,
    Array.from({ length: 400 }, (_, n) => `${" ".repeat(n * 2)}- item`).join("\n"), `|${"a|".repeat(2000)}\n|${"-|".repeat(2000)}\n|${"b|".repeat(2000)}`,
    "w".repeat(50_000), "&".repeat(DEEP), "(".repeat(DEEP), "\\".repeat(DEEP), "_a_".repeat(DEEP / 4),
  ]) session.says(text);
  session.calls("Bash", { command: "deep" }, `${"\u001b[1m".repeat(DEEP)}bold ${"z".repeat(50_000)}`);
  session.calls("mcp__deep__json", JSON.parse(`${'{"a":['.repeat(500)}1${"]}".repeat(500)}`), `${"[".repeat(DEEP)}`);
  return session.says("The end of the deep one.");
}

/// What is on the page that should not be.
function look() {
  const bad = [];
  const turning = /[\u202a-\u202e\u2066-\u2069]/;
  const say = (why, element) => bad.push(`${why}: ${element.outerHTML.slice(0, 240)}`);
  const allowed = new Set(["http:", "https:", "mailto:"]);
  for (const element of document.querySelectorAll("#root *")) {
    const name = element.localName;
    if (/^(script|iframe|frame|frameset|object|embed|applet|base|meta|link|style|math|template|noscript|xmp|video|audio|source|form|textarea|marquee|portal)$/.test(name)) say("element", element);
    if (name === "svg" && !element.classList.contains("lucide")) say("picture", element);
    if (name === "img" && !/^(blob:http:\/\/127\.0\.0\.1:\d+\/|data:image\/(png|jpeg|gif|webp);)/.test(element.getAttribute("src"))) say("picture", element);
    for (const { name: attribute, value } of element.attributes) {
      if (/^on|^(srcdoc|formaction|action|ping|background|xlink:href)$/i.test(attribute)) say("attribute", element);
      if (attribute === "src" && name !== "img") say("source", element);
      if (attribute === "href" && (name !== "a" || !allowed.has(element.protocol))) say("address", element);
      if (attribute === "style" && /url|expression|@import/i.test(value)) say("style", element);
      if (turning.test(value) && !/^(data-|href$|id$|value$)/.test(attribute)) say(`turned ${attribute}`, element);
    }
    if (name === "a" && element.origin !== location.origin) {
      if (element.target !== "_blank" || !element.relList.contains("noopener") || !element.relList.contains("noreferrer")) say("link", element);
      if (element.username || element.password) say("password", element);
    }
    for (const node of element.childNodes) if (node.nodeType === 3 && turning.test(node.data)) say("turned text", element);
  }
  if (turning.test(document.title)) bad.push(`title: ${document.title}`);
  if (window.__pwned !== undefined) bad.push("something ran");
  return [...bad.slice(0, 8), ...(window.violations ?? [])];
}

await test("hostile", async (test) => {
  let asked = 0;
  const listener = net.createServer((socket) => ((asked += 1), socket.destroy())).listen(0, "127.0.0.1");
  await once(listener, "listening");
  test.closing(async () => listener.close());
  const out = `http://127.0.0.1:${listener.address().port}`;
  const evil = everything(out);
  const texts = vectors(out);

  const narrows = new Narrows(test, "--no-follow");
  await narrows.start();
  const sessions = {
    "as Claude says it": await tell(narrows, claude(evil, texts), { label: texts[2] }),
    "as the protocol says it": await tell(narrows, acp(evil), { label: texts[21] }),
    deep: await tell(narrows, deep()),
  };
  let packets = 0;
  for (const [format, least] of [["acp", 3], ["claude-history", 2], ["claude-stream", 2]]) {
    const { id } = await narrows.ask("/api/sessions", { label: `${format} ${texts[0]}` });
    const lines = poisoned(format, out, least).flatMap((recording) => recording.lines);
    await narrows.send(id, lines, 1, `&format=${format}`);
    sessions[format] = id;
    packets += lines.length;
  }
  assert.ok(packets > 500, `there is enough to look at: ${packets}`);
  // Titles of all kinds, for the list.
  for (const [n, title] of texts.entries()) await tell(narrows, new Claude({ cwd: `/srv/${title}` }).user(title), { label: `${n} ${title.replace(/\p{Cc}/gu, " ")}`.slice(0, 190) });

  const init = () => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  };
  const { context, page, complaints } = await reader(test, narrows, { width: 1400, height: 2400, init });
  const [elsewhere, dialogs] = [[], []];
  const socket = narrows.url.replace("http", "ws");
  // Pictures are shown from memory, by an address of this origin.
  const own = (url) => [`${narrows.url}/`, `blob:${narrows.url}/`].some((start) => url.startsWith(start));
  context.on("request", (request) => !own(request.url()) && elsewhere.push(request.url()));
  context.on("page", (other) => elsewhere.push(`a page: ${other.url()}`));
  page.on("websocket", (one) => !one.url().startsWith(socket) && elsewhere.push(one.url()));
  page.on("framenavigated", (frame) => !frame.url().startsWith(`${narrows.url}/`) && elsewhere.push(frame.url()));
  page.on("dialog", (dialog) => (dialogs.push(dialog.message()), dialog.dismiss()));

  const harmless = async (what) => {
    assert.deepEqual(await page.evaluate(look), [], `${what}: nothing but text`);
    assert.deepEqual(elsewhere, [], `${what}: nobody else is asked`);
    assert.deepEqual(dialogs, [], `${what}: no dialog`);
    assert.deepEqual(complaints, [], `${what}: nothing in the console`);
    assert.equal(asked, 0, `${what}: nobody knocks at the listener`);
  };
  /// From the first row to the last with everything open; which items were seen.
  const walk = async (what, last) => {
    const seen = new Set();
    for (let n = 0; n < 300 && !seen.has(last); n++) {
      await openAll(page);
      await harmless(what);
      const ids = await page.locator(TRANSCRIPT).evaluate(async (e) => {
        const ids = [...e.querySelectorAll("[data-item]")].map((item) => item.dataset.item);
        // What is rendered below the screen comes next; a row is there as a whole.
        e.scrollTop += [...e.querySelectorAll("[data-row]")].at(-1).getBoundingClientRect().bottom - e.getBoundingClientRect().top - 100;
        for (let n = 0; n < 3; n++) await new Promise((done) => requestAnimationFrame(done));
        return ids;
      });
      ids.forEach((id) => seen.add(id));
    }
    return seen;
  };

  const nav = page.getByRole("navigation", { name: "Sessions" });
  await until("the list", async () => (await nav.locator("a[href^='/s/']").count()) > 20);
  await harmless("the list");

  // Every session: all of it, everything open.
  for (const [name, id] of Object.entries(sessions)) {
    const { items } = await narrows.ask(`/api/sessions/${id}/items?top=true&from=0&limit=500&preview=32`);
    await open(page, narrows, id, `?item=${encodeURIComponent(items[0].id)}`);
    const seen = await walk(name, items.at(-1).id);
    const missing = items.filter((item) => !seen.has(item.id) && !item.toolCall?.isTodo);
    assert.deepEqual(missing.map((item) => [item.id, item.type]), [], `${name}: every item was seen`);
    await until("beside it", async () => (await page.locator("aside li").count()) > 0);
    await harmless(`${name}, beside it`);
  }

  // What is found, and where it leads: names that are something else in an address.
  await page.setViewportSize({ width: 1400, height: 900 });
  await nav.getByRole("searchbox").fill("pwned");
  await until("hits", async () => (await nav.locator("a:has(mark)").count()) > 20);
  await harmless("search results");
  await open(page, narrows, sessions["as Claude says it"], `?item=${encodeURIComponent(NAMES[0])}`);
  for (const name of NAMES) {
    await page.evaluate((to) => {
      history.pushState(null, "", to);
      dispatchEvent(new PopStateEvent("popstate"));
    }, `${new URL(page.url()).pathname}?${new URLSearchParams({ item: name, q: "constructor" })}`);
    await until(`${name} in sight`, () => page.evaluate(([name, selector]) => {
      const [row, frame] = [document.querySelector(`[data-row="${CSS.escape(name)}"]`), document.querySelector(selector)].map((e) => e?.getBoundingClientRect());
      return Boolean(row) && row.bottom > frame.top && row.top < frame.bottom;
    }, [name, TRANSCRIPT]));
  }
  await harmless("links to items");

  // Live, piece by piece.
  for (const lines of [acp(evil).lines, claude(evil, texts).lines]) {
    const { id } = await narrows.ask("/api/sessions", { label: `live ${lines.length} ${texts[5]}` });
    await open(page, narrows, id);
    const step = Math.ceil(lines.length / 5);
    for (let at = 0; at < lines.length; at += step) {
      await narrows.send(id, lines.slice(0, at + step), at + 1);
      await until("something of it", async () => (await page.locator("[data-row]").count()) > 0);
      await openAll(page);
      await harmless("live");
    }
  }
  const pieces = new Acp().prompt("Say it slowly");
  for (let at = 0; at < evil.length; at += 97) pieces.says(evil.slice(at, at + 97));
  pieces.done();
  const slow = await tell(narrows, { lines: pieces.lines.slice(0, 6) });
  await open(page, narrows, slow);
  await narrows.send(slow, pieces.lines, 7);
  await until("all of it", async () => (await page.locator(TRANSCRIPT).innerText()).includes("longlong"));
  await harmless("a text in pieces");

  // Files that are taken away have plain names.
  const headers = { authorization: `Bearer ${narrows.token}` };
  for (const format of ["md", "html", "text", "json", "jsonl"]) {
    const answer = await fetch(`${narrows.url}/api/sessions/${sessions["as Claude says it"]}/export?format=${format}`, { headers });
    await answer.text();
    assert.match(answer.headers.get("content-disposition"), /^attachment; filename="[\p{L}\p{N}][\p{L}\p{N}._-]*\.\w+"$/u);
  }
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    open(page, narrows, sessions["as Claude says it"]).then(async () => {
      await page.getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name: "Export as HTML" }).click();
    }),
  ]);
  assert.match(download.suggestedFilename(), /^[\p{L}\p{N}][\p{L}\p{N}._-]*\.html$/u);

  // The page is what it was before.
  await nav.getByRole("searchbox").fill("");
  await nav.locator("a[href^='/s/']").nth(5).click();
  await page.locator(TRANSCRIPT).waitFor();
  await page.locator("body").press("f");
  await page.getByRole("searchbox", { name: "Find in this session" }).waitFor();
  await page.keyboard.press("Escape");
  await harmless("in the end");
}, { longest: 150_000 });
