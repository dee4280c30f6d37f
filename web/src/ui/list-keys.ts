/** Marks the list of sessions, and of what a search found. */
export const LIST = "data-list";

/** Keys that move in the list. */
export const STEPS: Record<string, 1 | -1> = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 };

/** Keys that go to an end of the list. */
export const EDGES: Record<string, 1 | -1> = { End: 1, Home: -1 };

/** Frames in which an end of the list may still move, and how many it has to stay. */
const FRAMES = 30;
const STILL = 3;

function links(): HTMLAnchorElement[] {
  return [...document.querySelectorAll<HTMLAnchorElement>(`[${LIST}] a[href]`)];
}

/** Whether something is a row of the list. */
export function inList(target: EventTarget): boolean {
  return target instanceof HTMLElement && !!target.closest(`[${LIST}] a[href]`);
}

/** The first thing that a search found, once it is there. */
export function firstFound(query: string): HTMLAnchorElement | null {
  const results = document.querySelector<HTMLElement>(`[${LIST}] [data-query]`);
  return results?.dataset.query === query ? results.querySelector("a[href]") : null;
}

/** Whether no row is above this one, but perhaps a heading: a list that draws only what is in sight may have more. */
export function isTop(target: EventTarget): boolean {
  const row = links()[0];
  if (!row || row !== target) return false;
  const { top, height } = row.getBoundingClientRect();
  for (let box = row.parentElement; box; box = box.parentElement) {
    if (box.scrollTop > 0 && top - box.getBoundingClientRect().top + box.scrollTop >= height) return false;
  }
  return true;
}

/**
 * Goes to the next row of the list, or the one before it: from the row that has the focus, else from
 * the session that is on the screen. False where there is none.
 */
export function stepInList(by: 1 | -1): boolean {
  const rows = links();
  const at = rows.indexOf(document.activeElement as HTMLAnchorElement);
  const chosen = rows.findIndex((row) => row.getAttribute("aria-current") === "page");
  const next = at >= 0 ? rows[at + by] : (rows[chosen] ?? rows[0]);
  if (!next) return false;
  next.focus();
  // A list that draws only what is in sight goes along.
  next.scrollIntoView?.({ block: "nearest" });
  return true;
}

/** The box that scrolls a row; none where all rows are in sight. */
function boxOf(row: HTMLElement): HTMLElement | null {
  for (let box = row.parentElement; box; box = box.parentElement) {
    if (box.scrollHeight > box.clientHeight && /auto|scroll/.test(getComputedStyle(box).overflowY))
      return box;
  }
  return null;
}

/**
 * Goes to the last row of the list, or the first. A list that draws only what is in sight removes the row
 * that has the focus and draws the last one some frames later: the focus follows it, unless somebody has
 * moved it. False where there is no row.
 */
export function edgeOfList(by: 1 | -1): boolean {
  const found = () => (by > 0 ? links().at(-1) : links()[0]);
  let row = found();
  if (!row) return false;
  const box = boxOf(row);
  let still = 0;
  const go = (frames: number) => {
    if (box) box.scrollTop = by > 0 ? box.scrollHeight : 0;
    const now = found();
    still = now === row ? still + 1 : 0;
    row = now ?? row;
    row?.focus({ preventScroll: true });
    if (!box) row?.scrollIntoView?.({ block: "nearest" });
    if (!frames || still > STILL) return;
    requestAnimationFrame(() => {
      // The focus falls to the body when its row is removed.
      const active = document.activeElement;
      if (active === row || active === document.body || !active) go(frames - 1);
    });
  };
  go(FRAMES);
  return true;
}
