import { ApiError, api } from "../api/client";
import type { MessageTaken } from "../api/types";
import type { Draft } from "./drafts";

const PAUSE = 800;

/** Pages without TLS have no `randomUUID`. */
export function newKey(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sends a message once, even if the answer gets lost on its way. */
export async function send(session: string, draft: Draft, key: string): Promise<MessageTaken> {
  const images = draft.pictures.map(({ mimeType, data }) => ({ mimeType, data }));
  const message = { content: draft.text, ...(images.length > 0 && { images }) };
  try {
    return await api.send(session, message, key);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 0) throw error;
    await new Promise((go) => setTimeout(go, PAUSE));
    return api.send(session, message, key);
  }
}
