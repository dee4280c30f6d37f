import { api, type SessionFilter } from "../api/client";
import type { Message, Socket } from "../api/socket";
import type { Facets, Session, Sources } from "../api/types";

/** As the server has it: a session of which nothing arrived for so long is not at work. */
const FRESH = 10 * 60_000;
const PAGE = 100;

/** Whether something of a session arrived lately, or its agent waits for a person. */
export const isFresh = (session: Session, now = Date.now()): boolean =>
  session.waiting > 0 || now - session.heardAt < FRESH;

/** The server tells; here only time goes on. */
export const isLive = (session: Session, now = Date.now()): boolean => session.live && isFresh(session, now);

export interface ListFilter extends SessionFilter {
  live?: boolean;
}

export interface ListView {
  sessions: readonly Session[];
  filter: ListFilter;
  ready: boolean;
  more: boolean;
  loading: boolean;
  error: string | null;
  facets: Facets | null;
  sources: Sources | null;
}

/** The sessions of the list: pages by request, changes by the socket. */
export class SessionList {
  view: ListView = {
    sessions: [],
    filter: {},
    ready: false,
    more: false,
    loading: true,
    error: null,
    facets: null,
    sources: null,
  };
  /** Every session that was heard of. */
  private known = new Map<string, Session>();
  /** How far the pages of the filter have been read; what is newer than that is listed. */
  private next: string | null = null;
  private oldest = Number.POSITIVE_INFINITY;
  private listeners = new Set<() => void>();
  private scheduled = false;
  private asked = 0;
  private aboutTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private socket: Socket) {}

  start(): void {
    this.socket.follow({ request: () => ({ view: "sessions" }), take: (message) => this.take(message) });
    this.about();
    // Live ones stop being so by themselves.
    setInterval(() => this.show({}), 30_000);
  }

  subscribe = (tell: () => void): (() => void) => {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  };

  getView = (): ListView => this.view;

  get(id: string): Session | undefined {
    return this.known.get(id);
  }

  /** Lists other sessions. */
  async choose(filter: ListFilter): Promise<void> {
    this.next = null;
    this.show({ filter, error: null });
    await this.read(++this.asked);
  }

  async more(): Promise<void> {
    if (this.view.loading || !this.view.more) return;
    await this.read(++this.asked);
  }

  async remove(id: string): Promise<void> {
    await api.remove(id);
    this.known.delete(id);
    this.show({});
  }

  /** Makes sure that a session is known, wherever it stands in the list. */
  async learn(id: string): Promise<void> {
    if (this.known.has(id)) return;
    const session = await api.session(id);
    this.known.set(id, session);
    this.show({});
  }

  private async read(asked: number): Promise<void> {
    const { live, ...filter } = this.view.filter;
    this.show({ loading: true });
    try {
      const status = live ? "running" : undefined;
      const page = await api.sessions({ ...filter, status, after: this.next ?? undefined, limit: PAGE });
      if (asked !== this.asked) return;
      for (const session of page.sessions) this.known.set(session.id, session);
      this.next = page.next ?? null;
      this.oldest = page.next ? (page.sessions.at(-1)?.updatedAt ?? 0) : Number.NEGATIVE_INFINITY;
      this.show({ loading: false, more: page.next != null, ready: true });
    } catch (error) {
      if (asked === this.asked) this.show({ loading: false, ready: true, error: (error as Error).message });
    }
  }

  private take(message: Message): void {
    if (message.type === "session") {
      const session = message.session as Session;
      this.known.set(session.id, session);
    } else if (message.type === "removed") {
      this.known.delete(message.sessionId as string);
    } else if (message.type === "ready") {
      void this.choose(this.view.filter);
      return;
    }
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => {
      this.scheduled = false;
      this.show({});
      this.about(2000);
    }, 100);
  }

  /** What there is to filter by, and where sessions come from. */
  private about(wait = 0): void {
    if (this.aboutTimer !== undefined && wait) return;
    this.aboutTimer = setTimeout(async () => {
      this.aboutTimer = undefined;
      try {
        const [facets, sources] = await Promise.all([api.facets(), api.sources()]);
        this.show({ facets, sources });
        if (sources.indexing) this.about(1000);
      } catch {
        // The list works without it.
      }
    }, wait);
  }

  private show(news: Partial<ListView>): void {
    const now = Date.now();
    const filter = news.filter ?? this.view.filter;
    const listed: Session[] = [];
    for (const session of this.known.values()) {
      if (session.updatedAt >= this.oldest && matches(session, filter, now)) listed.push(session);
    }
    const live = new Map(listed.map((s) => [s.id, isLive(s, now)]));
    listed.sort((a, b) => Number(live.get(b.id)) - Number(live.get(a.id)) || b.updatedAt - a.updatedAt);
    this.view = { ...this.view, ...news, sessions: listed };
    for (const tell of this.listeners) tell();
  }
}

function matches(session: Session, filter: ListFilter, now: number): boolean {
  const has = (text: string | null | undefined, part: string) =>
    text?.toLowerCase().includes(part.toLowerCase()) ?? false;
  // Another one is listed in its place.
  if (session.copyOf) return false;
  if (filter.live && !isLive(session, now)) return false;
  if (filter.agent && !has(session.info.agent, filter.agent)) return false;
  if (filter.project && !has(session.project, filter.project)) return false;
  if (filter.since && session.updatedAt < filter.since) return false;
  return true;
}
