// narrows' own page: the printed address lets a browser in, once.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, browser, packets, root, test, until } from "./lib/drive.mjs";

await test("page", async (test) => {
  const narrows = new Narrows(test);
  await narrows.start();
  const { id } = await narrows.ask("/api/sessions", { label: "order-17" });
  await narrows.send(id, packets(), 1, "&end=true");
  const { items } = await narrows.ask(`/api/sessions/${id}/items?preview=0`);

  const { context, complaints } = await browser(test, "profile");
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective));
  });
  const page = await context.newPage();
  await page.setViewportSize({ width: 1100, height: 750 });
  await page.goto(narrows.ticket);
  const state = page.locator("#state");
  await until("the page to be live", async () => (await state.textContent()) === "live");
  assert.equal(page.url(), `${narrows.url}/`, "the ticket is gone from the address bar");
  assert.equal(await page.evaluate("document.cookie"), "", "scripts cannot read the cookie");

  const sessions = page.locator("#sessions button");
  await until("the session in the list", async () => (await sessions.count()) === 1);
  await sessions.first().click();
  const rows = page.locator("#items > li");
  await until("its items", async () => (await rows.count()) === items.length);
  const texts = (await rows.allTextContents()).join("\n");
  for (const item of items) {
    const text = item.content ?? item.text ?? item.toolCall?.description;
    assert.ok(texts.includes(text), `the page shows: ${text}`);
  }
  const shots = path.join(root, "target/browser-test");
  fs.mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, "page.png") });

  await page.reload();
  await until("the page to be live again", async () => (await state.textContent()) === "live");
  assert.deepEqual(await page.evaluate("window.violations"), [], "no violation of the content security policy");
  assert.deepEqual(complaints, [], "nothing in the console");

  // Somebody else finds the address.
  const second = await browser(test, "second-profile");
  const late = await second.context.newPage();
  await late.goto(narrows.ticket);
  await until("the page to say so", async () => /not connected/.test(await late.locator("#state").textContent()));
  assert.equal(await late.locator("#sessions li").count(), 0, "nothing is listed");
  assert.equal(await late.evaluate("fetch('/api/sessions').then((r) => r.status)"), 401, "nobody is logged in");
  assert.equal((await second.context.cookies()).length, 0, "no cookie was set");
});
