// A session of a hundred thousand items: any place of it is there at once, and the page stays small.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, root, test, until } from "./lib/drive.mjs";
import { ITEMS_PER_TURN, long } from "./lib/long.mjs";
import { TRANSCRIPT, isStill, moved, open, reader, rowAt, watch } from "./lib/page.mjs";

/// A debug build takes minutes to read so many packets; what it serves may have been read by another one.
const quick = path.join(root, "target/release/narrows");
const ITEMS = Number(process.env.NARROWS_BIG_ITEMS ?? (fs.existsSync(quick) ? 100_000 : 4000));
const TURNS = Math.ceil(ITEMS / ITEMS_PER_TURN);
const MOST_ELEMENTS = 4000;
const MOST_HEAP = 60e6;

await test("big", async (test) => {
  const narrows = new Narrows(test);
  const { program } = narrows;
  if (fs.existsSync(quick)) narrows.program = quick;
  await narrows.start();
  const { id } = await narrows.ask("/api/sessions", { label: "big" });
  await narrows.send(id, [...long(TURNS)], 1, "&end=true");
  await narrows.stop("SIGTERM");
  narrows.program = program;
  await narrows.start(60_000);

  const { page, context, complaints } = await reader(test, narrows);
  const loading = new Set();
  page.on("request", (request) => /\/items\b/.test(request.url()) && loading.add(request));
  for (const over of ["requestfinished", "requestfailed"]) page.on(over, (request) => loading.delete(request));
  const transcript = page.locator(TRANSCRIPT);
  const latest = page.getByRole("button", { name: "Jump to latest" });
  const rail = page.getByRole("slider", { name: "Place in the session" });
  const devtools = await context.newCDPSession(page);
  const small = async (where) => {
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(elements < MOST_ELEMENTS, `${where}: ${elements} elements`);
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize } = await devtools.send("Runtime.getHeapUsage");
    assert.ok(usedSize < MOST_HEAP, `${where}: ${usedSize} bytes`);
  };
  /// The numbers of the turns whose prompts are there, in order, without one missing.
  const here = async () => {
    const turns = await transcript.evaluate((root) => {
      const prompts = [...root.querySelectorAll('[data-type="user_message"]')];
      return prompts.map((prompt) => Number(prompt.textContent.match(/Turn (\d+):/)[1]));
    });
    assert.deepEqual(turns, turns.map((_, n) => turns[0] + n), "no turn is missing or doubled");
    return turns;
  };
  const inSight = (text) => until(`${text} in sight`, () => transcript.evaluate((root, text) => {
    const box = root.getBoundingClientRect();
    return [...root.querySelectorAll("[data-item]")].some((item) => {
      const { top, bottom } = item.getBoundingClientRect();
      return top < box.bottom && bottom > box.top && item.textContent.includes(text);
    });
  }, text));
  /// Goes on with the wheel until a turn is there; nothing may jump when more is loaded, or let go.
  const wheelTo = async (by, isThere) => {
    await transcript.hover();
    for (let n = 0; ; n++) {
      assert.ok(n < 120, "it goes on");
      await page.mouse.wheel(0, by);
      await until("the wheel to stop", () => isStill(page));
      const watched = await watch(page, await rowAt(page, 0.5));
      const turns = await here();
      assert.equal(moved(await watched()), null, `at turn ${turns[0]}`);
      if (isThere(turns)) return turns;
    }
  };

  await open(page, narrows, id);
  await inSight(`Turn ${TURNS} is done.`);
  await small("at the end");

  // More than the page keeps at once.
  const far = TURNS - Math.ceil(2000 / ITEMS_PER_TURN);
  await wheelTo(-4500, (turns) => turns[0] < far);
  await small("far above the end");
  await wheelTo(4500, (turns) => turns.at(-1) === TURNS);
  await small("at the end again");
  // Who stays at the end is not held there by a click on the rail.
  await page.mouse.wheel(0, 4500);
  await latest.waitFor({ state: "hidden" });

  const box = await rail.boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  const middle = TURNS / 2;
  const inMiddle = async () => Math.abs((await here())[0] - middle) < Math.max(12, TURNS / 50);
  await until("the middle", inMiddle);
  await until("nothing is loaded any more", async () => loading.size === 0 && (await isStill(page)) && loading.size === 0);
  assert.ok(await inMiddle(), "the middle stays, whatever is loaded");
  const [there] = await here();
  await small("in the middle");
  await wheelTo(-4500, (turns) => turns[0] < there - 40);
  await wheelTo(4500, (turns) => turns[0] > there + 40);
  await small("around the middle");

  // A link to something in folded steps, whose body is too long to come along.
  const turn = Math.floor(TURNS / 3 / 36) * 36 + 18;
  const item = `call-${turn}-3`;
  await open(page, narrows, id, `?item=${item}`);
  const card = transcript.locator(`[data-row="${item}"]`);
  await until("the card in sight", async () => {
    const at = await card.boundingBox().catch(() => null);
    return at !== null && at.y > 0 && at.y < 900;
  });
  await card.getByRole("button", { name: /Show all/ }).click();
  const text = await card.innerText();
  for (let line = 1; line <= 400; line++) {
    assert.ok(text.includes(`src/part-${turn % 40}/file-3.ts:${line}: `), `line ${line} is there`);
  }
  await here();

  await latest.click();
  await inSight(`Turn ${TURNS} is done.`);
  await latest.waitFor({ state: "hidden" });
  await small("at the end at last");
  assert.deepEqual(complaints, [], "nothing in the console");
}, { longest: 240_000 });
