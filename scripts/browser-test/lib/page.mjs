// What the tests of narrows' own page share: sessions that are told piece by piece, and what a page says.
import fs from "node:fs";
import path from "node:path";
import { browser, root } from "./drive.mjs";

export const TRANSCRIPT = '[data-testid="transcript"]';

/// The packets of a recorded session, told as if it happened now: one of yesterday is not at work any more.
export function recorded(format, name) {
  const file = path.join(root, "crates/narrows/tests/fixtures", format, name, "input.jsonl");
  const text = fs.readFileSync(file, "utf8").trimEnd();
  const times = text.match(TIME) ?? [];
  const later = times.length ? Date.now() - Math.max(...times.map((time) => Date.parse(time))) : 0;
  return text.replace(TIME, (time) => new Date(Date.parse(time) + later).toISOString()).split("\n");
}

const TIME = /\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\b/g;

/// A browser that is let in, with a page.
export async function reader(test, narrows, { width = 1440, height = 900, init, ...more } = {}) {
  const { context, complaints } = await browser(test, "reader", more);
  if (init) await context.addInitScript(init);
  const page = context.pages()[0] ?? (await context.newPage());
  await page.setViewportSize({ width, height });
  await page.goto(narrows.ticket);
  await page.getByRole("navigation", { name: "Sessions" }).waitFor();
  const another = async () => {
    const page = await context.newPage();
    await page.setViewportSize({ width, height });
    return page;
  };
  return { context, complaints, page, another };
}

/// Opens a session in a page that is open, as a click in the list does.
export async function visit(page, id) {
  await page.bringToFront();
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, `/s/${id}`);
  await page.locator(`${TRANSCRIPT}, main > h1, main h2`).first().waitFor();
}

/// Opens a session, or a place in it, as a link does.
export async function open(page, narrows, id, more = "") {
  // A page behind another one is drawn once a second.
  await page.bringToFront();
  await page.goto(`${narrows.url}/s/${id}${more}`);
  await page.locator(`${TRANSCRIPT}, main > h1, main h2`).first().waitFor();
}

/// Sends packets in small pieces, those after a place.
export async function stream(narrows, id, lines, { after = 0, to = lines.length, pieces = [1], pause = 8 }) {
  for (let at = after, n = 0; at < to; n++) {
    const next = Math.min(to, at + pieces[n % pieces.length]);
    await narrows.send(id, lines.slice(0, next), at + 1);
    at = next;
    await new Promise((go) => setTimeout(go, pause));
  }
}

/// In the page: the rows that are there, by their keys, without names that React counts up.
function rowsOf(root) {
  const own = ["id", "aria-controls", "aria-labelledby", "aria-describedby"];
  return [...root.querySelectorAll("[data-row]")].map((row) => {
    const copy = row.cloneNode(true);
    for (const element of [copy, ...copy.querySelectorAll("*")]) {
      for (const name of own) element.removeAttribute(name);
      // The colours of code come when there is time.
      if (element.className?.startsWith?.("tok-")) element.replaceWith(...element.childNodes);
    }
    copy.normalize();
    return [row.getAttribute("data-row"), copy.outerHTML];
  });
}

const header = (page) => page.locator("main header").first().evaluate((header) => {
  return [...header.querySelectorAll("h1, p")].map((part) => part.textContent).join("\n");
});

/// Everything that a page says of a session, as far as it is on the screen.
export async function said(page) {
  await page.bringToFront();
  const transcript = page.locator(TRANSCRIPT);
  const [text, aria] = [await transcript.innerText(), await transcript.ariaSnapshot()];
  const rows = await transcript.evaluate(rowsOf);
  return { header: await header(page), text, aria, rows: rows.map(([, row]) => row).join("\n") };
}

/// Everything that a page says of a session, read from its first item to its last row.
export async function read(page, first) {
  const walk = async (root, rowsOf, first) => {
    const frames = (n) => new Promise((done) => requestAnimationFrame(() => done(n > 1 ? frames(n - 1) : 0)));
    const to = (place) => {
      // Only a reader's own scrolling lets go of the end.
      root.dispatchEvent(new WheelEvent("wheel"));
      root.scrollTop = place;
    };
    const end = performance.now() + 30_000;
    while (!root.querySelector(`[data-item="${first}"]`)) {
      if (performance.now() > end) return ["the first item did not come"];
      to(0);
      await frames(1);
    }
    to(0);
    const found = new Map();
    for (let last = -1; root.scrollTop !== last; ) {
      last = root.scrollTop;
      await frames(2);
      for (const [key, row] of rowsOf(root)) found.set(key, row);
      to(root.scrollTop + root.clientHeight / 2);
    }
    return [...found.values()];
  };
  await page.bringToFront();
  const root = `document.querySelector(${JSON.stringify(TRANSCRIPT)})`;
  const rows = await page.evaluate(`(${walk})(${root}, ${rowsOf}, ${JSON.stringify(first)})`);
  return { header: await header(page), rows: rows.join("\n") };
}

/// Where two pages say different things; nothing if they do not.
export function difference(one, other) {
  for (const part of ["header", "text", "aria", "rows"]) {
    if (one[part] === other[part]) continue;
    const a = one[part].split("\n");
    const b = other[part].split("\n");
    const at = a.findIndex((line, n) => line !== b[n]);
    const n = at < 0 ? a.length : at;
    const line = (of) => (of[n] ?? "(the end)").slice(0, 2000);
    return `${part}, line ${n + 1}:\n  ${line(a)}\n  ${line(b)}`;
  }
  return null;
}

/// Opens whatever can be opened in a transcript: steps, cards, subagents; not what makes a long text longer.
export async function openAll(page, but = "Show (all|whole|\\d)") {
  await page.bringToFront();
  await page.locator(TRANSCRIPT).evaluate(async (root, but) => {
    let quiet = 0;
    while (quiet < 4) {
      const closed = [...root.querySelectorAll('button[aria-expanded="false"]')].filter((button) => {
        return !new RegExp(but).test(button.textContent);
      });
      for (const button of closed) button.click();
      const busy = closed.length || root.querySelector('[aria-busy="true"]');
      quiet = busy ? 0 : quiet + 1;
      await new Promise((done) => setTimeout(done, 20));
    }
  }, but);
}

/// Notes after every frame that is drawn where a row is, and how far the end is, until it is asked.
export async function watch(page, key) {
  await page.evaluate(([transcript, key]) => {
    const root = document.querySelector(transcript);
    const selector = key && `[data-row="${CSS.escape(key)}"]`;
    const notes = [];
    let over = false;
    const channel = new MessageChannel();
    const drawn = () => channel.port2.postMessage(0);
    channel.port1.onmessage = () => {
      if (over) return;
      const top = selector && root.querySelector(selector)?.getBoundingClientRect().top;
      notes.push({ top, left: root.scrollHeight - root.scrollTop - root.clientHeight });
      requestAnimationFrame(drawn);
    };
    requestAnimationFrame(drawn);
    window.watched = async () => {
      // What was just done is drawn first.
      const enough = notes.length + 4;
      while (notes.length < enough) await new Promise((go) => setTimeout(go, 10));
      over = true;
      return notes;
    };
  }, [TRANSCRIPT, key]);
  return () => page.evaluate(() => window.watched());
}

/// Tells how what was watched moved; nothing if it did not.
export function moved(notes) {
  const tops = notes.map((note) => note.top ?? Number.NaN);
  const by = Math.max(...tops) - Math.min(...tops);
  return by <= 2 ? null : `it moved by ${by} px: ${[...new Set(tops)].slice(0, 12).join(", ")}`;
}

/// The key of the row nearest to a part of the height of the window.
export function rowAt(page, part) {
  return page.locator(TRANSCRIPT).evaluate((root, part) => {
    const box = root.getBoundingClientRect();
    const goal = box.top + box.height * part;
    const far = (row) => Math.abs(row.getBoundingClientRect().top - goal);
    const rows = [...root.querySelectorAll("[data-row]")];
    return rows.reduce((a, b) => (far(b) < far(a) ? b : a)).getAttribute("data-row");
  }, part);
}

/// Whether nothing scrolls any more.
export function isStill(page) {
  return page.locator(TRANSCRIPT).evaluate(async (root) => {
    const top = root.scrollTop;
    for (let n = 0; n < 4; n++) await new Promise(requestAnimationFrame);
    return root.scrollTop === top;
  });
}
