// narrows' own page: the printed address lets a browser in, once; it shows what there is, and deletes it.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, browser, packets, root, test, until } from "./lib/drive.mjs";
import { TRANSCRIPT, openAll } from "./lib/page.mjs";

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
  await page.setViewportSize({ width: 1440, height: 2400 });
  const fine = async () => {
    assert.deepEqual(await page.evaluate("window.violations"), [], "the content security policy is kept");
    assert.deepEqual(complaints, [], "nothing in the console");
  };
  await page.goto(narrows.ticket);
  const list = page.getByRole("navigation", { name: "Sessions" });
  const session = list.getByRole("link");
  await session.waitFor();
  assert.equal(page.url(), `${narrows.url}/`, "the ticket is gone from the address bar");
  assert.equal(await page.evaluate("document.cookie"), "", "scripts cannot read the cookie");
  assert.equal(await session.count(), 1, "the session is listed");

  await session.click();
  await page.locator(`${TRANSCRIPT} [data-item]`).first().waitFor();
  assert.equal(page.url(), `${narrows.url}/s/${id}`, "it has an address");
  await shows(page, items);
  const shots = path.join(root, "target/browser-test");
  fs.mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, "page.png") });
  await fine();
  await page.reload();
  await shows(page, items);
  await fine();

  // Somebody else finds the address.
  const second = await browser(test, "second-profile");
  const late = await second.context.newPage();
  await late.goto(narrows.ticket);
  await late.getByRole("heading", { name: "Not logged in" }).waitFor();
  await late.getByText("was used before").waitFor();
  await late.getByText("narrows login-url", { exact: true }).waitFor();
  assert.equal(await late.getByRole("link").count(), 0, "nothing is listed");
  assert.ok(!(await late.locator("body").innerText()).includes("notes.md"), "nothing is told");
  const status = await late.evaluate("fetch('/api/sessions').then((response) => response.status)");
  assert.equal(status, 401, "nobody is logged in");
  assert.equal((await second.context.cookies()).length, 0, "no cookie was set");

  // An address that leads nowhere.
  for (const [name, where] of [["in", page], ["out", late]]) {
    const answer = await where.goto(`${narrows.url}/nonsense`);
    assert.equal(answer.status(), 404);
    await where.getByRole("heading", { name: "Not found" }).waitFor();
    await where.screenshot({ path: path.join(shots, `nowhere-${name}.png`) });
  }
  complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes("404")));
  await session.click();
  await page.locator(`${TRANSCRIPT} [data-item]`).first().waitFor();
  await late.goto(narrows.url);
  await late.getByText("it needs a key").waitFor();

  // Deleting asks first.
  const dialog = page.getByRole("dialog", { name: "Delete this session?" });
  const ask = async () => {
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Delete…" }).click();
    await dialog.waitFor();
  };
  await ask();
  await dialog.getByRole("button", { name: "Keep it" }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.equal((await narrows.ask("/api/sessions")).sessions.length, 1, "it is kept");
  await ask();
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("heading", { name: "No sessions yet" }).waitFor();
  assert.equal(await session.count(), 0, "it is gone from the list");
  assert.equal(await page.locator(TRANSCRIPT).count(), 0, "it is gone from the page");
  assert.equal(page.url(), `${narrows.url}/`, "it is gone from the address bar");
  assert.equal((await narrows.ask("/api/sessions")).sessions.length, 0, "it is gone");
  await fine();
  await page.goto(`${narrows.url}/s/${id}`);
  await page.getByRole("heading", { name: "This session is not here" }).waitFor();
});

/// What the items say is on the page when everything is opened.
async function shows(page, items) {
  await page.locator(`${TRANSCRIPT} [data-item]`).first().waitFor();
  await openAll(page);
  await until("the page to show every item", async () => {
    const text = (await page.locator(TRANSCRIPT).textContent()).replace(/\s+/g, " ");
    const said = items.map((item) => item.content ?? item.text ?? item.toolCall?.description);
    const lacks = said.filter((part) => part && !text.includes(part.replace(/\s+/g, " ")));
    return lacks.length ? `it lacks ${lacks[0]}` : true;
  });
}
