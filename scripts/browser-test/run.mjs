// Agents run from the page: started, answered, stopped; whoever else looks sees the same.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Narrows, scripted, test, until } from "./lib/drive.mjs";
import { look } from "./lib/look.mjs";
import { TRANSCRIPT, reader } from "./lib/page.mjs";

const transcript = (page) => page.locator(TRANSCRIPT);
const box = (page) => page.getByRole("textbox", { name: "Message" });
const state = (page) => page.getByRole("region", { name: "Message the agent" }).getByRole("status");
const waiting = (page) => page.getByRole("region", { name: "Waiting for you" });
const queue = (page) => page.getByRole("list", { name: "Messages that wait for their turn" }).getByRole("listitem");

/// Starts a session by the dialog; its id.
async function begin(page, agent, message, folder) {
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("button", { name: "New session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByRole("radio", { name: agent }).check();
  if (folder !== undefined) await dialog.getByLabel("Folder").fill(folder);
  await dialog.getByLabel("First message").fill(message);
  await dialog.getByRole("button", { name: "Start" }).click();
  await dialog.waitFor({ state: "hidden" });
  await page.waitForURL(/\/s\/[a-z0-9]+$/);
  return page.url().match(/\/s\/([a-z0-9]+)$/)[1];
}

async function say(page, message) {
  await box(page).fill(message);
  await box(page).press("Enter");
  await until("the message is sent", async () => (await box(page).inputValue()) === "");
}

/// What the agent itself said: the prompts hold the same words.
const told = async (page) => (await transcript(page).locator('[data-type="text"]').allInnerTexts()).join("\n");
const shows = (page, text, patience) => until(`the agent says “${text}”`, async () => {
  const words = await told(page);
  return words.includes(text) || words;
}, patience);
const stands = (page, words) => until(`the agent: ${words}`, async () => {
  const told = await state(page).textContent();
  return told.includes(words) || told;
});

await test("run", async (test) => {
  const narrows = new Narrows(test, "--no-follow", "--allow-run", "--config", scripted(test));
  await narrows.start();
  const { page, another, complaints } = await reader(test, narrows);
  const shot = (name) => look(page, `run-${name}`, '[aria-label="Message the agent"], [aria-label="Waiting for you"], dialog');

  // What the server refuses is told in the dialog; nothing is lost.
  await page.getByRole("navigation").getByRole("button", { name: "New session" }).waitFor();
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog", { name: "New session" });
  assert.ok(await dialog.getByRole("radio", { name: /^missing/ }).isDisabled(), "what is not installed cannot be chosen");
  await dialog.getByLabel("Folder").fill("not/whole");
  await dialog.getByLabel("First message").fill("say nothing");
  await shot("new");
  await dialog.getByLabel("First message").press("Enter");
  await dialog.getByRole("alert").getByText("whole path").waitFor();
  assert.equal(await dialog.getByLabel("First message").inputValue(), "say nothing");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });

  // It streams; leave is asked for, with the command to the letter, and given by a key.
  const folder = path.join(test.folder, "work");
  fs.mkdirSync(folder);
  const first = "say Looking around\nedit note.txt a line\nask Clean up\nedit note.txt another line\nsay All done";
  const id = await begin(page, "scripted", first, folder);
  await shows(page, "Looking around");
  const card = waiting(page).getByRole("region", { name: "The agent asks for permission" });
  await card.getByText("echo Clean up").waitFor();
  await stands(page, "Waiting for you");
  await card.getByRole("button", { name: "Allow once" }).and(page.locator(":enabled")).waitFor();
  await shot("permission");

  // In the box a digit is a digit.
  await box(page).focus();
  await page.keyboard.press("1");
  assert.equal(await box(page).inputValue(), "1");
  assert.ok(await card.isVisible());

  // Reloaded in the middle, it is all the same; but for the draft, which was only this page's.
  await page.reload();
  await card.getByRole("button", { name: "Allow once" }).and(page.locator(":enabled")).waitFor();
  await stands(page, "Waiting for you");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("1");
  await waiting(page).waitFor({ state: "hidden" });
  await shows(page, "All done");
  await stands(page, "Idle");
  assert.equal(fs.readFileSync(path.join(folder, "note.txt"), "utf8").trim(), "another line");
  await transcript(page).getByRole("button", { name: /note\.txt/ }).last().click();
  await transcript(page).locator("table, [class*=diff]").getByText("another line").first().waitFor();

  // A second message waits for its turn, a third is taken back.
  await say(page, "say one is under way\nask Go on\nsay one is over");
  await stands(page, "Waiting for you");
  // It is seen while the turn goes on; the last word may be held back until it is known to be clean.
  await shows(page, "one is under");
  assert.ok(!(await told(page)).includes("one is over"), "the turn is not over yet");
  await say(page, "say two is said");
  await say(page, "say three is said");
  await until("two wait", async () => (await queue(page).count()) === 2);
  await shot("queue");
  await queue(page).nth(1).getByRole("button", { name: "Take back" }).click();
  await until("one waits", async () => (await queue(page).count()) === 1);
  assert.equal(await box(page).inputValue(), "say three is said", "what is taken back can be mended");
  await box(page).fill("");
  await waiting(page).getByRole("button", { name: "Allow once" }).and(page.locator(":enabled")).click();
  await shows(page, "two is said");
  await stands(page, "Idle");
  assert.equal(await queue(page).count(), 0);
  assert.ok(!(await transcript(page).innerText()).includes("three is said"), "what was taken back was not sent");

  // A turn is stopped; the agent stays.
  await say(page, "say this is long\nwait 60000\nsay never");
  await shows(page, "this is");
  await shot("streaming");
  await page.getByRole("button", { name: "Stop" }).click();
  await stands(page, "Idle");
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });

  // What waits behind a turn that is stopped does not begin by itself.
  await say(page, "say again long\nwait 60000\nsay never");
  await shows(page, "again");
  await say(page, "say held back");
  await until("one waits", async () => (await queue(page).count()) === 1);
  await page.getByRole("button", { name: "Stop" }).click();
  await stands(page, "Idle");
  await page.getByText("Not sent, since the agent was stopped").waitFor();
  assert.equal(await queue(page).count(), 1);
  await shot("held");
  await page.getByRole("button", { name: "Send now" }).click();
  await shows(page, "held back");
  await stands(page, "Idle");
  assert.equal(await queue(page).count(), 0);

  // How it is set.
  await page.getByRole("combobox", { name: "Mode", exact: true }).selectOption("plan");
  await until("the mode", async () => (await narrows.ask(`/api/sessions/${id}/run`)).mode === "plan");

  // A picture is pasted, seen, and goes along.
  await box(page).evaluate(async (element) => {
    const canvas = new OffscreenCanvas(1400, 1100);
    const context = canvas.getContext("2d");
    const noise = context.createImageData(1400, 1100);
    for (let at = 0; at < noise.data.length; at++) noise.data[at] = at % 4 === 3 ? 255 : (at * 7919) % 251;
    context.putImageData(noise, 0, 0);
    const file = new File([await canvas.convertToBlob()], "noise.png", { type: "image/png" });
    const data = new DataTransfer();
    data.items.add(file);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await page.getByRole("img", { name: "noise.png" }).waitFor();
  await shot("picture");
  await say(page, "say seen");
  await shows(page, "image image/");
  await stands(page, "Idle");

  // Who comes late sees who was faster.
  await say(page, "ask Who is first\nsay somebody was");
  const other = await another();
  await other.goto(`${narrows.url}/s/${id}`);
  await waiting(page).getByRole("button", { name: "Reject", exact: false }).first().and(page.locator(":enabled")).waitFor();
  await waiting(other).getByRole("button", { name: "Allow once" }).click();
  await waiting(page).waitFor({ state: "hidden" });
  await page.getByText("It was answered elsewhere").waitFor();
  await shows(page, "somebody was");
  await stands(other, "Idle");

  // An answer that comes too late is told so: the news is kept from this page.
  await say(page, "ask Too late\nsay later");
  await waiting(page).getByRole("button", { name: "Allow once" }).and(page.locator(":enabled")).waitFor();
  await page.route(/\/permissions\//, (route) => route.fulfill({
    status: 409,
    contentType: "application/json",
    body: JSON.stringify({ error: { code: "ALREADY_ANSWERED", message: "somebody has answered this before" } }),
  }));
  await waiting(page).getByRole("button", { name: "Allow once" }).click();
  await waiting(page).getByRole("alert").getByText("Somebody has answered this before").waitFor();
  assert.ok(await waiting(page).getByRole("button", { name: "Allow once" }).isDisabled());
  await page.unroute(/\/permissions\//);
  complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes("409")));
  await waiting(other).getByRole("button", { name: "Allow once" }).click();
  await waiting(page).waitFor({ state: "hidden" });
  await shows(page, "later");

  // A question of the other kind of agent: by a click, then in own words.
  await begin(page, "asker", "question Which colour?|Red|Blue\nsay painted", "");
  await waiting(page).getByText("Which colour?").first().waitFor();
  await shot("question");
  await waiting(page).getByRole("button", { name: "Blue" }).click();
  await waiting(page).waitFor({ state: "hidden" });
  await shows(page, "painted");
  await say(page, "question Which town?|Rome|Oslo\nsay arrived");
  await waiting(page).getByRole("textbox", { name: "Another answer" }).fill("Lima");
  await waiting(page).getByRole("button", { name: "Send the answer" }).click();
  await waiting(page).waitFor({ state: "hidden" });
  await shows(page, "Lima");
  await shows(page, "arrived");

  // A form: what does not fit is said, and can be mended.
  const place = { type: "string", title: "Place", oneOf: [{ const: "eu-1", title: "Europe" }, { const: "us-1", title: "America", description: "Farther away" }] };
  const nodes = { type: "integer", title: "Nodes", maximum: 9, default: 3 };
  const fields = { place, nodes, fast: { type: "boolean", title: "Fast disks" } };
  const requestedSchema = { type: "object", required: ["place"], properties: fields };
  await begin(page, "scripted", `elicit ${JSON.stringify({ mode: "form", message: "Where shall it run?", requestedSchema })}`, "");
  await waiting(page).getByLabel("America").check();
  await waiting(page).getByRole("spinbutton").fill("99");
  await waiting(page).getByRole("button", { name: "Send the answers" }).click();
  await waiting(page).getByRole("alert").getByText("at most 9").waitFor();
  await shot("form");
  await waiting(page).getByRole("spinbutton").fill("9");
  await waiting(page).getByRole("button", { name: "Send the answers" }).click();
  await waiting(page).waitFor({ state: "hidden" });
  await shows(page, '"place":"us-1"');
  const visit = { mode: "url", message: "Log in there:", elicitationId: "e", url: "https://example.com/login" };
  await say(page, `elicit ${JSON.stringify(visit)}`);
  await waiting(page).getByRole("link", { name: "example.com/login" }).waitFor();
  await shot("visit");
  await waiting(page).getByRole("button", { name: "Do not answer" }).click();
  await shows(page, "decline");
  await page.goBack();
  await page.getByText("Lima").first().waitFor();

  // An agent that ends by itself says why, and starts again with a message.
  await say(page, "stderr out of luck\nexit 3");
  await page.getByRole("alert").getByText("out of luck").waitFor();
  await stands(page, "Ended");
  await shot("failed");
  await say(page, "say back again");
  await shows(page, "back again");
  await stands(page, "Idle");

  // The server ends while leave is asked for: nobody can give it any more.
  await other.close();
  await page.goto(`${narrows.url}/s/${id}`);
  await say(page, "ask The last one\nsay no");
  await waiting(page).getByRole("button", { name: "Allow once" }).waitFor();
  await narrows.stop("SIGTERM");
  complaints.length = 0;
  await narrows.start();
  await waiting(page).waitFor({ state: "hidden" });
  await stands(page, "A message starts it again");
  await shot("ended");
  complaints.splice(0, complaints.length, ...complaints.filter((text) => !/ERR_|WebSocket/.test(text)));
  await say(page, "say as before");
  await shows(page, "as before");
  await stands(page, "Idle");
  assert.deepEqual(complaints, [], "nothing in the console");
}, { longest: 240_000 });
