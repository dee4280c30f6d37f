// What one reads stays where it is, whatever comes; who reads at the end stays at the end.
import assert from "node:assert/strict";
import { Narrows, test, until } from "./lib/drive.mjs";
import { long } from "./lib/long.mjs";
import { TRANSCRIPT, isStill, moved, open, reader, rowAt, watch } from "./lib/page.mjs";

const PACKETS_PER_TURN = 20;

await test("scroll", async (test) => {
  const narrows = new Narrows(test);
  await narrows.start();
  const { id } = await narrows.ask("/api/sessions", { label: "scroll" });
  const lines = [...long(340)];
  let sent = 70 * PACKETS_PER_TURN;
  await narrows.send(id, lines.slice(0, sent), 1);
  /// So many turns more, as fast as it goes.
  const turns = async (count, piece = 10) => {
    for (const to = sent + count * PACKETS_PER_TURN; sent < to; sent += piece) {
      await narrows.send(id, lines.slice(0, sent + piece), sent + 1);
    }
  };
  const { page, complaints } = await reader(test, narrows, { width: 1100 });
  await open(page, narrows, id);
  const transcript = page.locator(TRANSCRIPT);
  const latest = page.getByRole("button", { name: "Jump to latest" });
  const height = () => transcript.evaluate((root) => root.scrollHeight);
  const atEnd = () => transcript.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight < 2);

  // At the end.
  await until("to be at the end", atEnd);
  let watched = await watch(page, null);
  await turns(10);
  const lefts = (await watched()).map((note) => note.left).sort((a, b) => a - b);
  // A frame may be drawn late on a busy machine; most are not.
  const [most, worst] = [lefts[Math.floor(lefts.length * 0.9)], lefts.at(-1)];
  assert.ok(most < 20 && worst < 400, `the end was out of sight by ${most} px, at worst ${worst} px`);
  await until("to be at the end still", atEnd);
  assert.equal(await latest.count(), 0, "no way to the end is offered to who is there");

  // Above it: the wheel lets go while more comes.
  await transcript.hover();
  const coming = turns(20, 5);
  for (let n = 0; n < 3; n++) await page.mouse.wheel(0, -12);
  await latest.waitFor();
  await page.mouse.wheel(0, -400);
  await until("the wheel to stop", () => isStill(page));
  watched = await watch(page, await rowAt(page, 0.4));
  await coming;
  await turns(20, 20);
  const notes = await watched();
  assert.equal(moved(notes), null, "a row above the end while more comes");
  assert.ok(notes.at(-1).left - notes[0].left > 3000, "much came");
  await latest.click();
  await until("to be at the end again", atEnd);
  await latest.waitFor({ state: "hidden" });
  await turns(5);
  await page.getByText(`Turn ${sent / PACKETS_PER_TURN} is done.`).waitFor();
  await until("to be at the end after more came", atEnd);

  // Opening, at the end too: nothing above the body moves, also when more comes.
  for (const part of [1, 0.6, 0.3]) {
    const { key, x, y } = await closedAt(page, part);
    watched = await watch(page, key);
    await page.mouse.click(x, y);
    const isOpen = ([x, y]) => document.elementFromPoint(x, y)?.closest("button")?.ariaExpanded === "true";
    await until("it to be open, where it was", () => page.evaluate(isOpen, [x, y]));
    await turns(1);
    assert.equal(moved(await watched()), null, `a row that is opened at ${part}`);
  }

  // Older ones, which come a while after they are asked for.
  let asked = null;
  await page.route(/items\?before=/, (route) => {
    asked = route;
  });
  await transcript.hover();
  for (let times = 0, tries = 0; times < 3; tries++) {
    assert.ok(tries < 80, "older ones are asked for");
    await page.mouse.wheel(0, -900);
    await until("the wheel to stop", () => isStill(page));
    if (!asked) continue;
    const before = await height();
    watched = await watch(page, await rowAt(page, 0.4));
    const route = asked;
    asked = null;
    await route.continue();
    await until("older ones", async () => (await height()) > before + 500);
    assert.equal(moved(await watched()), null, "a row while older ones come");
    times++;
  }
  await page.unroute(/items\?before=/);

  // Who reads on above for hours: what comes is not kept without end, and nothing moves.
  await latest.click();
  await until("to be at the end once more", atEnd);
  await page.mouse.wheel(0, -600);
  await until("the wheel to stop", () => isStill(page));
  watched = await watch(page, await rowAt(page, 0.4));
  await turns(200, 100);
  const news = page.getByRole("button", { name: /Jump to latest\s*\d+ new/ });
  await until("new ones to be counted only", () => news.isVisible());
  assert.equal(moved(await watched()), null, "a row while more comes than is kept");
  await latest.click();
  await page.getByText(`Turn ${sent / PACKETS_PER_TURN} is done.`).waitFor();
  await until("to be at the end of it all", atEnd);
  assert.deepEqual(complaints, [], "nothing in the console");
}, { longest: 240_000 });

/// Something closed that is in sight, nearest to a part of the height of the window.
function closedAt(page, part) {
  return page.locator(TRANSCRIPT).evaluate((root, part) => {
    const box = root.getBoundingClientRect();
    const goal = box.top + box.height * part;
    const seen = [...root.querySelectorAll('button[aria-expanded="false"]')].flatMap((button) => {
      const { left, top, bottom } = button.getBoundingClientRect();
      if (top < box.top || bottom > box.bottom) return [];
      const key = button.closest("[data-row]").getAttribute("data-row");
      return [{ key, x: left + 40, y: (top + bottom) / 2, far: Math.abs(top - goal) }];
    });
    return seen.reduce((a, b) => (b.far < a.far ? b : a));
  }, part);
}
