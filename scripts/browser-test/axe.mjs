// What axe says of the page in every state, by day and by night: nothing that is serious.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, root, test, until } from "./lib/drive.mjs";
import { Acp, tell } from "./lib/made.mjs";
import { TRANSCRIPT, open, openAll, reader, recorded } from "./lib/page.mjs";

const axe = fs.readFileSync(path.join(root, "scripts/browser-test/node_modules/axe-core/axe.min.js"), "utf8");
/// Together they have every kind of card.
const RECORDED = [
  "2.1-a-ansi-bash", "2.1-b-thinking", "2.1-c-files", "2.1-d-bash", "2.1-e-search", "2.1-f-todos-legacy", "2.1-h-permission-reject",
  "2.1-i-error-500-final", "2.1-j-interrupt-tool", "2.1-m-image", "2.0-o-plan-mode", "2.1-d-bash-background", "2.1-q-compact", "2.1-s-mcp-tool", "2.1-v-ask-user",
];

/// All of them as one session, with a reading of its own at the end.
function everything() {
  const lines = RECORDED.flatMap((name) => {
    const text = recorded("claude-history", name).join("\n");
    return text.replaceAll(text.match(/"sessionId":"([^"]+)"/)[1], "00000000-0000-4000-8000-00000000a11a").split("\n");
  });
  const last = { role: "assistant", id: "last", model: "claude-sonnet-4-5", usage: {}, content: [{ type: "text", text: PROSE }] };
  const at = new Date().toISOString();
  lines.push(JSON.stringify({ type: "assistant", uuid: crypto.randomUUID(), requestId: "last", timestamp: at, sessionId: "00000000-0000-4000-8000-00000000a11a", message: last }));
  return { lines };
}

const PROSE = `# One\n\n## Two\n\nSome **bold**, *slanted*, ~~gone~~ and \`code\`, a [link](https://example.com) and https://example.com/bare.

> quoted

| a | b |
|---|---|
| 1 | 2 |

- [x] done
- [ ] open

${["ts", "rust", "python", "bash", "html", "css", "json", "diff"].map((lang) => `\`\`\`${lang}\n${CODE(lang)}\n\`\`\``).join("\n\n")}`;

function CODE(lang) {
  const code = {
    ts: '// why\nimport { a } from "b";\nexport async function f(x: number): Promise<string> {\n  return `${x} and ${/re+/g}`;\n}',
    rust: '/// Says so.\n#[derive(Debug)]\npub struct A<\'a> { b: &\'a str }\nimpl A<\'_> { fn f(&self) -> Option<u8> { println!("{}", 1_000); None } }',
    python: '@wraps\ndef f(x: int = 1) -> str:\n    """Says so."""\n    return f"{x!r}" if x else None  # why',
    bash: 'for f in *.txt; do\n  [ -f "$f" ] && echo "${f%.txt}" | tr a-z A-Z # why\ndone',
    html: '<!-- why -->\n<a href="x" class=y>text &amp; more</a>',
    css: "/* why */\n.a > b:hover { color: #fff; margin: calc(1px + 2%) !important; }",
    json: '{ "a": [1, true, null, "b"] }',
    diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new",
  };
  return code[lang];
}

await test("axe", async (test) => {
  const narrows = new Narrows(test);
  await narrows.start();
  const { page, complaints, another } = await reader(test, narrows, { width: 1440, height: 900 });

  let looked = 0;
  /// Nothing that axe finds grave. What it cannot tell is not counted.
  const check = async (what, where = page, themes = ["light", "dark"]) => {
    for (const colorScheme of themes) {
      await where.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      if (!(await where.evaluate("typeof axe === 'object'"))) await where.evaluate(axe);
      const { violations, passes } = await where.evaluate(async () => {
        const { violations, passes } = await axe.run(document, { resultTypes: ["violations"], elementRef: false });
        const tell = ({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.slice(0, 4).map((n) => `${n.html.slice(0, 240)}\n      ${n.failureSummary?.split("\n")[1]?.trim()}`), count: nodes.length });
        return { violations: violations.map(tell), passes: passes.map((p) => p.id) };
      });
      assert.ok(passes.includes("color-contrast") && passes.length > 10, `${what}: axe looked at it`);
      const grave = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
      const told = grave.map((v) => `  ${v.impact}: ${v.id} (${v.help}), ${v.count}:\n    ${v.nodes.join("\n    ")}`);
      assert.equal(told.length, 0, `${what}, ${colorScheme}:\n${told.join("\n")}`);
      looked++;
    }
  };

  await page.getByRole("heading", { name: "No sessions yet" }).waitFor();
  await check("the first start");

  const id = await tell(narrows, everything(), { label: "everything" });
  const asking = new Acp({ agent: "OpenCode", cwd: "/srv/lab" }).prompt("Clean up").asks(
    { toolCallId: "c1", title: "rm -r target", kind: "execute", status: "pending", rawInput: { command: "rm -r target" } },
    [{ optionId: "once", name: "Allow once", kind: "allow_once" }, { optionId: "no", name: "Reject", kind: "reject_once" }],
  );
  const waits = await tell(narrows, asking);
  const failing = new Acp({ at: Date.now() - 40 * 86_400_000 }).prompt("Fail").message("agent", { id: 2, error: { code: -32603, message: "The model is away" } });
  await tell(narrows, failing, { more: "&end=true" });
  const nav = page.getByRole("navigation", { name: "Sessions" });
  await until("the list", async () => (await nav.locator("a[href^='/s/']").count()) === 3);
  await check("the list");

  await nav.getByRole("searchbox").fill("notes");
  await until("hits", async () => (await nav.locator("a:has(mark)").count()) > 2);
  await check("search results", page, ["dark"]);
  await nav.getByRole("searchbox").fill("");

  await open(page, narrows, id);
  await page.keyboard.press("f");
  await page.getByRole("searchbox", { name: "Find in this session" }).fill("code");
  await until("marks", () => page.evaluate(() => (CSS.highlights.get("found")?.size ?? 0) > 0));
  await check("find", page, ["light"]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menu").waitFor();
  await check("the menu", page, ["dark"]);
  await page.keyboard.press("Escape");
  await page.locator("body").press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await check("the keys", page, ["light"]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Delete…" }).click();
  await page.getByRole("dialog").waitFor();
  await check("a question before something is gone", page, ["dark"]);
  await page.keyboard.press("Escape");

  // So high that all of it is there.
  for (let height = 8000, all = false; !all; ) {
    await page.setViewportSize({ width: 1440, height });
    await openAll(page);
    const lacks = await page.locator(TRANSCRIPT).evaluate((e) => e.scrollHeight - e.clientHeight);
    all = lacks <= 0;
    height += lacks + 200;
    assert.ok(height < 30_000, `${height} px are too many`);
  }
  const types = await page.locator(TRANSCRIPT).evaluate((e) => [...new Set([...e.querySelectorAll("[data-type]")].map((i) => i.dataset.type))].sort());
  for (const type of ["background_task", "compaction", "error", "notice", "plan", "question", "text", "thinking", "todo_list", "tool_call", "user_message"]) {
    assert.ok(types.includes(type), `there is a ${type} among ${types}`);
  }
  await until("code has its colours", async () => (await page.locator("[class^=tok-]").count()) > 40);
  await check("a session with everything open");
  await page.setViewportSize({ width: 1440, height: 900 });
  await open(page, narrows, waits);
  await page.getByRole("region", { name: "Waiting for you" }).waitFor();
  await check("somebody is waited for");

  const phone = await another();
  await phone.setViewportSize({ width: 390, height: 844 });
  await phone.goto(narrows.url);
  await until("the sheet", async () => (await phone.locator("nav a[href^='/s/']").count()) === 3);
  await check("a phone: the list", phone, ["light"]);
  await open(phone, narrows, id);
  await openAll(phone);
  await check("a phone: a session", phone, ["dark"]);
  await phone.getByRole("button", { name: "Turns, files and todos" }).click();
  await phone.getByRole("heading", { name: /^Turns/ }).waitFor();
  await check("a phone: beside it", phone, ["light"]);

  await page.goto(`${narrows.url}/s/nowhere`);
  await page.getByRole("heading", { name: "This session is not here" }).waitFor();
  await check("a session that is not here", page, ["light"]);
  assert.ok(looked >= 17, "every state was looked at");
  const expected = /status of 404/;
  assert.deepEqual(complaints.filter((c) => !expected.test(c)), [], "nothing in the console");
}, { longest: 240_000 });
