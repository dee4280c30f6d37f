import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

const NEAR = 48;
/** A scroll so soon after a hand on the wheel is the reader's own. */
const OWN = 400;

export interface Stick {
  /** Whether the reader is at the end and stays there. */
  stuck: boolean;
  release(): void;
  toEnd(): void;
}

/**
 * Keeps the end in sight while more comes, until the reader scrolls up. Only what the reader does
 * with wheel, finger, keys or scrollbar lets go: rows that change their height do not.
 */
export function useStick(
  scroller: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
  initial: boolean,
  atEnd: boolean,
): Stick {
  const [stuck, setStuck] = useState(initial);
  const state = useRef({ stuck: initial, own: 0, last: 0, atEnd });
  state.current.atEnd = atEnd;

  const set = useCallback((now: boolean) => {
    state.current.stuck = now;
    setStuck(now);
  }, []);

  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
    set(true);
  }, [scroller, set]);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const own = () => {
      state.current.own = performance.now();
    };
    const keys = (event: KeyboardEvent) => {
      if (["PageUp", "PageDown", "ArrowUp", "ArrowDown", "Home", "End", " "].includes(event.key)) own();
    };
    const scrolled = () => {
      const { current } = state;
      const top = element.scrollTop;
      const left = element.scrollHeight - top - element.clientHeight;
      if (left < NEAR && current.atEnd) {
        if (!current.stuck) set(true);
      } else if (top < current.last - 1 && performance.now() - current.own < OWN && current.stuck) {
        set(false);
      }
      current.last = top;
    };
    // Held down, the scrollbar gives no more events than these.
    const held = (event: PointerEvent) => event.buttons && own();
    element.addEventListener("wheel", own, { passive: true });
    element.addEventListener("touchmove", own, { passive: true });
    element.addEventListener("pointerdown", own);
    element.addEventListener("pointermove", held);
    element.addEventListener("scroll", scrolled, { passive: true });
    window.addEventListener("keydown", keys);
    return () => {
      element.removeEventListener("wheel", own);
      element.removeEventListener("touchmove", own);
      element.removeEventListener("pointerdown", own);
      element.removeEventListener("pointermove", held);
      element.removeEventListener("scroll", scrolled);
      window.removeEventListener("keydown", keys);
    };
  }, [scroller, set]);

  useEffect(() => {
    const element = scroller.current;
    const inner = content.current;
    if (!element || !inner) return;
    const grown = new ResizeObserver(() => {
      if (state.current.stuck) element.scrollTop = element.scrollHeight;
    });
    grown.observe(inner);
    grown.observe(element);
    return () => grown.disconnect();
  }, [scroller, content]);

  const release = useCallback(() => set(false), [set]);
  return { stuck, release, toEnd };
}
