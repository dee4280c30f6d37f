// What one does all day: keys, links, exports, a list that keeps itself up, the first start, day and night.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, test, until } from "./lib/drive.mjs";
import { Acp, Claude, tell } from "./lib/made.mjs";
import { TRANSCRIPT, open, reader } from "./lib/page.mjs";

const MINUTE = 60_000;
const FORMS = [["Markdown", "md", "md"], ["HTML", "html", "html"], ["text", "text", "txt"], ["JSON", "json", "json"], ["JSON lines", "jsonl", "jsonl"]];

await test("habits", async (test) => {
  const narrows = new Narrows(test);
  await narrows.start();
  const { context, page, complaints, another } = await reader(test, narrows, { width: 1280, height: 800 });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const nav = page.getByRole("navigation", { name: "Sessions" });
  const rows = nav.locator("a[href^='/s/']");
  const names = () => rows.evaluateAll((all) => all.map((row) => row.querySelector("span span").textContent));
  const listed = (what, wanted) =>
    until(what, async () => JSON.stringify(await names()) === JSON.stringify(wanted) || JSON.stringify(await names()));

  // The first start teaches.
  await page.getByRole("heading", { name: "No sessions yet" }).waitFor();
  const { folders } = await narrows.ask("/api/sources");
  assert.ok(folders.length > 0, "narrows looks somewhere");
  const taught = await page.locator("main").innerText();
  for (const { path } of folders) assert.ok(taught.includes(path), `it says that it looked at ${path}`);
  assert.match(taught, /not there/, "and that there is nothing");
  assert.match(taught, /^narrows demo/m, "and which command to try");
  assert.equal(await page.title(), "narrows");

  // The list keeps itself up: what an agent writes down, what is sent, titles as they change.
  const folder = path.join(narrows.data, ".claude/projects/-srv-shop");
  fs.mkdirSync(folder, { recursive: true });
  const first = new Claude({ at: Date.now() - 30 * MINUTE }).user("Mend the **gate**\nplease").says("Done.");
  const file = path.join(folder, `${first.id}.jsonl`);
  fs.writeFileSync(file, first.lines.join("\n") + "\n");
  await listed("the first session comes by itself", ["Mend the **gate** please"]);
  await page.getByRole("heading", { name: "Choose a session" }).waitFor();
  const add = (session) => fs.appendFileSync(file, session.lines.at(-1) + "\n");
  add(first.titled("The gate"));
  await listed("the agent's title", ["The gate"]);
  add(first.named("My gate"));
  await listed("somebody's title", ["My gate"]);
  add(first.titled("Another gate"));
  const going = new Acp({ agent: "OpenCode", cwd: "/srv/lab" });
  const start = going.lines;
  const { id: live } = await narrows.ask("/api/sessions", { label: "nightly-run" });
  await narrows.send(live, start, 1);
  // What arrives now is live, whatever time it tells.
  await listed("a new session, by its label, below the one that is written; somebody's title stays", ["My gate", "nightly-run"]);
  const dot = nav.locator(`a[href='/s/${live}']`).getByRole("img", { name: "Live" });
  assert.equal(await dot.count(), 0, "nothing is going on");
  going.prompt("Count the stars");
  await narrows.send(live, going.lines, start.length + 1);
  await dot.waitFor();
  await listed("its first prompt is its title", ["Count the stars", "My gate"]);
  await nav.getByRole("heading", { name: "Live" }).waitFor();

  // Day and night, and whoever wants no motion.
  const look = () => page.evaluate(() => {
    const of = (element) => [getComputedStyle(element).backgroundColor, getComputedStyle(element).color];
    return [...of(document.body), ...of(document.querySelector("nav"))].join(" ");
  });
  const moves = () => dot.evaluate((dot) => dot.getAnimations().length);
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "no-preference" });
  const day = await look();
  assert.equal(await moves(), 1, "a live session has a quiet pulse");
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  const night = await look();
  assert.ok(day.split(") ").every((colour, n) => colour !== night.split(") ")[n]), `${day} is not ${night}`);
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0, "nothing moves");
  await page.emulateMedia({ colorScheme: "light", reducedMotion: null });

  const answered = going.lines.length;
  await narrows.send(live, going.done().lines, answered + 1);
  await dot.waitFor({ state: "detached" });

  // A session as Claude keeps it: its titles, its command, its links.
  const long = new Claude().user("Walk through the park");
  for (let n = 0; n < 40; n++) {
    long.says(`Step ${n}. ${"Under the trees it is cool and quiet. ".repeat(4)}`);
    long.calls("Read", { file_path: `/srv/shop/park-${n}.txt` }, `tree ${n}\nbench ${n}`, { id: `toolu-park-${n}` });
  }
  long.says("That was the park.");
  const park = await tell(narrows, long, { label: "park" });
  await listed("live ones on top, the newest first", ["Walk through the park", "My gate", "Count the stars"]);
  await nav.getByRole("link", { name: "Walk through the park" }).click();
  await page.getByText("That was the park.").waitFor();
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Walk through the park");
  assert.equal(await page.title(), "Walk through the park · narrows");
  assert.equal(page.url(), `${narrows.url}/s/${park}`);
  await narrows.send(park, long.titled("A walk").lines, long.lines.length);
  await until("the title on the page", async () => (await page.title()) === "A walk · narrows");
  await until("and above it", async () => (await page.getByRole("heading", { level: 1 }).textContent()) === "A walk");

  // Keys.
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("data-row"));
  const inSight = (row) => page.evaluate(([row, selector]) => {
    const frame = document.querySelector(selector).getBoundingClientRect();
    const place = document.querySelector(`[data-row="${CSS.escape(row)}"]`)?.getBoundingClientRect();
    return Boolean(place) && place.bottom > frame.top && place.top < frame.bottom;
  }, [row, TRANSCRIPT]);
  const press = async (key) => {
    const before = await focused();
    await page.keyboard.press(key);
    await until(`${key} moves the focus`, async () => (await focused()) !== before);
    const row = await focused();
    assert.ok(row && (await inSight(row)), `${key}: the row is in sight`);
    return row;
  };
  const order = (await narrows.ask(`/api/sessions/${park}/items?limit=200`)).items.map((item) => item.id);
  await page.locator("body").press("k");
  await until("a row has the focus", async () => (await focused()) !== null);
  let at = order.indexOf(await focused());
  assert.ok(at > order.length - 16, `one begins where one reads: ${at} of ${order.length}, ${await focused()}`);
  const top = () => page.locator(TRANSCRIPT).evaluate((e) => e.scrollTop);
  const bottom = await top();
  for (let n = 0; n < 25; n++) assert.equal(await press("k"), order[--at], "k goes up row by row");
  assert.ok((await top()) < bottom - 400, "and scrolls");
  for (let n = 0; n < 5; n++) assert.equal(await press("j"), order[++at], "j goes down row by row");
  if (!order[at].startsWith("toolu")) assert.equal(await press("j"), order[++at]);
  const card = page.locator(`[data-row="${order[at]}"] button[aria-expanded]`).first();
  const isOpen = (is) => until(`the card is ${is ? "open" : "closed"}`, async () => (await card.getAttribute("aria-expanded")) === String(is));
  await isOpen(false);
  await page.keyboard.press("Enter");
  await isOpen(true);
  assert.equal(await focused(), order[at], "the focus stays");
  await page.keyboard.press("Enter");
  await isOpen(false);
  await page.keyboard.press("Shift+G");
  await until("the end", () => page.locator(TRANSCRIPT).evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight < 4));
  const find = page.getByRole("searchbox", { name: "Find in this session" });
  await page.keyboard.press("f");
  await find.waitFor();
  await page.keyboard.press("Escape");
  await find.waitFor({ state: "hidden" });
  const aside = page.getByRole("complementary", { name: "About this session" });
  await page.keyboard.press("o");
  await aside.getByRole("button", { name: "Walk through the park" }).waitFor();
  await page.keyboard.press("Escape");
  await aside.waitFor({ state: "hidden" });
  await page.keyboard.press("[");
  await nav.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Show the list of sessions" }).waitFor();
  await page.keyboard.press("[");
  await nav.waitFor();
  const help = page.getByRole("dialog", { name: "Keys" });
  await page.keyboard.press("?");
  await help.waitFor();
  for (const key of ["/", "j", "k", "Enter", "G", "f", "o", "[", "?", "Esc"]) {
    assert.ok(await help.locator("kbd", { hasText: key }).count(), `${key} is listed`);
  }
  await page.keyboard.press("j");
  assert.ok(await help.isVisible(), "keys do nothing behind it");
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "hidden" });
  const search = page.getByRole("searchbox", { name: "Search all sessions" });
  const hasFocus = (what) => until("the search has the focus", () => what.evaluate((e) => e === document.activeElement));
  await page.keyboard.press("[");
  await nav.waitFor({ state: "hidden" });
  await page.keyboard.press("/");
  await hasFocus(search);
  await page.keyboard.type("jkGfo[?/");
  assert.equal(await search.inputValue(), "jkGfo[?/", "in an input they are letters");
  assert.ok((await nav.isVisible()) && !(await find.isVisible()) && !(await help.isVisible()) && !(await aside.isVisible()));
  await page.keyboard.press("Escape");
  assert.equal(await search.inputValue(), "", "Escape empties it");
  await page.keyboard.press("Escape");
  await until("and leaves it", () => search.evaluate((e) => e !== document.activeElement));
  await page.keyboard.press("Control+k");
  await hasFocus(search);
  await page.keyboard.press("Escape");

  // Links and commands to take away.
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  const said = page.locator("header").getByRole("status");
  const copied = async (words, text) => {
    await until(words, async () => (await said.textContent()) === words);
    assert.equal(await clipboard(), text);
  };
  await page.getByRole("button", { name: "Copy a link to this session" }).click();
  await copied("Link copied", `${narrows.url}/s/${park}`);
  const more = page.getByRole("button", { name: "More" });
  const menu = page.getByRole("menu", { name: "More" });
  await more.click();
  await menu.getByRole("menuitem", { name: /Copy resume command/ }).click();
  await copied("Command copied", `claude --resume ${long.id}`);
  await menu.waitFor({ state: "hidden" });

  const meant = "toolu-park-7";
  await open(page, narrows, park, `?item=${meant}`);
  const item = page.locator(`[data-row="${meant}"]`);
  await item.hover();
  const link = item.getByRole("link", { name: "Copy a link to this" });
  await link.click();
  await item.getByRole("link", { name: "Link copied" }).waitFor();
  const address = await clipboard();
  assert.equal(address, `${narrows.url}/s/${park}?item=${meant}`);
  const other = await another();
  await other.goto(address);
  await other.locator(`[data-row="${meant}"]`).waitFor();
  await until("the item in sight", () => other.evaluate(([meant, selector]) => {
    const [row, frame] = [document.querySelector(`[data-row="${meant}"]`), document.querySelector(selector)].map((e) => e?.getBoundingClientRect());
    return Boolean(row) && row.top >= frame.top && row.bottom <= frame.bottom;
  }, [meant, TRANSCRIPT]));
  assert.equal(await other.locator(`[data-row="${meant}"] button[aria-expanded]`).first().getAttribute("aria-expanded"), "true");
  await other.close();

  // Exports are what the server gives.
  const headers = { authorization: `Bearer ${narrows.token}` };
  for (const [name, form, ending] of FORMS) {
    await more.click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      menu.getByRole("menuitem", { name: `Export as ${name}`, exact: true }).click(),
    ]);
    const wanted = await fetch(`${narrows.url}/api/sessions/${park}/export?format=${form}`, { headers });
    assert.equal(fs.readFileSync(await download.path(), "utf8"), await wanted.text(), `${name}: as the server has it`);
    assert.match(download.suggestedFilename(), new RegExp(`^a-walk.*\\.${ending}$`, "i"), `${name}: its name`);
  }

  // Deleting asks first.
  await more.click();
  await menu.getByRole("menuitem", { name: "Delete…" }).click();
  const sure = page.getByRole("dialog", { name: "Delete this session?" });
  await sure.getByText("“A walk” is removed").waitFor();
  await sure.getByRole("button", { name: "Keep it" }).click();
  await sure.waitFor({ state: "hidden" });
  assert.equal((await narrows.ask(`/api/sessions/${park}`)).id, park, "it is still there");
  await more.click();
  await menu.getByRole("menuitem", { name: "Delete…" }).click();
  await sure.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Choose a session" }).waitFor();
  await until("it is gone from the list", async () => !(await names()).includes("A walk"));
  assert.equal(new URL(page.url()).pathname, "/");

  // A link to what is not here.
  assert.deepEqual(complaints, [], "nothing in the console");
  await page.goto(`${narrows.url}/s/${park}`);
  await page.getByRole("heading", { name: "This session is not here" }).waitFor();
  assert.equal(await page.title(), "narrows");
  await listed("the list is there all the same", ["My gate", "Count the stars"]);
  await nav.getByRole("link", { name: "My gate" }).click();
  await page.getByText("Done.").waitFor();
}, { longest: 240_000 });
