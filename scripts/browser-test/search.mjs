// Finding: over all sessions, within one, and from a hit to the words themselves, wherever they are.
import assert from "node:assert/strict";
import path from "node:path";
import { Narrows, root, test, until } from "./lib/drive.mjs";
import { long } from "./lib/long.mjs";
import { Acp, Claude, tell } from "./lib/made.mjs";
import { TRANSCRIPT, open, reader } from "./lib/page.mjs";

const DAY = 86_400_000;
/// As WCAG has it, of two colours of one part each for red, green and blue, and perhaps one for opacity.
function contrast(front, back) {
  assert.ok([front, back].every(([, , , opacity = 1]) => opacity === 1), `${front} on ${back}: both are opaque`);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [dark, light] = [luminance(front), luminance(back)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const filler = (n) => Array.from({ length: n }, (_, i) => `line ${i} of what the program said`).join("\n");

/// Nine calls that fold to one line, a subagent among them, and long texts.
function deep() {
  const session = new Acp({ agent: "OpenCode", cwd: "/srv/harbour" }).prompt("Mend the quay");
  for (let n = 0; n < 4; n++) {
    session.calls(`look-${n}`, { title: "read", kind: "read", input: { filePath: `quay-${n}.txt` }, output: `stone ${n}` });
  }
  session.calls("tide", {
    title: "bash", kind: "execute", input: { command: "tides --all", description: "Tides" },
    output: `${filler(300)}\nthe marigold stands at the mole\n${filler(300)}`,
  });
  session.update("tool_call", { toolCallId: "crew", title: "task", kind: "think", status: "pending", name: "Agent", rawInput: { description: "Ask the crew", prompt: "Ask them", subagent_type: "general" }, _meta: { claudeCode: { toolName: "Agent" } } });
  for (let n = 0; n < 130; n++) {
    const output = n === 3 ? "the cormorant was seen here" : `nothing at berth ${n}`;
    session.calls(`crew-${n}`, { title: "bash", kind: "execute", input: { command: `ask ${n}` }, output, parent: "crew" });
  }
  session.update("tool_call_update", { toolCallId: "crew", status: "completed", rawOutput: "They are well.", _meta: { claudeCode: { toolName: "Agent" } } });
  session.calls("edit", {
    title: "edit", kind: "edit", input: { filePath: "src/quay.ts" },
    content: [{ type: "diff", path: "src/quay.ts", oldText: "const depth = 4;\n", newText: "const depth = readDepth(foghorn);\n" }],
  });
  session.calls("odd", { title: "sound", kind: "other", input: { bell: { inner: "a gannet in the arguments" } }, output: "ok" });
  session.says(`${"A long report about stones. ".repeat(400)}\n\nAt its end stands the word kittiwake.`);
  return session.done();
}

await test("search", async (test) => {
  const narrows = new Narrows(test, "--no-follow");
  await narrows.start();
  const at = Date.now();
  const harbour = await tell(narrows, deep(), { label: "harbour", more: "&end=true" });
  const asia = new Claude({ cwd: "/srv/library", at: at - 3 * DAY })
    .user("検索機能を直してください").says("全文検索の索引を作り直しました。結果は正しいです。").named("Index of the library");
  const library = await tell(narrows, asia, { label: "library", more: "&end=true" });
  const past = new Claude({ cwd: "/srv/archive", at: at - 40 * DAY }).user("Where is the lighthouse?").says("The lighthouse stands in the archive.");
  const archive = await tell(narrows, past, { label: "archive", more: "&end=true" });
  const going = new Acp({ agent: "Gemini CLI", cwd: "/srv/lab", at }).prompt("Light the lighthouse").says("I climb the lighthouse.");
  const lab = await tell(narrows, going, { label: "lab" });
  const { id: far } = await narrows.ask("/api/sessions", { label: "far" });
  const lines = [...long(180)];
  const needle = lines.findIndex((line) => line.includes("Turn 60 is done."));
  lines[needle] = lines[needle].replace("Turn 60 is done.", "Turn 60 is done by the ptarmigan.");
  const command = lines.findIndex((line) => line.includes('"toolCallId":"call-90-2"') && line.includes('"status":"completed"'));
  lines[command] = lines[command].replace(/src\/part/, "the whimbrel flew over src/part");
  await narrows.send(far, lines, 1, "&end=true");

  const { page, complaints } = await reader(test, narrows, { width: 1280, height: 800 });
  const nav = page.getByRole("navigation", { name: "Sessions" });
  const box = nav.getByRole("searchbox", { name: "Search all sessions" });
  const hits = nav.locator("a:has(mark)");
  const rows = nav.locator("a[href^='/s/']");
  await until("the list", async () => (await rows.count()) === 5);

  /// The words that are marked and in sight, in the item that is meant.
  const marked = (words, item) =>
    until(`“${words}” marked and in sight`, () =>
      page.evaluate(([words, item, selector]) => {
        const own = [...document.querySelectorAll(`[data-item="${CSS.escape(item)}"]`)].at(-1);
        if (!own) return "the item is not on the page";
        const ranges = [...(CSS.highlights.get("found") ?? [])].filter((r) => r.toString().toLowerCase() === words && own.contains(r.startContainer));
        if (!ranges.length) return `not marked in:\n${own.innerText.slice(0, 300)}`;
        const frame = document.querySelector(selector).getBoundingClientRect();
        const seen = (r) => r.height > 0 && r.top >= frame.top && r.bottom <= frame.bottom && r.left >= frame.left && r.right <= frame.right;
        const places = ranges.map((r) => r.getBoundingClientRect());
        if (!places.some(seen)) return `out of sight: ${JSON.stringify(places[0])} in ${JSON.stringify(frame)}`;
        const { x, y, width, height } = places.find(seen);
        const top = document.elementFromPoint(x + width / 2, y + height / 2);
        return own.contains(top) || `covered by ${top?.outerHTML.slice(0, 200)}`;
      }, [words, item, TRANSCRIPT]),
    );

  // As one types: with each letter there is an answer.
  await page.keyboard.press("/");
  await until("the search has the focus", () => box.evaluate((e) => e === document.activeElement));
  await box.pressSequentially("mari", { delay: 20 });
  await until("the first hit", async () => (await hits.count()) === 1);
  assert.deepEqual(await hits.locator("mark").allTextContents(), ["mari"], "what was typed is marked");
  await box.pressSequentially("gold mole");
  await until("both words marked", async () => (await hits.locator("mark").allTextContents()).join() === "marigold,mole");
  assert.equal(await nav.locator("section h2").textContent(), "Mend the quay", "below the name that the list has");
  await box.pressSequentially(" nowhere");
  await nav.getByText("Nothing has “marigold mole nowhere” in it.").waitFor();

  // From the hit to the words.
  const follow = async (words, item, session = harbour) => {
    await box.fill(words);
    await until(`hits of ${words}`, async () => {
      const found = await hits.locator("mark").allTextContents();
      return (found.length > 0 && found.every((text) => words.includes(text.toLowerCase()))) || String(found);
    });
    await hits.first().click();
    await until("its session", () => new URL(page.url()).pathname === `/s/${session}`);
    await marked(words, item);
  };
  await open(page, narrows, harbour);
  // The report below is longer than the window.
  const steps = page.getByRole("button", { name: /^\d+ steps/, expanded: false });
  await until("the steps are folded", async () => {
    await page.locator(TRANSCRIPT).press("Home");
    return steps.isVisible();
  });
  assert.equal(await page.locator('[data-item="tide"]').count(), 0, "the call is folded with others");
  await follow("marigold", "tide");
  // A terminal is dark by day too: what is marked in it can be read.
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const [front, back] = await page.evaluate(() => {
      const { color, backgroundColor } = getComputedStyle([...CSS.highlights.get("found")][0].startContainer.parentElement, "::highlight(found)");
      return [color, backgroundColor].map((text) => text.match(/[\d.]+/g).map(Number));
    });
    assert.ok(contrast(front, back) >= 4.5, `${colorScheme}: ${front} on ${back}`);
    await page.screenshot({ path: path.join(root, `target/browser-test/found-${colorScheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: "light" });
  await follow("cormorant", "crew-3");
  const crew = page.locator('[data-item="crew"] button[aria-expanded]').first();
  assert.equal(await crew.getAttribute("aria-expanded"), "true", "the subagent's call is open");
  await follow("readdepth(foghorn)", "edit");
  await follow("gannet", "odd");
  const { items } = await narrows.ask(`/api/sessions/${harbour}/items?preview=32`);
  await follow("kittiwake", items.at(-1).id);
  await follow("索引", (await narrows.ask(`/api/sessions/${library}/items`)).items[1].id, library);
  const answer = (await narrows.ask("/api/search?q=ptarmigan")).hits[0];
  assert.ok(answer.order > 500 && answer.order < 1000, "far outside of what is loaded first");
  await follow("ptarmigan", answer.itemId, far);
  await follow("whimbrel", "call-90-2", far);
  // The same again: one has scrolled away since.
  await page.locator(TRANSCRIPT).evaluate((e) => (e.scrollTop += 3000));
  await hits.first().click();
  await marked("whimbrel", "call-90-2");
  await page.goBack();
  await marked("whimbrel", "call-90-2");
  await box.fill("");
  await until("the list again", async () => (await rows.count()) === 5);

  // Find in a session.
  await open(page, narrows, far);
  await page.keyboard.press("f");
  const find = page.getByRole("searchbox", { name: "Find in this session" });
  const count = page.locator("search").getByRole("status");
  await until("find has the focus", () => find.evaluate((e) => e === document.activeElement));
  // Slower than the page asks: the first quote alone is no question.
  await page.keyboard.type('"T', { delay: 200 });
  await page.keyboard.type('urn 17"');
  const turns = (await narrows.ask(`/api/search?q=%22Turn+17%22&session=${far}&limit=100`)).hits.sort((a, b) => a.order - b.order);
  assert.ok(turns.length >= 10, "there is something to go through");
  await until("the count", async () => (await count.textContent()) === String(turns.length));
  const stands = async (n) => {
    await until(`hit ${n + 1}`, async () => (await count.textContent()) === `${n + 1} of ${turns.length}`);
    await marked("turn 17", turns[n].itemId);
  };
  for (const n of [0, 1, 2]) {
    await page.keyboard.press("Enter");
    await stands(n);
  }
  await page.keyboard.press("Shift+Enter");
  await stands(1);
  await page.getByRole("button", { name: "The one before" }).click();
  await stands(0);
  await page.getByRole("button", { name: "The one before" }).click();
  await stands(turns.length - 1);
  await find.fill("qwertz");
  await until("nothing found", async () => (await count.textContent()) === "Nothing found");
  assert.ok(await page.getByRole("button", { name: "The next one" }).isDisabled());
  await find.press("Escape");
  await find.waitFor({ state: "hidden" });
  assert.equal(await page.evaluate(() => CSS.highlights.has("found")), false, "nothing stays marked");
  await page.getByRole("button", { name: "Find in this session" }).click();
  await find.waitFor();
  await page.getByRole("button", { name: "Close find" }).click();
  await find.waitFor({ state: "hidden" });

  // What is listed, and what is searched.
  const names = async () => (await rows.allTextContents()).length;
  const listed = (what, n) => until(`${what}: ${n} sessions`, async () => (await names()) === n || String(await rows.allTextContents()));
  const choose = (label, value) => nav.getByRole("combobox", { name: label }).selectOption(value);
  await choose("Agent", "Claude Code");
  await listed("Claude's", 2);
  await choose("Time", "7");
  await listed("of this week", 1);
  assert.match(await rows.first().textContent(), /Index of the library/);
  await choose("Agent", "");
  await listed("of every agent", 4);
  await choose("Time", "");
  await choose("Project", "archive");
  await listed("of the project", 1);
  await box.fill("lighthouse");
  await until("only hits of the project", async () => (await nav.locator("section h2").count()) === 1);
  await choose("Project", "");
  await until("hits of all", async () => (await nav.locator("section h2").count()) === 2);
  await box.fill("");
  await nav.getByRole("button", { name: "Live" }).click();
  await listed("live", 1);
  assert.match(await rows.first().getAttribute("href"), new RegExp(`${lab}$`));
  await choose("Agent", "OpenCode");
  await nav.getByText("No session is like that.").waitFor();
  await choose("Agent", "");
  await nav.getByRole("button", { name: "All" }).click();
  await listed("all", 5);
  // By the keyboard alone: into what was found and back, and in the list.
  await page.goto(`${narrows.url}/`);
  await page.keyboard.press("Control+k");
  await box.pressSequentially("lighthouse");
  await until("hits", async () => (await hits.count()) > 1);
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("href") ?? "");
  await page.keyboard.press("ArrowDown");
  const first = await focused();
  assert.match(first, /q=lighthouse/);
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await focused(), first);
  await page.keyboard.press("k");
  assert.equal(await focused(), first);
  await page.keyboard.press("ArrowUp");
  await until("back in the box", () => box.evaluate((element) => element === document.activeElement));
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=lighthouse/);
  await box.fill("");
  await page.goto(`${narrows.url}/`);
  await until("the list", async () => (await rows.count()) > 1);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("j");
  const second = await focused();
  assert.equal(second, await rows.nth(1).getAttribute("href"));
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === second);

  // A link to an item that is not there says so.
  await page.goto(`${narrows.url}${second}?item=no-such-item`);
  await page.getByText("names an item that is not in this session").waitFor();
  complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes("404")));

  // More sessions than the list has loaded: what is found in another one is below its name all the same.
  const more = Array.from({ length: 110 }, (_, n) => new Acp({ agent: "Gemini CLI", cwd: "/srv/lab", at: at + n }).prompt(`Task ${n}`).says("Done.").done());
  for (let n = 0; n < more.length; n += 10) {
    await Promise.all(more.slice(n, n + 10).map((session, i) => tell(narrows, session, { label: `task-${n + i}`, more: "&end=true" })));
  }
  const listing = page.waitForResponse((response) => new URL(response.url()).pathname === "/api/sessions");
  await page.goto(`${narrows.url}/`);
  const { sessions } = await (await listing).json();
  assert.ok(!sessions.some(({ id }) => id === harbour || id === library), "they are not loaded");
  await box.fill("cormorant");
  await until("the name of the first prompt", async () => (await nav.locator("section h2").allTextContents()).join() === "Mend the quay");
  await box.fill("索引");
  await until("the title", async () => (await nav.locator("section h2").allTextContents()).join() === "Index of the library");
  await box.fill("");

  // Down the list as long as it loads more, and up again to the search.
  await until("the list again", async () => (await rows.count()) > 1);
  await box.press("ArrowDown");
  for (const key of ["j", "k"]) {
    let last;
    for (let n = 0; n < 300 && last !== (last = await focused()); n++) {
      await page.keyboard.press(key);
      // The list draws what comes into sight with the next frame.
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
    if (key === "j") assert.equal(last, `/s/${archive}`, "the oldest");
  }
  await until("in the search again", () => box.evaluate((element) => element === document.activeElement));

  assert.deepEqual(complaints, [], "nothing in the console");
}, { longest: 240_000 });
