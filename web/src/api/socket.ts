import { api, isKnown } from "./client";

/** How the page stands to the server. */
export type Link = "connecting" | "live" | "cut" | "refused";

export interface Message {
  type: string;
  subscription?: string;
  cursor?: string | null;
  [field: string]: unknown;
}

interface Wanted {
  /** What to ask for; asked anew after each cut, so it tells the cursor of now. */
  request(): Record<string, unknown>;
  take(message: Message): void;
}

const FIRST_WAIT = 250;
const LONGEST_WAIT = 5000;
/** Without a word for so long, the server is asked for a sign of life; then it has as long again. */
const QUIET = 20_000;

/** One socket for everything that is followed: browsers allow few connections to one host. */
export class Socket {
  link: Link = "connecting";
  private socket: WebSocket | null = null;
  private wanted = new Map<string, Wanted>();
  private listeners = new Set<() => void>();
  private count = 0;
  private failures = 0;
  private heard = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  private opening = false;

  constructor(private address: string) {}

  start(): void {
    window.addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    setInterval(() => this.listen(), QUIET / 4);
    void this.connect();
  }

  /** Follows something until the answer is called. */
  follow(wanted: Wanted): () => void {
    const name = `s${++this.count}`;
    this.wanted.set(name, wanted);
    this.ask(name, wanted);
    return () => {
      if (!this.wanted.delete(name)) return;
      if (this.isOpen()) this.send({ type: "unsubscribe", subscription: name });
    };
  }

  subscribe = (tell: () => void): (() => void) => {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  };

  getLink = (): Link => this.link;

  /** Nobody is logged in: no use in trying. */
  refuse(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
    this.say("refused");
  }

  private async connect(): Promise<void> {
    if (this.closed || this.opening) return;
    clearTimeout(this.timer);
    this.opening = true;
    // A socket can have no header: a ticket opens it, once.
    const ticket = await api.ticket().catch((error) => error as { status?: number });
    this.opening = false;
    if (this.closed || this.socket) return;
    if (!("ticket" in ticket)) {
      if (ticket.status === 401) return this.refuse();
      return this.lost();
    }
    const socket = new WebSocket(`${this.address}?ticket=${encodeURIComponent(ticket.ticket)}`);
    this.socket = socket;
    socket.onopen = () => {
      this.failures = 0;
      this.heard = Date.now();
      this.say("live");
      for (const [name, wanted] of this.wanted) this.ask(name, wanted);
    };
    socket.onmessage = (event) => {
      this.heard = Date.now();
      const message = JSON.parse(event.data) as Message;
      if (message.subscription) this.wanted.get(message.subscription)?.take(message);
    };
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.socket = null;
      // The token was revoked.
      if (event.code === 4001) return this.refuse();
      if (this.closed) return;
      this.lost();
    };
  }

  private lost(): void {
    this.say(this.link === "connecting" && !this.failures ? "connecting" : "cut");
    this.again();
  }

  private again(): void {
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.failures++);
    this.timer = setTimeout(() => void this.connect(), wait * (0.7 + Math.random() * 0.6));
    // A refused upgrade looks like a server that is away: ask which it is.
    if (this.failures === 2) void isKnown().then((known) => known === false && this.refuse());
  }

  private hurry = (): void => {
    if (!this.socket && !this.closed && !document.hidden) void this.connect();
  };

  /** A connection that died without a word is found out by asking. */
  private listen(): void {
    if (!this.isOpen()) return;
    const quiet = Date.now() - this.heard;
    if (quiet > 2 * QUIET) {
      const dead = this.socket;
      this.socket = null;
      dead?.close();
      this.say("cut");
      void this.connect();
    } else if (quiet > QUIET) {
      this.send({ type: "ping" });
    }
  }

  private isOpen(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  private ask(name: string, wanted: Wanted): void {
    if (this.isOpen()) this.send({ type: "subscribe", subscription: name, ...wanted.request() });
  }

  private send(message: object): void {
    this.socket?.send(JSON.stringify(message));
  }

  private say(link: Link): void {
    if (this.link === link) return;
    this.link = link;
    for (const tell of this.listeners) tell();
  }
}
