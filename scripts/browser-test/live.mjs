// A page that watches a session from its first packet on says in the end what a page says that loads it.
import assert from "node:assert/strict";
import { Narrows, test, until } from "./lib/drive.mjs";
import { long } from "./lib/long.mjs";
import { Acp } from "./lib/made.mjs";
import { TRANSCRIPT, difference, open, openAll, reader, recorded, said, stream, visit } from "./lib/page.mjs";

const RECORDED = [
  ["acp", "opencode-1.18-b-thinking"], ["acp", "opencode-1.18-c-files"], ["claude-stream", "2.1-n-partial"],
  ["claude-stream", "2.1-g-subagent"], ["claude-stream", "made-subagents-at-once"],
  ["claude-stream", "2.1-f-todos"], ["acp", "opencode-1.18-h-permission-reject"],
  ["claude-stream", "2.1-i-error-500-final"], ["acp", "opencode-1.18-d-bash"],
  ["acp", "opencode-1.18-a-ansi-bash"], ["made", "long texts and a call that is not there"],
];

/// Texts that a page of items brings cut, and a subagent whose call is not in the session.
function made() {
  const lines = (n) => Array.from({ length: n }, (_, i) => `${i} ${"of what there is to say 日本 ".repeat(12)}`).join("\n");
  return new Acp({})
    .prompt(lines(25))
    .calls("sub-1", { title: "bash", kind: "execute", input: { command: "ls", a: 1 }, output: "here", parent: "nowhere" })
    .says("The subagent says this.", "nowhere")
    .calls("odd", { title: "sound", kind: "other", input: { zebra: lines(14), apple: 1, inner: { z: 1, b: 2 } }, output: "ok" })
    .says(lines(15))
    .done().lines;
}

await test("live", async (test) => {
  const narrows = new Narrows(test);
  await narrows.start();
  // As high as the longest of them: rows that are out of sight are not there.
  const { page: early, another, complaints } = await reader(test, narrows, { width: 1000, height: 5000 });
  const middle = await another();
  await middle.goto(narrows.url);
  const late = await another();

  for (const [format, name] of RECORDED) {
    const lines = format === "made" ? made() : recorded(format, name);
    const { id } = await narrows.ask("/api/sessions", { label: name });
    const tell = (after, to) => stream(narrows, id, lines, { after, to, pieces: [1, 2, 1, 3] });
    await visit(early, id);
    let at = 0;
    const upTo = async (place) => {
      await tell(at, place);
      at = place;
    };
    const asked = lines.findIndex((line) => line.includes('"session/prompt"'));
    if (asked >= 0) {
      await upTo(asked + 1);
      await early.getByText("Working…").waitFor();
      assert.equal(await early.locator('[data-type="text"]').count(), 0, "nothing was said yet");
    }
    const thought = lines.findIndex((line) => /agent_thought_chunk|thinking_delta/.test(line));
    if (thought >= 0) {
      await upTo(thought + 5);
      const thinking = early.getByRole("button", { name: "Thinking…" });
      await thinking.waitFor();
      assert.equal(await thinking.getAttribute("aria-expanded"), "true", "a thought is open while it comes");
    }
    await upTo(Math.max(at, lines.length >> 1));
    await visit(middle, id);
    // Somebody opens cards while they change.
    const opening = openAll(middle);
    const permission = lines.findIndex((line) => line.includes('"session/request_permission"'));
    if (permission >= at) {
      await upTo(permission + 1);
      const waiting = early.getByRole("region", { name: "Waiting for you" });
      await waiting.waitFor();
      await upTo(permission + 2);
      await waiting.waitFor({ state: "hidden" });
    }
    await upTo(lines.length);
    await opening;

    await open(late, narrows, id);
    const same = (what, page, before = () => {}) => until(`${name}: the same ${what}`, async () => {
      // What is below something that was opened may come late, and closed.
      for (const one of [page, late]) await before(one);
      return difference(await said(page), await said(late)) ?? true;
    });
    await same("folded", early);
    await same("opened", early, openAll);
    await same("opened, from the middle on", middle, openAll);
    assert.ok((await late.locator(`${TRANSCRIPT} [data-row]`).count()) > 1, `${name}: there is something`);
  }

  await jumping(narrows, await another(), late);
  assert.deepEqual(complaints, [], "nothing in the console");
}, { longest: 240_000 });

/// Somebody jumps about while a text grows, and what is pushed is late: what is fetched knows more than that.
async function jumping(narrows, page, fresh) {
  const { id } = await narrows.ask("/api/sessions", { label: "jumping" });
  const lines = [...long(24)];
  await narrows.send(id, lines, 1);
  await page.routeWebSocket(/\/api\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => setTimeout(() => socket.send(message), 300));
  });
  // So low that the first turns are not loaded.
  for (const each of [page, fresh]) await each.setViewportSize({ width: 1000, height: 800 });
  await open(page, narrows, id);
  const words = [];
  let jumps = 0;
  const growing = (async () => {
    while (jumps < 2 || words.length < 60) {
      words.push(`w-${words.length}`);
      const content = { type: "text", text: `${words.at(-1)} ` };
      const params = { sessionId: "long", update: { sessionUpdate: "agent_message_chunk", content } };
      lines.push(JSON.stringify({ jsonrpc: "2.0", method: "session/update", params }));
      await narrows.send(id, lines, lines.length);
      await new Promise((go) => setTimeout(go, 20));
    }
  })();
  for (; jumps < 2; jumps++) {
    await page.getByRole("button", { name: "Turns, files and todos" }).click();
    await page.getByRole("button", { name: `Turn ${jumps + 1}: ` }).click();
    await page.getByRole("button", { name: "Jump to latest" }).click();
    await page.getByText("w-0 ").waitFor();
  }
  await growing;
  await open(fresh, narrows, id);
  await until("the same after jumps", async () => difference(await said(page), await said(fresh)) ?? true);
  const text = await page.locator(TRANSCRIPT).innerText();
  assert.deepEqual(text.match(/\bw-\d+/g), words, "each word once");
}
