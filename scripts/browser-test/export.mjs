// An exported page needs nothing but itself, says what the session says, and does nothing that the
// session's text asks for.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { browser, root, test } from "./lib/drive.mjs";

const fixtures = path.join(root, "crates/narrows/tests/fixtures/claude-history");
const shots = path.join(root, "target/browser-test");
/// Recorded sessions: subagents, edits, todos, pictures, errors, colours, plans, questions.
const RECORDED = [
  "2.1-g-subagent", "2.1-c-files", "2.1-f-todos", "2.1-m-image", "2.1-u-user-image", "2.1-a-ansi-bash",
  "2.1-i-error-500-final", "2.1-h-permission-reject", "2.1-o-plan-mode", "2.1-q-compact", "2.1-v-ask-user",
  "2.1-b-thinking", "2.1-k-parallel-tools", "2.1-d-bash", "2.1-u-bidi",
];
/// One session with everything, for the eye.
const ALL = "a11a11a1-1111-4111-8111-a11a11a11a11";
/// One that is made to do harm.
const EVIL = "e511e511-1111-4111-8111-e511e511e511";
/// What an agent, or what it read, may say.
const HOSTILE = [
  "<script>alert(1)</script> and </style></pre></details><script>alert(2)</script>",
  "<img src=http://127.0.0.1:9/x onerror=alert(1)> <svg onload=alert(1)> <iframe src=http://127.0.0.1:9/f></iframe>",
  "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html,<script>alert(1)</script>) [w](vbscript:x)",
  "[good](https://example.com/a?b=1) <https://example.com/auto> <mail@example.com> [mail](mailto:a@example.com) [file](file:///etc/passwd)",
  "![picture](http://127.0.0.1:9/p.png) ![inline](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)",
  "<style>@import url(http://127.0.0.1:9/s.css); body { background: url(http://127.0.0.1:9/b) }</style>",
  '<base href=http://127.0.0.1:9/><meta http-equiv=refresh content="0;url=http://127.0.0.1:9/r"><link rel=stylesheet href=http://127.0.0.1:9/l>',
  '" onmouseover="alert(1)" \' autofocus onfocus=alert(1) `x` &lt;b&gt; &#60;script&#62;',
  "\u001b[31mred\u001b[0m \u001b]0;owned\u0007 \u001b]8;;http://127.0.0.1:9/o\u001b\\shown\u001b]8;;\u001b\\ \u009b2Jafter",
  "before \u202eevil\u202c after \u2066isolated\u2069 zero\u200bwidth",
  `long ${"unbroken".repeat(60)} end`,
  "```html\n<script>alert(3)</script>\nan unclosed fence",
].join("\n\n");

/// A session in which every field says it.
function hostile(session) {
  let n = 0;
  const record = (type, more) => ({
    type, uuid: `00000000-0000-4000-8000-${String((n += 1)).padStart(12, "0")}`, sessionId: session,
    timestamp: `2026-11-15T20:00:${String(n).padStart(2, "0")}.000Z`, cwd: "/srv/<script>alert(1)</script>",
    version: "2.1.325", ...more,
  });
  const said = (content) => record("assistant", {
    requestId: `req-${n}`,
    message: { id: `msg-${n}`, role: "assistant", model: "<b>model</b>", content: [content], usage: { input_tokens: 1, output_tokens: 1 } },
  });
  const gave = (id, content, more) => record("user", {
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content, ...more }] },
  });
  const call = (id, name, input) => said({ type: "tool_use", id, name, input });
  const todos = [{ content: HOSTILE, activeForm: HOSTILE, status: "in_progress" }, { content: "Plain todo", activeForm: "x", status: "pending" }];
  return [
    record("user", { message: { role: "user", content: HOSTILE } }),
    said({ type: "thinking", thinking: HOSTILE, signature: "" }),
    call("toolu_bash", "Bash", { command: HOSTILE, description: HOSTILE }),
    gave("toolu_bash", HOSTILE),
    call("toolu_bad", "Bash", { command: "false", description: "Fails" }),
    gave("toolu_bad", HOSTILE, { is_error: true }),
    call("toolu_write", "Write", { file_path: "/srv/<script>alert(1)</script>/\"a\".txt", content: HOSTILE }),
    gave("toolu_write", "File created"),
    call("toolu_todo", "TodoWrite", { todos }),
    gave("toolu_todo", "Todos have been modified"),
    call("toolu_odd", "mcp__<b>server__<i>tool", { "<script>alert(1)</script>": HOSTILE }),
    gave("toolu_odd", [{ type: "text", text: HOSTILE }]),
    said({ type: "text", text: HOSTILE }),
    { type: "custom-title", customTitle: `Title ${HOSTILE}`, sessionId: session },
  ].map((line) => JSON.stringify(line) + "\n").join("");
}

/// Puts a recorded session where the agent keeps its own, with what lies beside it.
function put(projects, name, as) {
  const from = path.join(fixtures, name);
  const text = fs.readFileSync(path.join(from, "input.jsonl"), "utf8");
  const own = text.match(/"sessionId":"([^"]+)"/)[1];
  const id = as ?? own;
  const change = (text) => text.replaceAll(own, id);
  fs.appendFileSync(path.join(projects, `${id}.jsonl`), change(text));
  if (!fs.existsSync(path.join(from, own))) return;
  for (const file of fs.readdirSync(path.join(from, own), { recursive: true })) {
    const [source, target] = [path.join(from, own, file), path.join(projects, id, file)];
    if (fs.statSync(source).isDirectory()) continue;
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, change(fs.readFileSync(source, "utf8")));
  }
}

/// What a terminal acts on and a page leaves out.
const plain = (text) =>
  text
    .replace(/(?:\u001b\]|\u009d)[^\u0007\u001b]*(?:\u0007|\u001b\\)/g, "")
    .replace(/(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]/g, "")
    .replace(/\u0000/g, "")
    .replace(/\r+\n/g, "\n")
    // What a terminal writes over is not to be seen.
    .replace(/[^\n]*\r(?=[^\n])/g, "");
const words = (text) => plain(text).match(/[\p{L}\p{N}]+/gu) ?? [];
/// The words of Markdown as a reader sees them: where a link leads is told in another way.
const read = (text) => {
  const shown = plain(text)
    .replace(/^\s*(```|~~~).*$/gm, "")
    .replace(/(\[[^\]]*\])\((?:[^()]|\([^()]*\))*\)/g, "$1")
    .replace(/&(?:lt|gt|#60|#62);/g, " ");
  return words(shown);
};

/// Which texts an item must show, as lists of words.
function expected(item) {
  const { toolCall: call, todoList, summary } = item;
  const all = [];
  if (item.type === "user_message" || item.type === "thinking") all.push(words(item.text ?? item.content));
  if (item.type === "text" || item.type === "plan") all.push(read(item.content));
  for (const todo of todoList?.todos ?? []) all.push(words(todo.content));
  for (const question of item.questions ?? []) all.push(words(question.question));
  if (item.type === "error") all.push(words(item.message ?? ""));
  if (summary) all.push(read(summary));
  if (!call) return all;
  all.push(words(call.command ?? ""), words(call.filePath ?? ""), words(call.error ?? ""), read(call.taskOutput ?? ""));
  const lines = (call.diffs ?? []).flatMap((diff) => [
    ...(diff.hunks ?? []).flatMap((hunk) => hunk.lines),
    ...(diff.hunks ? [] : [diff.newText ?? ""]),
  ]);
  all.push(words(lines.join("\n")));
  // What was written is told by the change, and a todo list by its own item.
  if (lines.length === 0 && !call.isTodo && typeof call.rawOutput === "string") all.push(words(call.rawOutput));
  return all;
}

/// The first word that does not come in this order; none when all do.
function missing(wanted, shown) {
  let at = 0;
  for (const word of wanted) {
    at = shown.indexOf(word, at) + 1;
    if (at === 0) return word;
  }
}

/// What the page holds that it should not, and what it says.
function look() {
  const bad = [];
  for (const element of document.querySelectorAll("*")) {
    const name = element.localName;
    const outer = element.outerHTML.slice(0, 200);
    if (/^(script|iframe|frame|object|embed|form|base|link|svg|math|template|video|audio|source|input|button|textarea)$/.test(name)) bad.push(outer);
    if (name === "style" && element.parentElement !== document.head) bad.push(outer);
    if (name === "img" && !/^data:image\/(png|jpeg|gif|webp);base64,/.test(element.getAttribute("src"))) bad.push(outer);
    for (const { name: attribute, value } of element.attributes) {
      if (/^on/i.test(attribute) || attribute === "style" || attribute === "srcdoc") bad.push(outer);
      if (attribute === "src" && name !== "img") bad.push(outer);
      if (attribute === "href" && (name !== "a" || !/^(https?|mailto):/i.test(value))) bad.push(outer);
    }
    if (name === "a" && !element.relList.contains("noreferrer")) bad.push(outer);
  }
  return bad;
}

await test("export", async (test) => {
  const projects = path.join(test.folder, ".claude/projects/-srv-app");
  fs.mkdirSync(projects, { recursive: true });
  fs.mkdirSync(shots, { recursive: true });
  RECORDED.forEach((name) => put(projects, name));
  RECORDED.forEach((name) => put(projects, name, ALL));
  fs.writeFileSync(path.join(projects, `${EVIL}.jsonl`), hostile(EVIL));
  const program = path.resolve(process.env.NARROWS ?? path.join(root, "target/debug/narrows"));
  const env = { PATH: process.env.PATH, HOME: test.folder, TZ: "UTC", NO_COLOR: "1" };
  const narrows = (...args) => execFileSync(program, args, { env, encoding: "utf8", cwd: test.folder });
  narrows("index");
  const sessions = narrows("ls", "--json", "-n", "0").trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.equal(sessions.length, RECORDED.length + 2, "every session was found");

  const { context, complaints } = await browser(test, "profile");
  await context.setOffline(true);
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  const [requests, dialogs] = [[], []];
  context.on("request", (request) => requests.push(request.url()));
  const page = await context.newPage();
  page.on("dialog", (dialog) => (dialogs.push(dialog.message()), dialog.dismiss()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("framenavigated", (frame) => requests.push(frame.url()));
  await page.setViewportSize({ width: 1100, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });

  let [checked, links, pictures] = [0, 0, 0];
  for (const { id, label } of sessions) {
    const [html, json] = [path.join(test.folder, `${label}.html`), path.join(test.folder, `${label}.json`)];
    narrows("export", id, "-o", html);
    narrows("export", id, "--format", "json", "-o", json);
    const { items } = JSON.parse(fs.readFileSync(json, "utf8"));
    const url = pathToFileURL(html).href;
    await page.goto(url, { waitUntil: "load" });
    await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
    assert.deepEqual(await page.evaluate(look), [], `${label}: nothing in the page acts`);
    const shown = await page.evaluate(() =>
      Object.fromEntries([...document.querySelectorAll("[id^=item-]")].map((e) => [e.id, e.innerText])),
    );
    for (const item of items) {
      const text = shown[`item-${item.order}`];
      assert.notEqual(text, undefined, `${label}: item ${item.order} (${item.type}) is on the page`);
      for (const wanted of expected(item)) {
        const lacks = missing(wanted, words(text));
        assert.equal(lacks, undefined, `${label}: item ${item.order} (${item.type}) lacks "${lacks}":\n${JSON.stringify(item)}\n${text}`);
        checked += wanted.length;
      }
    }
    links += await page.locator("a[href]").count();
    const broken = await page.evaluate(() => [...document.images].filter((i) => i.naturalWidth === 0).map((i) => i.alt));
    assert.deepEqual(broken, [], `${label}: pictures are shown`);
    pictures += await page.locator("img").count();
    assert.ok(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(await page.evaluate("document.body.textContent")), `${label}: no character turns the writing or is a command`);
    assert.deepEqual(await page.evaluate("window.violations"), [], `${label}: no violation of the page's own policy`);
    const others = requests.filter((r) => r !== url && !r.startsWith("data:image/"));
    assert.deepEqual(others, [], `${label}: no request but the file itself`);
    // On a phone, with everything open and with everything closed.
    await page.setViewportSize({ width: 390, height: 844 });
    for (const open of [true, false]) {
      await page.evaluate((open) => document.querySelectorAll("details").forEach((d) => (d.open = open)), open);
      const wide = await page.evaluate(() => {
        const room = document.documentElement.clientWidth;
        const out = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > room + 1);
        const inside = (e) => e.closest("pre, .wide") && !e.matches("pre, .wide");
        return { by: document.scrollingElement.scrollWidth - room, who: out.filter((e) => !inside(e)).slice(0, 3).map((e) => e.outerHTML.slice(0, 160)) };
      });
      assert.ok(wide.by <= 0, `${label}: ${wide.by} px too wide for a phone (details ${open ? "open" : "closed"}):\n${wide.who.join("\n")}`);
    }
    await page.setViewportSize({ width: 1100, height: 900 });
    requests.length = 0;
  }
  assert.ok(checked > 2000 && links >= 3 && pictures >= 2, `enough was looked at: ${checked} words, ${links} links, ${pictures} pictures`);
  assert.deepEqual(dialogs, [], "no dialog");
  assert.deepEqual(complaints, [], "nothing in the console");

  // Something to look at: closed as it opens, dark with everything open, and on a phone.
  const shoot = (name) => page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: true });
  await page.goto(pathToFileURL(path.join(test.folder, `${ALL}.html`)).href);
  await shoot("export-light");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
  await shoot("export-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 390, height: 844 });
  await shoot("export-phone");
  await page.goto(pathToFileURL(path.join(test.folder, `${EVIL}.html`)).href);
  await shoot("export-evil");
});
