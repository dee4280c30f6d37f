/** Marks the list of sessions, and of what a search found. */
export const LIST = "data-list";

/** Keys that move in the list. */
export const STEPS: Record<string, 1 | -1> = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 };

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
