import type { Change, Item, ItemPage } from "../api/types";
import { changed } from "./apply";

/** Items that are kept at most; those far from where one reads are let go and fetched again. */
const MAX_KEPT = 1600;
/** When one reads at the end of a session that goes on and on, not every new one costs an old one. */
export const SPARE = MAX_KEPT / 4;

export type Where = { end: true } | { before: number } | { from: number } | { around: number };
export type Fetch = (where: Where) => Promise<ItemPage>;

/** The number of the last event that a cursor tells. */
export const seqOf = (cursor: string): number => Number(cursor.slice(cursor.lastIndexOf("-") + 1));
export const epochOf = (cursor: string): string => cursor.slice(0, cursor.lastIndexOf("-"));

/**
 * A run of items without a hole, kept up by changes. Pages and changes come on two ways and in any
 * order: each item knows up to which event it is told, so that no change is taken twice, and changes
 * that come while a page is on its way are kept until it is there, so that none is missed.
 */
export class ItemWindow {
  items: Item[] = [];
  /** There are more on the server. */
  before = false;
  after = false;
  /** Items that came after the end of what is here. */
  behind = 0;
  loaded = false;
  /** The event up to which the page told that an item came with. */
  private told = new Map<string, number>();
  private index = new Map<string, Item>();
  private onTheWay = 0;
  private recorded: { seq: number; change: Change }[] = [];
  /** A page that was asked for before a jump is for nobody. */
  private life = 0;

  constructor(
    private fetch: Fetch,
    private accepts: (item: Item) => boolean,
  ) {}

  has(id: string): boolean {
    return this.index.has(id);
  }

  get(id: string): Item | undefined {
    return this.index.get(id);
  }

  /** Whether an item that is new would stand at the end of what is here. */
  takes(item: Item): boolean {
    return this.loaded && !this.after && !this.has(item.id) && this.accepts(item);
  }

  get isLoading(): boolean {
    return this.onTheWay > 0;
  }

  /** Shows another place: what was there is replaced when the page has come. */
  jump(where: Where): Promise<ItemPage | null> {
    this.life++;
    return this.ask(where, (page) => {
      this.items = [];
      this.index.clear();
      this.told.clear();
      this.behind = 0;
      this.loaded = true;
      this.before = page.before;
      this.after = page.after;
      this.insert(page);
    });
  }

  async more(side: "before" | "after"): Promise<ItemPage | null> {
    const edge = side === "before" ? this.items[0] : this.items.at(-1);
    if (!edge || !this[side] || this.onTheWay) return null;
    const where = side === "before" ? { before: edge.order } : { from: edge.order + 1 };
    return this.ask(where, (page) => {
      this[side] = page[side];
      if (side === "after" && !page.after) this.behind = 0;
      this.insert(page);
    });
  }

  /** Lets go of those that are far from where one reads, when there are more than enough. */
  shorten(side: "before" | "after", spare = 0): boolean {
    const over = this.items.length - MAX_KEPT;
    if (over <= spare || this.onTheWay) return false;
    this.drop(side, over);
    return true;
  }

  /** Fetches what should be here from some order on and is not. */
  async lack(order: number): Promise<void> {
    const last = this.items.at(-1);
    if (this.after && (!last || order > last.order)) return;
    await this.ask({ from: order }, (page) => this.insert(page));
  }

  /** Lets go of those that belong somewhere else now. */
  release(which: (item: Item) => boolean): void {
    for (const item of this.items.filter(which)) this.forget(item.id);
    this.items = this.items.filter((item) => this.index.has(item.id));
  }

  /** Whether an order is in the later half of what is here. */
  isLate(order: number): boolean {
    return order >= (this.items[this.items.length >> 1]?.order ?? 0);
  }

  /** Takes a change; tells whether something here is different now. */
  apply(seq: number, change: Change): boolean {
    if (this.onTheWay) this.recorded.push({ seq, change });
    return this.take(seq, change);
  }

  /** Fetches a page and takes it, unless there was a jump in the meantime. */
  private async ask(where: Where, take: (page: ItemPage) => void): Promise<ItemPage | null> {
    const { life } = this;
    this.onTheWay++;
    try {
      const page = await this.fetch(where);
      if (life !== this.life) return null;
      take(page);
      return page;
    } finally {
      if (--this.onTheWay === 0) this.recorded = [];
    }
  }

  private insert(page: ItemPage): void {
    const seq = seqOf(page.cursor);
    const fresh = page.items.filter((item) => !this.index.has(item.id));
    for (const item of fresh) {
      this.index.set(item.id, item);
      this.told.set(item.id, seq);
    }
    this.items = this.items.concat(fresh).sort((a, b) => a.order - b.order);
    // What came in the meantime was taken by those that were here, not by those that are new.
    const lack = new Set(fresh.map((item) => item.id));
    for (const { seq: at, change } of this.recorded) {
      if (at <= seq || change.change === "info") continue;
      const id = change.change === "put" ? change.item.id : change.id;
      if (change.change === "put" && !this.index.has(id)) lack.add(id);
      if (lack.has(id)) this.take(at, change);
    }
  }

  private take(seq: number, change: Change): boolean {
    if (change.change === "info") return false;
    const id = change.change === "put" ? change.item.id : change.id;
    const known = this.index.get(id);
    if (!known) return change.change === "put" && this.accepts(change.item) && this.add(change.item);
    if (seq <= (this.told.get(id) ?? 0)) return false;
    if (change.change === "remove") {
      this.forget(id);
      this.items = this.items.filter((item) => item.id !== id);
      return true;
    }
    const now = change.change === "put" ? { ...change.item, order: known.order } : changed(known, change);
    this.index.set(id, now);
    const at = this.place(known.order);
    if (this.items[at]?.id === id) this.items[at] = now;
    return true;
  }

  private add(item: Item): boolean {
    const first = this.items[0];
    const last = this.items.at(-1);
    if (!this.loaded) return false;
    if (this.after && (!last || item.order > last.order)) {
      this.behind++;
      return true;
    }
    if (this.before && (!first || item.order < first.order)) return false;
    this.index.set(item.id, item);
    if (!last || item.order > last.order) this.items.push(item);
    else this.items.splice(this.place(item.order), 0, item);
    return true;
  }

  /** Where an item of this order is, or would be. */
  place(order: number): number {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.items[middle]?.order ?? 0) < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private drop(side: "before" | "after", count: number): void {
    const gone = side === "before" ? this.items.slice(0, count) : this.items.slice(-count);
    this.items = side === "before" ? this.items.slice(count) : this.items.slice(0, -count);
    for (const item of gone) this.forget(item.id);
    this[side] = true;
  }

  private forget(id: string): void {
    this.index.delete(id);
    this.told.delete(id);
  }
}
