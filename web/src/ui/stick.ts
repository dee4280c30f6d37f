import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

const NEAR = 48;
/** A scroll so soon after a hand on the wheel is the reader's own. */
const OWN = 400;
/** What grows so soon after something was opened grows because of that. */
const OPENED = 1000;
const NEVER = Number.NEGATIVE_INFINITY;

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
  const state = useRef({ stuck: initial, own: NEVER, opened: NEVER, last: 0, atEnd });
  state.current.atEnd = atEnd;

  const set = useCallback((now: boolean) => {
    state.current.stuck = now;
    setStuck(now);
  }, []);

  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
    state.current.opened = NEVER;
    set(true);
  }, [scroller, set]);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const hand = () => {
      state.current.own = performance.now();
    };
    const keys = (event: KeyboardEvent) => {
      if (["PageUp", "PageDown", "ArrowUp", "ArrowDown", "Home", "End", " ", "Tab"].includes(event.key))
        hand();
    };
    const scrolled = () => {
      const { current } = state;
      const top = element.scrollTop;
      const left = element.scrollHeight - top - element.clientHeight;
      const up = top < current.last;
      const own = performance.now() - current.own < OWN;
      // However slowly one goes up: more may come at any time and would take one back.
      if (up && own && left > 1) {
        if (current.stuck) set(false);
      } else if (left < (up ? 1 : NEAR) && current.atEnd && !current.stuck) set(true);
      current.last = top;
    };
    const clicked = (event: MouseEvent) => {
      const button = (event.target as Element).closest("button");
      if (button?.getAttribute("aria-expanded") === "false") state.current.opened = performance.now();
    };
    // Held down, the scrollbar gives no more events than these.
    const held = (event: PointerEvent) => event.buttons && hand();
    element.addEventListener("wheel", hand, { passive: true });
    element.addEventListener("touchmove", hand, { passive: true });
    element.addEventListener("pointerdown", hand);
    element.addEventListener("pointermove", held);
    element.addEventListener("click", clicked, { capture: true });
    element.addEventListener("scroll", scrolled, { passive: true });
    window.addEventListener("keydown", keys);
    return () => {
      element.removeEventListener("wheel", hand);
      element.removeEventListener("touchmove", hand);
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
