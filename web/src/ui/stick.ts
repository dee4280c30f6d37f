import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

const NEAR = 48;
/** A scroll so soon after a hand on the wheel is the reader's own. */
const OWN = 400;
/** What grows so soon after something was opened grows because of that. */
const OPENED = 1000;
const WRITING = "input, textarea, select, [contenteditable]";
const NEVER = Number.NEGATIVE_INFINITY;
const UPWARDS = ["PageUp", "ArrowUp", "Home"];
const KEYS = [...UPWARDS, "PageDown", "ArrowDown", "End", " ", "Tab"];

export interface Stick {
  /** Whether the reader is at the end and stays there. */
  stuck: boolean;
  release(): void;
  toEnd(): void;
}

/**
 * Keeps the end in sight while more comes, until the reader scrolls up or opens something. Only what
 * the reader does with wheel, finger, keys or scrollbar lets go: rows that change their height do not.
 */
export function useStick(
  scroller: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
  initial: boolean,
  atEnd: boolean,
): Stick {
  const [stuck, setStuck] = useState(initial);
  const state = useRef({ stuck: initial, own: NEVER, up: NEVER, opened: NEVER, last: 0, atEnd });
  state.current.atEnd = atEnd;

  const set = useCallback((now: boolean) => {
    state.current.stuck = now;
    setStuck(now);
  }, []);

  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
    state.current.opened = NEVER;
    state.current.up = NEVER;
    set(true);
  }, [scroller, set]);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const hand = () => {
      state.current.own = performance.now();
    };
    // A hand that goes up lets go at once: what comes before the page has scrolled would take it back.
    const turned = (event: Event, up: boolean) => {
      hand();
      const goes = up && element.scrollTop > 0 && !scrollsInside(event.target, element);
      state.current.up = goes ? performance.now() : NEVER;
      if (goes && state.current.stuck) set(false);
    };
    const wheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.deltaY === 0) hand();
      else turned(event, event.deltaY < 0);
    };
    let finger = 0;
    const touch = (event: TouchEvent) => {
      finger = event.touches[0]?.clientY ?? 0;
    };
    const touched = (event: TouchEvent) => {
      const y = event.touches[0]?.clientY ?? finger;
      if (y !== finger) turned(event, y > finger);
      finger = y;
    };
    const keys = (event: KeyboardEvent) => {
      if (!KEYS.includes(event.key)) return;
      const { target } = event;
      const inside = target instanceof Element && element.contains(target) && !target.matches(WRITING);
      if (inside && !event.defaultPrevented) turned(event, UPWARDS.includes(event.key));
      else hand();
    };
    const scrolled = () => {
      const { current } = state;
      const top = element.scrollTop;
      const left = element.scrollHeight - top - element.clientHeight;
      const up = top < current.last;
      const now = performance.now();
      const own = now - current.own < OWN;
      // However slowly one goes up: more may come at any time and would take one back.
      if (up && own && left > 1) {
        if (current.stuck) set(false);
      } else if (left < (up ? 1 : NEAR) && current.atEnd && !current.stuck && now - current.up > OWN)
        set(true);
      current.last = top;
    };
    const clicked = (event: MouseEvent) => {
      const button = (event.target as Element).closest("button");
      if (button?.getAttribute("aria-expanded") === "false") state.current.opened = performance.now();
    };
    // Held down, the scrollbar gives no more events than these.
    const held = (event: PointerEvent) => event.buttons && hand();
    element.addEventListener("wheel", wheel, { passive: true });
    element.addEventListener("touchstart", touch, { passive: true });
    element.addEventListener("touchmove", touched, { passive: true });
    element.addEventListener("pointerdown", hand);
    element.addEventListener("pointermove", held);
    element.addEventListener("click", clicked, { capture: true });
    element.addEventListener("scroll", scrolled, { passive: true });
    window.addEventListener("keydown", keys);
    return () => {
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("touchstart", touch);
      element.removeEventListener("touchmove", touched);
      element.removeEventListener("pointerdown", hand);
      element.removeEventListener("pointermove", held);
      element.removeEventListener("click", clicked, { capture: true });
      element.removeEventListener("scroll", scrolled);
      window.removeEventListener("keydown", keys);
    };
  }, [scroller, set]);

  useEffect(() => {
    const element = scroller.current;
    const inner = content.current;
    if (!element || !inner) return;
    const follow = () => {
      const { current } = state;
      if (!current.stuck) return;
      // What is opened grows downwards: what is above it stays.
      if (performance.now() - current.opened > OPENED) element.scrollTop = element.scrollHeight;
      else if (element.scrollHeight - element.scrollTop - element.clientHeight > 1) set(false);
    };
    const grown = new ResizeObserver(follow);
    grown.observe(inner);
    grown.observe(element);
    // The list sets its height when rows have been measured: too late to be told of it before it is drawn.
    const told = new MutationObserver(follow);
    told.observe(inner, { subtree: true, attributeFilter: ["style"] });
    return () => {
      grown.disconnect();
      told.disconnect();
    };
  }, [scroller, content, set]);

  const release = useCallback(() => set(false), [set]);
  return { stuck, release, toEnd };
}

/** Whether something between the hand and the transcript scrolls up first: the output of a command, say. */
function scrollsInside(target: EventTarget | null, scroller: Element): boolean {
  for (let at = target as Element | null; at && at !== scroller; at = at.parentElement) {
    if (at.scrollTop > 0 && /auto|scroll/.test(getComputedStyle(at).overflowY)) return true;
  }
  return false;
}
