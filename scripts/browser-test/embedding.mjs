// The example of docs/embedding, served by another origin, follows a session over two restarts.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, browser, origin, packets, root, test, until } from "./lib/drive.mjs";

const example = path.join(root, "docs/embedding");

await test("embedding", async (test) => {
  const script = fs.readFileSync(path.join(example, "follow.js"), "utf8");
  assert.ok(script.split("\n").length <= 31, "the example has at most 30 lines");
  const guide = fs.readFileSync(path.join(root, "docs/embedding.md"), "utf8");
  assert.ok(guide.includes(`\`\`\`js\n${script}\`\`\`\n`), "embedding.md shows the example as it is");

  const [product, stranger] = [await origin(test, example), await origin(test, example)];
  const narrows = new Narrows(test, "--allow-origin", product);
  await narrows.start();
  const { id } = await narrows.ask("/api/sessions", { label: "order-17" });
  const rights = { name: "page", scopes: ["read"], sessions: [id], ttlSeconds: 60 };
  const { token } = await narrows.ask("/api/tokens", rights);
  const lines = packets();

  const { context, complaints } = await browser(test, "profile");
  const page = await context.newPage();
  const asked = [];
  page.on("request", (request) => {
    if (request.url().includes("/events")) asked.push(request.headers()["last-event-id"] ?? "");
  });
  const where = `index.html#narrows=${narrows.url}&session=${id}&token=${token}`;
  await page.goto(`${product}/${where}`);

  const shown = () => page.locator("#items li").allTextContents();
  const stored = async () => {
    const { items } = await narrows.ask(`/api/sessions/${id}/items?preview=0`);
    return items.map(({ toolCall: call, ...item }) =>
      call ? `${call.description} [${call.status}]\n${call.rawOutput ?? ""}` : (item.content ?? item.text),
    );
  };
  const same = (what) =>
    until(what, async () => {
      const [page, items] = [await shown(), await stored()];
      const equal = items.length > 0 && JSON.stringify(page) === JSON.stringify(items);
      return equal || `page:  ${JSON.stringify(page)}\nitems: ${JSON.stringify(items)}`;
    });
  /// Narrows ends, and a new one begins at the same address.
  const cuts = [];
  const restart = async (signal) => {
    cuts.push((await narrows.ask(`/api/sessions/${id}`)).cursor);
    // The page notices that nobody is there.
    const away = page.waitForEvent("requestfailed", (request) => request.url().startsWith(narrows.url));
    await narrows.stop(signal);
    await away;
    await narrows.start();
  };
  const acknowledged = async () => (await narrows.ask(`/api/sessions/${id}/packets`)).sources[0].acknowledged;
  const send = async (to, more) => narrows.send(id, lines.slice(0, to), (await acknowledged()) + 1, more);

  await narrows.send(id, lines.slice(0, 7), 1);
  await same("the first packets");
  await send(20);
  await same("more packets");
  assert.deepEqual(complaints, [], "nothing to complain about so far");
  assert.deepEqual(asked, [""], "one request, from the start");

  await restart("SIGTERM");
  await send(36); // ends within a text
  await same("packets after a restart");
  await restart("SIGKILL");
  await send(lines.length, "&end=true");
  await same("packets after a crash");
  assert.ok((await shown()).length >= 8, "the whole session is there");

  assert.deepEqual([...new Set(asked)], ["", ...cuts], "it goes on exactly where it was cut off");
  const expected = /^Failed to load resource: net::ERR_(CONNECTION_(REFUSED|RESET)|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE)/;
  assert.deepEqual(complaints.filter((c) => !expected.test(c)), [], "only failed requests while narrows was away");

  // The same page and token, but an origin that is not allowed.
  const other = await context.newPage();
  let [refused, answered] = [0, 0];
  other.on("requestfailed", () => (refused += 1));
  other.on("response", (response) => (answered += response.url().startsWith(narrows.url) && response.ok() ? 1 : 0));
  await other.goto(`${stranger}/${where}`);
  await until("the stranger's requests to fail", () => refused >= 2);
  assert.equal(answered, 0, "it is told nothing");
  assert.equal(await other.locator("#items li").count(), 0, "it shows nothing");
  const tries = await other.evaluate(async ([url, session, token]) => {
    const headers = { authorization: `Bearer ${token}` };
    const tried = (promise) => promise.then(() => "read", () => "refused");
    const socket = new WebSocket(`${url.replace("http", "ws")}/api/ws`, ["narrows", `bearer.${token}`]);
    return Promise.all([
      tried(fetch(`${url}/api/sessions/${session}/items`, { headers })),
      tried(fetch(`${url}/healthz`)),
      tried(fetch(`${url}/healthz`, { mode: "no-cors" })),
      tried(new Promise((open, failed) => ((socket.onopen = open), (socket.onerror = failed)))),
    ]);
  }, [narrows.url, id, token]);
  assert.deepEqual(tries, ["refused", "refused", "refused", "refused"], "nothing else is read either");
});
