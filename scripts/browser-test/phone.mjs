// On a phone: the list is a sheet, nothing is wider than the screen, everything can be tapped.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, root, test, until } from "./lib/drive.mjs";
import { Acp, Claude, tell } from "./lib/made.mjs";
import { TRANSCRIPT, open, openAll, reader } from "./lib/page.mjs";

const LONG = "anunbrokenwordthatdoesnotfit".repeat(14);
const TABLE = `| a | b | c |\n|---|---|---|\n| ${"cell ".repeat(30)} | ${LONG} | ${"x".repeat(90)} |`;
const CODE = `\`\`\`ts\nconst ${"name".repeat(60)} = "${LONG}";\n\`\`\``;

/// Everything that is wide by nature, in every kind of card.
function wide() {
  const session = new Claude({ cwd: `/srv/${LONG}` }).user(`Look at ${LONG}\nhttps://example.com/${LONG}`);
  session.thinks(`I think of ${LONG}`);
  session.says(`# ${LONG}\n\n${TABLE}\n\n${CODE}\n\n- ${LONG}\n\n> ${LONG}\n\n[${LONG}](https://example.com/${LONG}) \`${LONG}\``);
  session.calls("Bash", { command: `echo ${LONG}`, description: LONG }, `${LONG}\n${"=".repeat(400)}`);
  session.calls("Bash", { command: `false ${LONG}` }, `Exit code 1\n${LONG}`, { is_error: true });
  session.calls("Read", { file_path: `/srv/${LONG}/${LONG}.ts` }, `const ${"x".repeat(300)} = 1;\n`);
  session.calls("Edit", { file_path: `/srv/${LONG}.ts`, old_string: `const a = "${LONG}";`, new_string: `const b = "${LONG}";` }, "The file has been updated");
  session.calls("Write", { file_path: "/srv/wide.md", content: `${TABLE}\n${LONG}` }, "File created");
  session.calls("Grep", { pattern: LONG, output_mode: "content" }, `src/${LONG}.ts:12:${LONG}`);
  session.calls("WebSearch", { query: LONG }, `Links: [{"title":"${LONG}","url":"https://example.com/${LONG}"}]\n\n${LONG}`);
  session.calls("mcp__server__tool", { [LONG]: LONG, deep: { deeper: [LONG, { [LONG]: 1 }] } }, JSON.stringify({ [LONG]: LONG }));
  session.calls("TodoWrite", { todos: [{ content: LONG, activeForm: LONG, status: "in_progress" }, { content: "b", activeForm: "b", status: "pending" }] }, "ok");
  session.calls("Task", { description: LONG, prompt: LONG, subagent_type: "general-purpose" }, [{ type: "text", text: `${TABLE}\n\n${LONG}` }]);
  session.says("The end.");
  return session.named(`Title ${LONG}`);
}

/// Who is wider than the page, of those that do not scroll by themselves.
function tooWide() {
  const room = innerWidth;
  const clipped = (element) => {
    for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
      if (getComputedStyle(box).overflowX !== "visible" && box.getBoundingClientRect().right <= room + 1) return box.dataset.testid !== "transcript";
    }
    return false;
  };
  const wide = [...document.querySelectorAll("body *")].filter((e) => {
    const { left, right, width } = e.getBoundingClientRect();
    return width > 0 && (right > room + 1 || left < -1) && !clipped(e);
  });
  const told = wide.slice(0, 5).map((e) => `${Math.round(e.getBoundingClientRect().right)}: ${e.outerHTML.slice(0, 160)}`);
  if (document.scrollingElement.scrollWidth > room) told.push(`the page: ${document.scrollingElement.scrollWidth}`);
  const transcript = document.querySelector('[data-testid="transcript"]');
  if (transcript && transcript.scrollWidth > transcript.clientWidth) told.push(`the transcript: ${transcript.scrollWidth} of ${transcript.clientWidth}`);
  return told;
}

/// Which buttons a thumb misses. Those that stand in a line of text count less: other ways lead there.
function tooSmall([within, least, which]) {
  const small = [];
  for (const element of document.querySelectorAll(`:is(${within}) ${which}`)) {
    const { width, height } = element.getBoundingClientRect();
    const inText = element.matches("a[target=_blank]");
    if (height > 0 && width > 0 && height < least && !inText) small.push(`${width.toFixed()}×${height.toFixed()} ${element.outerHTML.slice(0, 200)}`);
  }
  return small;
}

await test("phone", async (test) => {
  const narrows = new Narrows(test, "--no-follow");
  await narrows.start();
  const other = await tell(narrows, new Acp().prompt("Another session").says("Short.").done());
  const asking = new Acp({ agent: "OpenCode" }).prompt("Clean up").asks(
    { toolCallId: "c1", title: `rm -r ${LONG}`, kind: "execute", status: "pending", rawInput: { command: `rm -r ${LONG}` } },
    [{ optionId: "once", name: `Allow ${LONG}`, kind: "allow_once" }, { optionId: "no", name: "Reject", kind: "reject_once" }],
  );
  const waits = await tell(narrows, asking);
  const id = await tell(narrows, wide());
  const { page, complaints } = await reader(test, narrows, { width: 390, height: 844, hasTouch: true, isMobile: true });
  const shots = path.join(root, "target/browser-test");
  fs.mkdirSync(shots, { recursive: true });

  const fits = async (what) => {
    const told = await page.evaluate(tooWide);
    assert.deepEqual(told, [], `${what}: nothing is wider than the screen`);
  };
  const tappable = async (what, within, least = 44, which = ":is(button, select, a[href], [role=menuitem], summary)") => {
    assert.deepEqual(await page.evaluate(tooSmall, [within, least, which]), [], `${what}: at least ${least} px high`);
  };

  // The list is a sheet over everything.
  const nav = page.getByRole("navigation", { name: "Sessions" });
  await until("the list", async () => (await nav.locator("a[href^='/s/']").count()) === 3);
  const sheet = await nav.boundingBox();
  assert.ok(sheet.x === 0 && sheet.y === 0 && sheet.width === 390 && sheet.height === 844, "it covers the screen");
  await fits("the list");
  await tappable("the list", "nav");
  await page.screenshot({ path: path.join(shots, "phone-list.png") });
  await nav.getByRole("searchbox").fill("unbroken");
  await until("hits", async () => (await nav.locator("a:has(mark)").count()) > 3);
  await fits("search results");
  await tappable("search results", "nav");
  await nav.getByRole("button", { name: "Clear the search" }).tap();
  await nav.getByRole("link", { name: "Title anunbroken" }).tap();
  await nav.waitFor({ state: "hidden" });
  await page.getByText("The end.").waitFor();
  await fits("a session");
  const menu = page.getByRole("button", { name: "Show the list of sessions" });
  await menu.tap();
  await nav.waitFor();
  await nav.getByRole("link", { name: "Another session" }).tap();
  await nav.waitFor({ state: "hidden" });
  await page.getByText("Short.").waitFor();
  assert.equal(new URL(page.url()).pathname, `/s/${other}`);
  await menu.tap();
  await nav.getByRole("button", { name: "Hide the list of sessions" }).tap();
  await nav.waitFor({ state: "hidden" });

  // An address that leads nowhere says so, and the list is one tap away.
  await page.goto(`${narrows.url}/nonsense`);
  await page.getByRole("heading", { name: "Not found" }).waitFor();
  assert.ok(!(await nav.isVisible()), "the list does not cover it");
  await page.getByRole("button", { name: "All sessions" }).tap();
  await nav.waitFor();
  complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes("404")));

  // Every card closed, then everything open; looked at screen by screen.
  await open(page, narrows, id);
  assert.ok(!(await nav.isVisible()), "a link leads to the session, not to the list");
  const walk = async (what, each) => {
    const scroll = (to) => page.locator(TRANSCRIPT).evaluate((e, to) => {
      e.scrollTop = to ?? e.scrollTop + e.clientHeight * 0.8;
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(e.scrollTop + e.clientHeight >= e.scrollHeight - 2))));
    }, to);
    for (let ends = await scroll(0); ; ends = await scroll()) {
      await each();
      await fits(what);
      if (ends) break;
    }
  };
  await walk("closed", async () => {});
  await tappable("the header", "header");
  await walk("open", async () => {
    await openAll(page);
    await tappable("the line of a card", `${TRANSCRIPT} section:has(> button[aria-expanded])`, 44, "> button");
    // The tools of a block of code (44×36) and the branches of JSON (32) are a little lower: they are
    // seldom wanted, and higher ones would pull the lines apart.
    await tappable("what is in a card", TRANSCRIPT, 32);
  });
  await page.screenshot({ path: path.join(shots, "phone-open.png") });

  // What lies over the session: find, the menu, the keys of a session, what stands beside it.
  await page.getByRole("button", { name: "Find in this session" }).tap();
  await page.getByRole("searchbox", { name: "Find in this session" }).fill("unbroken");
  await until("hits", async () => /^\d/.test(await page.locator("search").getByRole("status").textContent()));
  await fits("find");
  await tappable("find", "search");
  await page.getByRole("button", { name: "Close find" }).tap();
  await page.getByRole("button", { name: "More" }).tap();
  await fits("the menu");
  await tappable("the menu", "[role=menu]");
  await page.getByRole("menuitem", { name: "Delete…" }).tap();
  await page.getByRole("dialog").waitFor();
  await fits("a dialog");
  await tappable("a dialog", "dialog");
  await page.getByRole("button", { name: "Keep it" }).tap();
  await page.getByRole("button", { name: "Turns, files and todos" }).tap();
  const aside = page.getByRole("complementary", { name: "About this session" });
  await aside.getByRole("heading", { name: /^Turns/ }).waitFor();
  await fits("what stands beside");
  await tappable("what stands beside", "aside");
  await page.screenshot({ path: path.join(shots, "phone-aside.png") });
  await aside.getByRole("button", { name: /^Look at/ }).tap();
  await aside.waitFor({ state: "hidden" });
  await until("the turn in sight", () => page.evaluate((selector) => {
    const [row, frame] = [document.querySelector('[data-type="user_message"]'), document.querySelector(selector)].map((e) => e?.getBoundingClientRect());
    return Boolean(row) && row.bottom > frame.top && row.top < frame.bottom;
  }, TRANSCRIPT));
  await tappable("the way to the end", "[data-testid=transcript] ~ *, main > div > button");

  // Somebody is waited for.
  await open(page, narrows, waits);
  const bar = page.getByRole("region", { name: "Waiting for you" });
  await bar.waitFor();
  await fits("a question");
  await tappable("a question", '[aria-label="Waiting for you"]');
  await page.screenshot({ path: path.join(shots, "phone-waiting.png") });
  assert.deepEqual(complaints, [], "nothing in the console");
}, { longest: 240_000 });
