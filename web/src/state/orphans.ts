import type { Item } from "../api/types";

/** Asks the server whether an item stands at top level. */
type Ask = (item: Item) => Promise<boolean>;

/**
 * Items that name a call which is not there stand at top level. A page of the server has them so;
 * of those that are pushed, one has to find out.
 */
export class Orphans {
  private lost = new Set<string>();
  private known = new Set<string>();

  constructor(
    private ask: Ask,
    private found: (item: Item) => void,
  ) {}

  isTop(item: Item): boolean {
    return item.parentToolCallId === undefined || this.lost.has(item.parentToolCallId);
  }

  /** Looks for the call of a new item, once a call. */
  look(item: Item, isHere: (id: string) => boolean): void {
    const parent = item.parentToolCallId;
    if (parent === undefined || this.known.has(parent)) return;
    this.known.add(parent);
    if (isHere(parent)) return;
    this.ask(item).then(
      (isTop) => {
        if (!isTop || !this.known.has(parent)) return;
        this.lost.add(parent);
        this.found(item);
      },
      () => this.known.delete(parent),
    );
  }

  /** Whether a call came that some item waited for. */
  came(item: Item): boolean {
    if (item.type === "tool_call" && this.lost.delete(item.id)) return true;
    return false;
  }

  clear(): void {
    this.lost.clear();
    this.known.clear();
  }
}
