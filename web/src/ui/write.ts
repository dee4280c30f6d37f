import type { KeyboardEvent } from "react";

const isTouch = () => window.matchMedia("(pointer: coarse)").matches;

/** Whether a key in a text means "send". Where there is no Shift at hand, Enter is a new line. */
export function sends(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" || event.nativeEvent.isComposing) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !event.shiftKey && !event.altKey && !isTouch();
}
