import type { Facets, Item, ItemPage, Outline, SearchPage, Session, SessionPage, Sources } from "./types";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | undefined | null>;

async function ask<T>(method: string, path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  }
  const address = params.size ? `${path}?${params}` : path;
  let response: Response;
  try {
    // What changes something needs a header that no form and no link can send.
    const headers: HeadersInit = method === "GET" ? {} : { "x-narrows": "page" };
    response = await fetch(address, { method, headers, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "narrows does not answer");
  }
  if (!response.ok) throw new ApiError(response.status, await reason(response));
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function reason(response: Response): Promise<string> {
  try {
    const body = await response.json();
    return body.error?.message ?? response.statusText;
  } catch {
    return response.statusText || `status ${response.status}`;
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
    ask<SessionPage>("GET", "/api/sessions", { ...filter }, signal),
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
  ) => ask<SearchPage>("GET", "/api/search", { ...query }, signal),
  facets: () => ask<Facets>("GET", "/api/facets"),
  sources: () => ask<Sources>("GET", "/api/sources"),
  me: () => ask<{ token: string; scopes: string[] }>("GET", "/api/me"),
  logout: () => ask<void>("POST", "/api/logout"),
  blob: (id: string, hash: string) => `${one(id)}/blobs/${encodeURIComponent(hash)}`,
  exported: (id: string, format: string) => `${one(id)}/export?format=${format}`,
};

/** Trades the ticket of the printed address for the browser's cookie. */
export async function login(): Promise<void> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return;
  // Out of the address bar first: it must not be copied along, or be tried twice.
  history.replaceState(null, "", location.pathname + location.search);
  await fetch("/api/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ticket }),
  });
}
