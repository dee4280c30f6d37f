import type { Change, Item } from "../api/types";
import { changed } from "./apply";
import type { ItemWindow } from "./window";

/**
 * The items of a window as they are shown while the agent pauses within a word: with text that is not in
 * the log yet. The window itself stays as the log has it.
 */
export function withPreview(window: ItemWindow, preview: readonly Change[]): Item[] {
  const items = [...window.items];
  for (const change of preview) {
    if (change.change === "put") {
      if (window.takes(change.item)) items.push(change.item);
    } else if (change.change === "append") {
      const at = items.findLastIndex((item) => item.id === change.id);
      const item = items[at];
      if (item) items[at] = changed(item, change);
    }
  }
  return items;
}

/** Whether a preview shows something in a window. */
export function isPreviewed(window: ItemWindow, preview: readonly Change[]): boolean {
  return preview.some((change) =>
    change.change === "put" ? window.takes(change.item) : change.change === "append" && window.has(change.id),
  );
}
