import { rangesOf, termsOf } from "./marks";

/** An item to go to, and what was looked for in it. */
export interface Target {
  /** The item; then, if it is a subagent's, the call it is below, and so on. The last is a row. */
  chain: readonly string[];
  /** The place of the row. */
  order: number;
  query: string;
}

const PAUSE = 50;
const LONGEST = 8000;
/** So long after the last change, everything has its place. */
const STEADY = 4;
/** An item that says the same as its call is shown by the call alone. */
const MISSING = 16;
/** Things in an item that are opened at most to find the words. */
const OPENED = 6;
/** What may cover the edges: the header of a card above, the button to the end below. */
const HEAD = 56;
const FOOT = 64;

export interface Steps {
  /** Brings the row of the item into sight, as far as its place is known. */
  near(): void;
  /** The item is on the page. */
  found(item: HTMLElement): void;
  /** Nothing moves any more, or somebody else moves it. */
  ended(): void;
}

/**
 * Brings an item into sight, and in it the words that were looked for: what is closed in it is
 * opened until they show. Texts and rows come one after the other, so this goes on until nothing
 * moves any more, or until the reader does something. The answer ends it.
 */
export function arrive(scroller: HTMLElement, target: Target, steps: Steps): () => void {
  const terms = termsOf(target.query);
  const began = performance.now();
  let [missed, opened, steady] = [0, 0, 0];
  let known: HTMLElement | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const events = ["wheel", "touchmove", "pointerdown", "keydown"];
  const stop = () => {
    clearTimeout(timer);
    for (const name of events) window.removeEventListener(name, stop, true);
    steps.ended();
  };
  const look = () => {
    const element = innermost(scroller, missed < MISSING ? target.chain.slice(0, 1) : target.chain);
    // Rows that were measured since may have pushed it away.
    if (!element && ++missed % 4 === 0) steps.near();
    if (element && element !== known) steps.found(element);
    known = element ?? known;
    const goal = element && (rangesOf(element, terms, 1)[0] ?? closed(element));
    if (goal) {
      if (bring(scroller, goal)) steady = 0;
      else steady++;
    }
    if (steady >= STEADY || performance.now() - began > LONGEST) stop();
    else timer = setTimeout(look, PAUSE);
  };
  /** Without the words: something is opened, and then the item itself is the goal. */
  const closed = (element: HTMLElement): HTMLElement => {
    const busy = element.querySelector('[aria-busy="true"]');
    const button = terms.length && !busy && opened < OPENED ? closedIn(element) : undefined;
    if (button || busy) steady = -1;
    if (button) {
      opened++;
      button.click();
    }
    return element;
  };
  for (const name of events) window.addEventListener(name, stop, { capture: true, passive: true });
  timer = setTimeout(look);
  return stop;
}

/** The element of the first of these that is on the page. */
function innermost(root: HTMLElement, chain: readonly string[]): HTMLElement | undefined {
  for (const id of chain) {
    const all = root.querySelectorAll<HTMLElement>(`[data-item="${CSS.escape(id)}"]`);
    // A row and the item in it have the same name.
    const last = all[all.length - 1];
    if (last) return last;
  }
  return undefined;
}

/** Something of an item that can be opened, but nothing of the items in it. */
function closedIn(element: HTMLElement): HTMLElement | undefined {
  const all = element.querySelectorAll<HTMLElement>('button[aria-expanded="false"]');
  return [...all].find((button) => button.closest("[data-item]") === element);
}

/** Scrolls until something is in sight; whether it was not. */
function bring(scroller: HTMLElement, goal: Range | HTMLElement): boolean {
  const from = goal instanceof Range ? goal.startContainer.parentElement : goal.parentElement;
  let moved = false;
  for (let box = from; box && box !== scroller; box = box.parentElement) {
    moved = inBox(box, goal) || moved;
  }
  const [place, frame] = [goal.getBoundingClientRect(), scroller.getBoundingClientRect()];
  // Of an item, its beginning.
  const bottom = goal instanceof Range ? place.bottom : Math.min(place.bottom, place.top + 24);
  const above = place.top < frame.top + (goal instanceof Range ? HEAD : 0);
  if (above || bottom > frame.bottom - FOOT) {
    const before = scroller.scrollTop;
    scroller.scrollTop += place.top - frame.top - frame.height / 3;
    moved = moved || Math.abs(scroller.scrollTop - before) > 1;
  }
  return moved;
}

/** The same within a box that scrolls by itself: a long line, a long output. */
function inBox(box: HTMLElement, goal: Range | HTMLElement): boolean {
  const [wide, high] = [box.scrollWidth > box.clientWidth + 1, box.scrollHeight > box.clientHeight + 1];
  if (!(goal instanceof Range) || !(wide || high)) return false;
  const style = getComputedStyle(box);
  const scrolls = (overflow: string) => overflow === "auto" || overflow === "scroll";
  const [place, frame] = [goal.getBoundingClientRect(), box.getBoundingClientRect()];
  const [left, top] = [box.scrollLeft, box.scrollTop];
  if (wide && scrolls(style.overflowX) && (place.left < frame.left || place.right > frame.right)) {
    box.scrollLeft += place.left - frame.left - frame.width / 3;
  }
  if (high && scrolls(style.overflowY) && (place.top < frame.top || place.bottom > frame.bottom)) {
    box.scrollTop += place.top - frame.top - frame.height / 3;
  }
  return box.scrollLeft !== left || box.scrollTop !== top;
}
