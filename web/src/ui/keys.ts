import { useEffect, useRef } from "react";

/** Does something when a key is pressed and nobody is writing. */
export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const target = event.target as HTMLElement;
      if (target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
      const act = current.current[event.key];
      if (!act) return;
      // Enter and Escape mean other things to buttons and menus too.
      if (event.key !== "Escape") event.preventDefault();
      act(event);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}
