import { useEffect } from "react";

/** Keeps the page as high as what a phone's keyboard leaves of the screen. */
export function useKeyboard(): void {
  useEffect(() => {
    const { visualViewport: seen } = window;
    if (!seen) return;
    const root = document.documentElement;
    const fit = () => {
      // Somebody who zooms in wants to see more of less, not less of everything.
      const covered = seen.scale === 1 && window.innerHeight - seen.height > 80;
      if (covered) root.style.setProperty("--seen", `${Math.round(seen.height)}px`);
      else root.style.removeProperty("--seen");
      if (covered) window.scrollTo(0, 0);
    };
    seen.addEventListener("resize", fit);
    return () => {
      seen.removeEventListener("resize", fit);
      root.style.removeProperty("--seen");
    };
  }, []);
}
