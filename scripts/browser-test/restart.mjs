// The server dies while a session streams, twice: the page says so, waits, goes on, and lacks nothing.
import assert from "node:assert/strict";
import { Narrows, test, until } from "./lib/drive.mjs";
import { long } from "./lib/long.mjs";
import { TRANSCRIPT, difference, open, read, reader } from "./lib/page.mjs";

const TURNS = 60;

/// Sends packets as a recorder does that outlives the server: what was not acknowledged is sent again.
class Recorder {
  constructor(narrows, session, lines) {
    Object.assign(this, { narrows, session, lines, sent: 0, cuts: 0 });
  }

  async run(to = this.lines.length) {
    while (this.sent < to) {
      const next = Math.min(to, this.sent + 2);
      try {
        await this.narrows.send(this.session, this.lines.slice(0, next), this.sent + 1);
        this.sent = next;
      } catch (error) {
        if (error.cause === undefined) throw error;
        this.cuts++;
        await until("the server to be back", () => this.goOn());
      }
      await new Promise((go) => setTimeout(go, 5));
    }
  }

  async goOn() {
    const state = await this.narrows.ask(`/api/sessions/${this.session}/packets`).catch(() => null);
    if (state) this.sent = state.sources[0]?.acknowledged ?? 0;
    return state !== null;
  }
}

await test("restart", async (test) => {
  const narrows = new Narrows(test);
  await narrows.start();
  const { id } = await narrows.ask("/api/sessions", { label: "cut" });
  const recorder = new Recorder(narrows, id, [...long(TURNS)]);
  // Longer than what a page shows at once.
  await narrows.send(id, recorder.lines.slice(0, 900), 1);
  recorder.sent = 900;
  const { page, another, context } = await reader(test, narrows, { width: 1000 });
  await open(page, narrows, id);
  let failed = 0;
  context.on("requestfailed", () => failed++);
  const line = page.getByText("Reconnecting…");

  const running = recorder.run();
  for (const place of [980, 1080]) {
    await until("the recorder to be there", () => recorder.sent >= place);
    await narrows.stop("SIGKILL");
    await line.waitFor();
    const rows = await page.locator(`${TRANSCRIPT} [data-row]`).count();
    assert.ok(rows > 0, "what was there stays");
    if (place === 1080) {
      // Somebody reads on upwards, where nothing is loaded: that is asked for in vain, and not without end.
      await page.locator(TRANSCRIPT).hover();
      const before = failed;
      await page.mouse.wheel(0, -20_000);
      await until("it to be asked for", () => failed > before);
      await page.getByText("could not be read").waitFor();
      // What would ask without end asks with every frame, or with every answer.
      await page.evaluate(async () => {
        for (let n = 0; n < 40; n++) await new Promise(requestAnimationFrame);
      });
      assert.ok(failed - before < 12, `${failed - before} requests while nobody answers`);
    }
    await narrows.start();
    await line.waitFor({ state: "hidden" });
    await page.getByText("could not be read").waitFor({ state: "hidden" });
  }
  await running;
  assert.ok(recorder.cuts >= 2, "the recorder was cut off too");

  const fresh = await another();
  await open(fresh, narrows, id);
  const { items } = await narrows.ask(`/api/sessions/${id}/items?from=0&limit=1`);
  const all = (page) => read(page, items[0].id);
  await until("the same as a fresh page", async () => difference(await all(page), await all(fresh)) ?? true);
  const { rows } = await all(page);
  for (let turn = 1; turn <= TURNS; turn++) {
    assert.equal(rows.split(`>Turn ${turn}: `).length, 2, `turn ${turn} begins once`);
    assert.equal(rows.split(`>Turn ${turn} is done. `).length, 2, `turn ${turn} ends once`);
  }
}, { longest: 240_000 });
