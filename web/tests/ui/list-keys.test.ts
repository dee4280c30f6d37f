import { afterEach, expect, test, vi } from "vitest";
import { edgeOfList, LIST } from "../../src/ui/list-keys";

const ROWS = 100;
const DRAWN = 5;
const HEIGHT = 40;

/** A list that draws only what is in sight, in the frame after it was moved. */
function list(): HTMLElement {
  document.body.innerHTML = `<nav ${LIST}=""><div id="box" style="overflow-y: auto"></div></nav>`;
  const box = document.getElementById("box") as HTMLElement;
  let top = 0;
  const draw = () => {
    const first = Math.round(top / HEIGHT);
    box.replaceChildren(
      ...Array.from({ length: DRAWN }, (_, n) => {
        const row = document.createElement("a");
        row.href = `/s/${first + n}`;
        row.textContent = String(first + n);
        return row;
      }),
    );
  };
  Object.defineProperties(box, {
    clientHeight: { value: DRAWN * HEIGHT },
    scrollHeight: { value: ROWS * HEIGHT },
    scrollTop: {
      get: () => top,
      set: (to: number) => {
        const next = Math.max(0, Math.min(to, (ROWS - DRAWN) * HEIGHT));
        if (next === top) return;
        top = next;
        requestAnimationFrame(draw);
      },
    },
  });
  draw();
  return box;
}

const focused = () => document.activeElement?.textContent;

afterEach(() => {
  document.body.innerHTML = "";
});

test("End and Home take the focus to rows that are not drawn yet", async () => {
  const box = list();
  box.querySelectorAll("a")[2]?.focus();
  expect(edgeOfList(1)).toBe(true);
  await vi.waitFor(() => expect(focused()).toBe("99"));
  expect(edgeOfList(-1)).toBe(true);
  await vi.waitFor(() => expect(focused()).toBe("0"));
});

test("whoever goes elsewhere meanwhile stays there", async () => {
  const box = list();
  const field = document.body.appendChild(document.createElement("input"));
  box.querySelectorAll("a")[2]?.focus();
  edgeOfList(1);
  field.focus();
  await vi.waitFor(() => expect(box.lastElementChild?.textContent).toBe("99"));
  await new Promise((next) => requestAnimationFrame(next));
  expect(document.activeElement).toBe(field);
});

test("a list without rows has no edge", () => {
  document.body.innerHTML = `<nav ${LIST}=""></nav>`;
  expect(edgeOfList(1)).toBe(false);
});
