import { ApiError, api } from "../api/client";
import type { Message, Socket } from "../api/socket";
import type { Change, Item, ItemPage, Outline, SessionInfo } from "../api/types";
import { settled } from "./apply";
import type { ChildItems, ChildrenAccess } from "./context";
import { Orphans } from "./orphans";
import { isPreviewed, withPreview } from "./preview";
import { epochOf, ItemWindow, SPARE, type Where } from "./window";

const PAGE = 120;
/** Characters of a text that come along; longer ones are fetched when they are opened. */
const PREVIEW = 4000;
const NO_ITEMS: ChildItems = { items: [], loading: true, more: false };

/** What is shown of a session. A new object for every change. */
export interface View {
  items: readonly Item[];
  info: SessionInfo | null;
  loaded: boolean;
  before: boolean;
  after: boolean;
  loading: boolean;
  /** New items below what is here. */
  behind: number;
  ended: boolean;
  /** Changes with every jump: what was on the screen is gone. */
  place: number;
  /** The order at which the place begins; null at the end. */
  at: number | null;
  /** The order of the next item: how long the session is. */
  next: number;
  /** The session at a glance; an extra that comes later. */
  outline: Outline | null;
  error: string | null;
  gone: boolean;
}

/** What is shown of a subagent. */
interface Below {
  window: ItemWindow;
  view: ChildItems;
  watchers: Set<() => void>;
}

/** A session on the screen: windows of its items, kept up by the socket. */
export class SessionModel {
  view: View = {
    items: [],
    info: null,
    loaded: false,
    before: false,
    after: false,
    loading: true,
    behind: 0,
    ended: false,
    place: 0,
    at: null,
    next: 0,
    outline: null,
    error: null,
    gone: false,
  };
  readonly children: ChildrenAccess;
  private top: ItemWindow;
  private below = new Map<string, Below>();
  private listeners = new Set<() => void>();
  private queue: { seq: number | null; changes: Change[] }[] = [];
  /** What is shown beside the items while the agent pauses, until the next frame. */
  private preview: Change[] = [];
  private scheduled = false;
  private cursor: string | null = null;
  /** The last event whose changes were taken. */
  private applied = 0;
  private unfollow: (() => void) | null = null;
  private unlisten: () => void;
  private outlineTimer: ReturnType<typeof setTimeout> | undefined;
  private outlineAsked = 0;
  private outlineFailed = false;
  private stopped = false;
  private orphans = new Orphans(
    (item) => this.isTop(item),
    (item) => void this.top.lack(item.order).then(() => this.stopped || this.show({})),
  );
  /** The order of what one reads, without end at the end: what is far from it may be let go. */
  reading = Number.POSITIVE_INFINITY;

  constructor(
    readonly id: string,
    private socket: Socket,
  ) {
    this.top = new ItemWindow(
      (where) => this.page(where, { top: true }),
      (item) => this.orphans.isTop(item),
    );
    this.children = {
      watch: (parent, changed) => this.watch(parent, changed),
      get: (parent) => this.below.get(parent)?.view ?? NO_ITEMS,
      before: (parent) => this.earlier(parent),
    };
    this.unlisten = socket.subscribe(() => socket.link === "live" && this.recover());
  }

  subscribe = (tell: () => void): (() => void) => {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  };

  getView = (): View => this.view;

  /** Shows the end of the session, or the surroundings of an item. */
  async start(where: Where): Promise<void> {
    await this.jump(where);
    this.readOutline();
  }

  stop(): void {
    this.stopped = true;
    this.unfollow?.();
    this.unlisten();
    clearTimeout(this.outlineTimer);
  }

  async jump(where: Where): Promise<void> {
    this.show({ loading: true, error: null });
    try {
      const page = await this.top.jump(where);
      if (!page || this.stopped) return;
      this.header(page);
      const at = "around" in where ? where.around : null;
      this.show({ place: this.view.place + 1, at, loaded: true });
      this.follow(page.cursor);
    } catch (error) {
      this.failed(error);
    }
  }

  async more(side: "before" | "after"): Promise<void> {
    // What failed is not asked for again and again: the reader does, or the server is back.
    if (this.top.isLoading || !this.top[side] || this.view.error) return;
    this.show({ loading: true });
    try {
      await this.top.more(side);
      if (this.stopped) return;
      this.show({});
      this.shorten(side === "before" ? "after" : "before");
    } catch (error) {
      this.failed(error);
    }
  }

  /** Asks once more after something failed. */
  retry = (): void => {
    if (this.view.loaded) this.show({ error: null });
    else void this.start({ end: true });
  };

  /** The server is back: what was asked for in vain is asked for again. */
  private recover(): void {
    if (this.view.error) this.retry();
    for (const [parent, child] of this.below) if (child.view.error && child.watchers.size) this.load(parent);
    if (this.outlineFailed) this.readOutline();
  }

  whole = (id: string): Promise<Item> => api.item(this.id, id);

  /** What is known of an item, if it is here. */
  find(id: string): Item | undefined {
    return this.top.get(id);
  }

  private page(where: Where, more: Record<string, string | boolean>): Promise<ItemPage> {
    const { end: _, ...place } = where as { end?: true };
    return api.items(this.id, { ...place, ...more, limit: PAGE, preview: PREVIEW });
  }

  private header(page: ItemPage): void {
    this.show({ info: page.info, ended: page.ended, next: page.nextOrder });
  }

  private follow(cursor: string): void {
    // Every page is at least as new as what was followed up to now: one stream serves them all.
    if (this.unfollow && this.cursor && epochOf(this.cursor) === epochOf(cursor)) return;
    this.unfollow?.();
    this.cursor = cursor;
    this.unfollow = this.socket.follow({
      request: () => ({ sessionId: this.id, view: "items", after: this.cursor }),
      take: (message) => this.take(message),
    });
  }

  private take(message: Message): void {
    switch (message.type) {
      case "changes":
        this.cursor = message.cursor ?? this.cursor;
        this.queue.push({ seq: message.seq as number, changes: message.changes as Change[] });
        if (this.view.ended) this.goesOn();
        this.schedule();
        break;
      case "preview":
        // It has its place among the changes, though no number of its own.
        this.queue.push({ seq: null, changes: message.changes as Change[] });
        this.schedule();
        break;
      case "cursor":
        this.cursor = message.cursor ?? this.cursor;
        this.queue.push({ seq: null, changes: [] });
        this.schedule();
        break;
      case "ready":
        this.cursor = message.cursor ?? this.cursor;
        break;
      case "ended":
        this.flush();
        this.show({ ended: true });
        break;
      case "reset":
      case "closed":
        if (message.reason === "deleted") this.show({ gone: true });
        else this.anew();
        break;
      case "error":
        if (message.code === "NOT_FOUND") this.show({ gone: true });
        else setTimeout(() => this.stopped || this.anew(), 1000);
        break;
    }
  }

  /** A session that was over goes on: how it stands is asked for, as its changes need not tell. */
  private goesOn(): void {
    this.show({ ended: false });
    api.session(this.id).then(
      ({ info, ended }) => this.stopped || this.show({ info, ended }),
      () => {},
    );
  }

  /** The log is another one: everything is fetched again. */
  private anew(): void {
    this.unfollow?.();
    this.unfollow = null;
    this.queue = [];
    this.preview = [];
    this.applied = 0;
    this.orphans.clear();
    for (const [parent, child] of this.below) {
      if (child.watchers.size) void this.load(parent);
      else this.below.delete(parent);
    }
    void this.start({ end: true });
  }

  /** Changes are taken once a frame, however fast they come. */
  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    if (document.hidden) setTimeout(() => this.flush(), 200);
    else requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    this.scheduled = false;
    const frames = this.queue;
    if (!frames.length || this.stopped) return;
    this.queue = [];
    const news: Partial<View> = {};
    const touched = new Set<string>();
    let next = this.view.next;
    for (const { seq, changes } of frames) {
      this.previewed(touched);
      this.preview = seq === null ? changes : [];
      if (seq === null || seq <= this.applied) continue;
      this.applied = seq;
      for (const change of changes) {
        if (change.change === "info") {
          news.info = change.info;
          continue;
        }
        if (change.change === "put") {
          next = Math.max(next, change.item.order + 1);
          this.noted(change.item);
          if (this.orphans.came(change.item))
            this.top.release((item) => item.parentToolCallId === change.item.id);
        }
        this.top.apply(seq, change);
        if (change.change === "put") this.orphans.look(change.item, (id) => this.isHere(id));
        for (const [parent, child] of this.below) if (child.window.apply(seq, change)) touched.add(parent);
      }
    }
    this.previewed(touched);
    if (news.info && news.info.status !== this.view.info?.status) this.readOutline(300);
    for (const parent of touched) this.showBelow(parent);
    this.show({ ...news, next });
    if (!this.top.after) this.shorten(this.top.isLate(this.reading) ? "before" : "after", SPARE);
  }

  /** The calls below which a preview shows something. */
  private previewed(parents: Set<string>): void {
    for (const [parent, child] of this.below) {
      if (isPreviewed(child.window, this.preview)) parents.add(parent);
    }
  }

  private isHere(id: string): boolean {
    return this.top.has(id) || [...this.below.values()].some((child) => child.window.has(id));
  }

  private async isTop(item: Item): Promise<boolean> {
    const page = await api.items(this.id, { from: item.order, top: true, limit: 1, preview: 1 });
    return page.items[0]?.id === item.id;
  }

  /** In a step of its own: the list can follow rows that come or rows that go, not both at once. */
  private shorten(side: "before" | "after", spare?: number): void {
    setTimeout(() => !this.stopped && this.top.shorten(side, spare) && this.show({}));
  }

  private noted(item: Item): void {
    if (item.parentToolCallId === undefined && item.type === "user_message") this.readOutline(200);
    else if (item.type === "todo_list" || item.type === "permission" || item.type === "question") {
      this.readOutline(500);
    }
  }

  /** The outline is read again a while after something of it changed. */
  readOutline(wait = 0): void {
    clearTimeout(this.outlineTimer);
    this.outlineTimer = setTimeout(async () => {
      const asked = ++this.outlineAsked;
      this.outlineFailed = false;
      try {
        const outline = await api.outline(this.id);
        while (outline.more && outline.turns.length < 20_000) {
          const next = await api.outline(this.id, outline.turns.at(-1)!.order);
          outline.turns.push(...next.turns);
          outline.more = next.more && next.turns.length > 0;
        }
        if (!this.stopped && asked === this.outlineAsked) this.show({ outline });
      } catch {
        // It is an extra: the transcript is there without it.
        this.outlineFailed = true;
      }
    }, wait);
  }

  /** The items below a call, with one of them that may be far from the end. */
  async reach(parent: string, id: string): Promise<readonly Item[]> {
    const { window } = this.childrenOf(parent);
    if (!window.loaded) await this.load(parent);
    while (!window.has(id) && window.before) {
      if (!(await window.more("before"))) break;
    }
    this.showBelow(parent);
    return window.items;
  }

  private watch(parent: string, changed: () => void): () => void {
    const known = this.below.has(parent);
    const child = this.childrenOf(parent);
    if (!known) void this.load(parent);
    child.watchers.add(changed);
    return () => child.watchers.delete(changed);
  }

  private childrenOf(parent: string): Below {
    let child = this.below.get(parent);
    if (!child) {
      const accepts = (item: Item) => item.parentToolCallId === parent;
      const window = new ItemWindow((where) => this.page(where, { parent }), accepts);
      child = { window, view: NO_ITEMS, watchers: new Set() };
      this.below.set(parent, child);
    }
    return child;
  }

  private load(parent: string): Promise<void> | undefined {
    const child = this.below.get(parent);
    return child?.window.jump({ end: true }).then(
      () => this.showBelow(parent),
      (error) => this.showBelow(parent, String(error.message)),
    );
  }

  private earlier(parent: string): void {
    const child = this.below.get(parent);
    child?.window.more("before").then(
      () => this.showBelow(parent),
      (error) => this.showBelow(parent, String(error.message)),
    );
  }

  private showBelow(parent: string, error?: string): void {
    const child = this.below.get(parent);
    if (!child) return;
    const { window } = child;
    child.view = {
      items: withPreview(window, this.preview),
      loading: window.isLoading,
      more: window.before,
      error,
    };
    for (const tell of child.watchers) tell();
  }

  private failed(error: unknown): void {
    if (this.stopped) return;
    if (error instanceof ApiError && error.status === 404) this.show({ gone: true });
    else this.show({ error: error instanceof Error ? error.message : String(error) });
  }

  private show(news: Partial<View>): void {
    const { top } = this;
    const ended = news.ended ?? this.view.ended;
    this.view = {
      ...this.view,
      loading: top.isLoading,
      items: ended ? settled(top.items) : withPreview(top, this.preview),
      before: top.before,
      after: top.after,
      behind: top.behind,
      ...news,
    };
    for (const tell of this.listeners) tell();
  }
}
