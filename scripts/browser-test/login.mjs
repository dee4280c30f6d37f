// What another server on this host receives from the browser opens nothing, and the page works without a cookie.
import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import { Narrows, browser, test, until } from "./lib/drive.mjs";
import { TRANSCRIPT, open, recorded } from "./lib/page.mjs";

/// A server on another port that keeps all that it is sent, and whose page tries what a page can.
async function stranger(test, narrows, session) {
  const got = [];
  const tries = `
    const [url, session] = ${JSON.stringify([narrows.url, session])};
    const told = {};
    const ask = (name, what) => Promise.resolve().then(what).then((said) => (told[name] = said), (error) => (told[name] = "refused: " + error.name));
    const paths = ["/api/me", "/api/sessions", "/api/sessions/" + session + "/items", "/api/sessions/" + session + "/export?format=md"];
    const loads = (tag, more) => new Promise((done) => {
      const element = Object.assign(document.createElement(tag), more);
      element.onload = () => done("loaded");
      element.onerror = () => done("refused");
      setTimeout(() => done("silent"), 20_000);
      document.body.append(element);
    });
    window.tried = Promise.all([
      ...paths.map((path) => ask("fetch " + path, async () => (await fetch(url + path, { credentials: "include" })).status)),
      ask("login", async () => (await fetch(url + "/api/request-tickets", { method: "POST", credentials: "include", headers: { "x-narrows": "1" } })).status),
      ask("form", () => { const form = Object.assign(document.createElement("form"), { method: "post", action: url + "/api/sessions", target: "hidden" }); document.body.append(form); form.submit(); return "sent"; }),
      ask("picture", () => loads("img", { src: url + "/api/sessions/" + session + "/export?format=md" })),
      ask("script", () => loads("script", { src: url + "/api/sessions" })),
      ask("socket", () => new Promise((done) => { const socket = new WebSocket(url.replace("http", "ws") + "/api/ws"); socket.onopen = () => done("open"); socket.onerror = () => done("refused"); })),
      ask("stream", () => new Promise((done) => { const source = new EventSource(url + "/api/sessions/stream", { withCredentials: true }); source.onopen = () => done("open"); source.onerror = () => { source.close(); done("refused"); }; })),
      ask("storage", () => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie),
    ]).then(() => told);`;
  const server = http.createServer((request, response) => {
    const entry = { url: request.url, headers: request.rawHeaders, body: "" };
    got.push(entry);
    request.on("data", (bytes) => (entry.body += bytes));
    if (request.url === "/tries.js") return response.writeHead(200, { "content-type": "text/javascript" }).end(tries);
    const page = "<!doctype html><title>stranger</title><body><iframe name=hidden></iframe><script src=/tries.js></script>";
    response.writeHead(200, { "content-type": "text/html" }).end(page);
  });
  server.on("upgrade", (request, socket) => {
    got.push({ url: request.url, headers: request.rawHeaders, body: "" });
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  test.closing(async () => (server.closeAllConnections(), server.close()));
  return { url: `http://127.0.0.1:${server.address().port}`, got };
}

/// Every value that a server was sent, whole and in parts.
function values(got) {
  const whole = got.flatMap(({ url, headers, body }) => [url, body, ...headers]).filter(Boolean);
  return new Set(whole.flatMap((value) => [value, ...value.split(/[;,=&?#/ ]+/)]).filter((value) => value && value.length < 500));
}

/// The picture of the session is drawn, and the page is live.
async function works(page) {
  const picture = page.locator(`${TRANSCRIPT} img`).first();
  await until("the picture", async () => ((await picture.count()) && (await picture.evaluate((img) => img.naturalWidth > 0))) || (await page.locator(TRANSCRIPT).innerHTML()).slice(0, 1500));
  assert.match(await picture.getAttribute("src"), /^blob:/, "it is shown from memory");
  await until("the socket", async () => (await page.getByText("Reconnecting…").count()) === 0);
}

await test("login", async (test) => {
  const narrows = new Narrows(test);
  await narrows.start();
  const { id } = await narrows.ask("/api/sessions", { label: "with-a-picture" });
  await narrows.send(id, recorded("acp", "claude-acp-u-user-image"), 1, "&end=true");
  const other = await stranger(test, narrows, id);

  const { context } = await browser(test, "profile");
  const page = context.pages()[0] ?? (await context.newPage());
  await page.setViewportSize({ width: 1200, height: 1000 });
  const asked = [];
  context.on("request", (request) => asked.push(request.url()));
  await page.goto(narrows.ticket);
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("link").first().waitFor();
  await open(page, narrows, id);
  await openPictures(page);
  await works(page);
  assert.deepEqual(await context.cookies(), [], "there is no cookie");
  const token = await page.evaluate("localStorage.getItem('narrows.login')");
  assert.match(token, /^nrw_/);
  assert.ok(!asked.some((url) => url.includes(token)), "it is in no address");
  const who = (value) => ({ headers: { authorization: `Bearer ${value}` } });
  const status = async (path, options) => (await fetch(narrows.url + path, { redirect: "manual", ...options })).status;
  assert.equal(await status("/api/me", who(token)), 200, "the token is what lets it in");

  // A download, by a ticket that is used up by it.
  await page.getByRole("button", { name: "More", exact: true }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export as Markdown", exact: true }).click(),
  ]);
  assert.ok(fs.readFileSync(await download.path(), "utf8").length > 20, "it is saved");
  const address = new URL(download.url());
  assert.equal(await status(address.pathname + address.search), 401, "its address works no more");

  // The browser goes to another server of this host: by itself, by a link of the page, and in a second tab.
  await page.evaluate((to) => {
    const link = Object.assign(document.createElement("a"), { href: `${to}/from-the-page`, textContent: "x" });
    document.body.append(link);
    link.click();
  }, other.url);
  await page.waitForURL(`${other.url}/from-the-page`);
  const told = await page.evaluate("window.tried");
  const second = await context.newPage();
  await second.goto(`${other.url}/typed`);
  await second.evaluate("window.tried");
  await second.evaluate((url) => fetch("/more", { method: "POST", body: document.referrer + url, credentials: "include" }).then(() => {}), other.url);
  for (const [what, said] of Object.entries(told)) {
    if (what === "form") continue;
    if (what === "storage") assert.equal(said, "{}", "nothing of narrows is there");
    else assert.match(String(said), /^(refused|silent|40[13])/, `${what} of another port`);
  }
  assert.equal((await narrows.ask("/api/sessions")).sessions.length, 1, "its form made nothing");
  const names = other.got.flatMap(({ headers }) => headers.filter((_, n) => n % 2 === 0).map((name) => name.toLowerCase()));
  assert.ok(other.got.length >= 5 && names.includes("host"), "it was asked");
  assert.ok(!names.includes("cookie"), "no cookie was sent");
  assert.ok(!names.includes("authorization"), "no token was sent");

  // Whatever it received, wherever it is put, opens nothing.
  let tried = 0;
  for (const value of values(other.got)) {
    assert.ok(!value.includes("nrw_"), `it has ${value.slice(0, 12)}`);
    const plain = /^[\x21-\x7e][\x20-\x7e]*$/.test(value) ? value : encodeURIComponent(value);
    const query = encodeURIComponent(value);
    for (const [path, options] of [
      ["/api/sessions", who(plain)],
      ["/api/sessions", { headers: { cookie: `narrows=${plain}` } }],
      ["/api/sessions", { headers: { cookie: plain } }],
      [`/api/sessions/${id}/export?ticket=${query}`, {}],
      ["/api/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ticket: value }) }],
    ]) {
      const said = await status(path, options);
      assert.ok([401, 403, 429].includes(said), `${path} with ${value}: ${said}`);
      tried++;
    }
  }
  assert.ok(tried > 50, `${tried} tries`);

  // Two tabs, a reload, and a restart of the server.
  await open(page, narrows, id);
  await open(second, narrows, id);
  await openPictures(second);
  await works(second);
  await narrows.stop("SIGTERM");
  await second.getByText("Reconnecting…").waitFor();
  await narrows.start();
  await works(second);
  await second.reload();
  await second.locator(`${TRANSCRIPT} [data-item]`).first().waitFor();
  await openPictures(second);
  await works(second);

  // Whoever logs out in one tab is out in all, and the token is void.
  const out = (tab) => tab.getByRole("heading", { name: "Not logged in" }).waitFor();
  await page.bringToFront();
  await page.getByRole("button", { name: "Log out" }).click();
  await Promise.all([out(page), out(second)]);
  await until("the token to be void", async () => (await status("/api/me", who(token))) === 401);
  assert.equal(await page.evaluate("localStorage.getItem('narrows.login')"), null, "it is forgotten");

  // A login that is revoked ends while it is used.
  const { path } = await narrows.ask("/api/tickets", {});
  await page.goto(narrows.url + path);
  await page.getByRole("navigation", { name: "Sessions" }).waitFor();
  await page.reload();
  await open(page, narrows, id);
  await second.bringToFront();
  await until("the other tab to be in", async () => (await second.getByRole("heading", { name: "Not logged in" }).count()) === 0);
  const { tokens } = await narrows.ask("/api/tokens");
  const login = tokens.find(({ kind }) => kind === "browser");
  const gone = await status(`/api/tokens/${login.id}`, { method: "DELETE", ...who(narrows.token) });
  assert.equal(gone, 204);
  await Promise.all([out(page), out(second)]);
  await page.reload();
  await out(page);
}, { longest: 60_000 });

/// Opens the rows that hold pictures.
async function openPictures(page) {
  await page.locator(`${TRANSCRIPT} [data-item]`).first().waitFor();
  for (const closed of await page.locator(`${TRANSCRIPT} button[aria-expanded=false]`).all()) {
    await closed.click().catch(() => {});
  }
}
