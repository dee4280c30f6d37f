// Looks at a state of the page by day and by night, wide and on a phone.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { root } from "./drive.mjs";

const axe = fs.readFileSync(path.join(root, "scripts/browser-test/node_modules/axe-core/axe.min.js"), "utf8");
const shots = path.join(root, "target/browser-test");

/// What axe finds grave.
async function grave(page) {
  if (!(await page.evaluate("typeof axe === 'object'"))) await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"], elementRef: false });
    const found = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return found.map(({ id, help, nodes }) => `${id} (${help}): ${nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join("\n")}`);
  });
}

/// What a thumb misses, and what is wider than the screen.
function misfits(within) {
  const told = [];
  for (const element of document.querySelectorAll(`:is(${within}) :is(button, select, textarea, input:not([type=radio], [type=checkbox]))`)) {
    const { width, height, right } = element.getBoundingClientRect();
    if (!width || !height) continue;
    // Within a diff, lower ones: they are seldom wanted.
    if (height < (element.closest("figure, [class*=diff]") ? 32 : 44)) told.push(`${Math.round(height)} px: ${element.outerHTML.slice(0, 160)}`);
    if (right > innerWidth + 1) told.push(`too wide: ${element.outerHTML.slice(0, 160)}`);
  }
  if (document.scrollingElement.scrollWidth > innerWidth) told.push(`the page: ${document.scrollingElement.scrollWidth}`);
  return told;
}

/// Shows or hides the list, also behind a dialog.
const list = (page) => page.evaluate(() => void dispatchEvent(new KeyboardEvent("keydown", { key: "[" })));

/// Takes pictures of a state and fails for what is not fit for people.
export async function look(page, name, within) {
  fs.mkdirSync(shots, { recursive: true });
  const before = page.viewportSize();
  for (const [width, height] of [[before.width, before.height], [390, 844]]) {
    await page.setViewportSize({ width, height });
    // The list is a sheet there.
    if (width < 500) await list(page);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: path.join(shots, `${name}-${colorScheme}-${width}.png`) });
      assert.deepEqual(await grave(page), [], `${name}, ${colorScheme}, ${width}: axe`);
    }
    if (width < 500) assert.deepEqual(await page.evaluate(misfits, within), [], `${name}: on a phone`);
  }
  await list(page);
  await page.setViewportSize(before);
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "no-preference" });
}
