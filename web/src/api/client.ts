import { credentials, forgetLogin, keepLogin } from "./login";
import type {
  AgentList,
  AgentSessions,
  Answer,
  Done,
  Facets,
  Item,
  ItemPage,
  MessageTaken,
  NewRun,
  Outline,
  RunChange,
  RunState,
  SearchPage,
  SendMessage,
  Session,
  SessionPage,
  Sources,
} from "./types";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The server's word for it, as `ALREADY_ANSWERED`. */
    readonly code = "",
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | undefined | null>;

interface More {
  signal?: AbortSignal;
  /** What is sent along, as JSON. */
  body?: unknown;
  /** The same key, the same request once. */
  key?: string;
}

async function ask<T>(method: string, path: string, query: Query = {}, more: More = {}): Promise<T> {
  const { signal, body, key } = more;
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  }
  const address = params.size ? `${path}?${params}` : path;
  let response: Response;
  try {
    const headers = credentials();
    if (body !== undefined) headers["content-type"] = "application/json";
    if (key) headers["idempotency-key"] = key;
    const sent = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(address, { method, headers, signal, body: sent });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "narrows does not answer");
  }
  if (!response.ok) throw await refusal(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function refusal(response: Response): Promise<ApiError> {
  const { status, statusText } = response;
  try {
    const { error } = await response.json();
    return new ApiError(status, error?.message ?? statusText, error?.code);
  } catch {
    return new ApiError(status, statusText || `status ${status}`);
  }
}

const one = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;

export interface SessionFilter {
  agent?: string;
  project?: string;
  status?: string;
  text?: string;
  since?: number;
}

export const api = {
  sessions: (filter: SessionFilter & { after?: string; limit?: number }, signal?: AbortSignal) =>
    ask<SessionPage>("GET", "/api/sessions", { ...filter }, { signal }),
  session: (id: string) => ask<Session>("GET", one(id)),
  remove: (id: string) => ask<void>("DELETE", one(id)),
  items: (id: string, query: Query) => ask<ItemPage>("GET", `${one(id)}/items`, query),
  item: (id: string, item: string) => ask<Item>("GET", `${one(id)}/items/${encodeURIComponent(item)}`),
  outline: (id: string, after?: number) => ask<Outline>("GET", `${one(id)}/outline`, { after }),
  search: (
    query: {
      q: string;
      session?: string;
      agent?: string;
      project?: string;
      since?: number;
      after?: string;
      limit?: number;
    },
    signal?: AbortSignal,
  ) => ask<SearchPage>("GET", "/api/search", { ...query }, { signal }),
  facets: () => ask<Facets>("GET", "/api/facets"),
  sources: () => ask<Sources>("GET", "/api/sources"),
  me: () => ask<{ token: string; scopes: string[] }>("GET", "/api/me"),
  /** The key is void afterwards, in every tab; this browser forgets it as soon as the request has it. */
  logout: () => {
    const asked = ask<void>("POST", "/api/logout");
    forgetLogin();
    return asked;
  },
  /** Opens one request that can have no header, once and soon: a socket, a download. */
  ticket: () => ask<{ ticket: string }>("POST", "/api/request-tickets"),
  agents: () => ask<AgentList>("GET", "/api/agents"),
  agentSessions: (agent: string, signal: AbortSignal) =>
    ask<AgentSessions>("GET", `/api/agents/${encodeURIComponent(agent)}/sessions`, {}, { signal }),
  start: (run: NewRun) => ask<Session>("POST", "/api/runs", {}, { body: run }),
  run: (id: string, after: number | undefined, signal: AbortSignal) =>
    ask<RunState>("GET", `${one(id)}/run`, { after }, { signal }),
  choose: (id: string, change: RunChange) => ask<Done>("PATCH", `${one(id)}/run`, {}, { body: change }),
  send: (id: string, message: SendMessage, key: string) =>
    ask<MessageTaken>("POST", `${one(id)}/send-message`, { wait: false }, { body: message, key }),
  cancel: (id: string) => ask<Done>("POST", `${one(id)}/cancel`),
  stop: (id: string) => ask<Done>("POST", `${one(id)}/stop`),
  takeBack: (id: string, message: string) =>
    ask<Done>("DELETE", `${one(id)}/queue/${encodeURIComponent(message)}`),
  answer: (id: string, request: string, answer: Answer) =>
    ask<Done>("POST", `${one(id)}/permissions/${encodeURIComponent(request)}`, {}, { body: answer }),
  blob: (id: string, hash: string) => `${one(id)}/blobs/${encodeURIComponent(hash)}`,
  exported: (id: string, format: string) => `${one(id)}/export?format=${format}`,
};

/** Trades the ticket of the printed address for a key of this browser; true when it is void. */
export async function login(): Promise<boolean> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return false;
  // Out of the address bar first: it must not be copied along, or be tried twice.
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const { token } = await ask<{ token: string }>("POST", "/api/login", {}, { body: { ticket } });
    keepLogin(token);
    return false;
  } catch (error) {
    return error instanceof ApiError && error.status === 401;
  }
}

/** Whether the server knows this browser; null when it does not answer. */
export async function isKnown(): Promise<boolean | null> {
  try {
    const { status } = await fetch("/api/me", { headers: credentials() });
    if (status === 401) forgetLogin();
    return status !== 401;
  } catch {
    return null;
  }
}

/** The bytes of a picture. */
export async function picture(address: string, signal: AbortSignal): Promise<Blob> {
  const response = await fetch(address, { headers: credentials(), signal });
  if (!response.ok) throw await refusal(response);
  return response.blob();
}

/** Saves what an address gives as a file. */
export async function download(address: string): Promise<void> {
  const { ticket } = await api.ticket();
  const link = document.createElement("a");
  link.href = `${address}${address.includes("?") ? "&" : "?"}ticket=${encodeURIComponent(ticket)}`;
  link.download = "";
  link.click();
}
