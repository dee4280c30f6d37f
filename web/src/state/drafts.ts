import type { Picture } from "./pictures";

/** What somebody is about to say. */
export interface Draft {
  text: string;
  pictures: readonly Picture[];
  /** Under which it was sent in vain: sent once more unchanged, it is the same message. */
  key?: string;
}

export const EMPTY: Draft = { text: "", pictures: [] };
/** Messages that are remembered to be taken back whole. */
const MAX_SENT = 50;

const drafts = new Map<string, Draft>();
const sent = new Map<string, Draft>();

/** Drafts live as long as the page: what is half said is nobody else's. */
export const draftOf = (session: string): Draft => drafts.get(session) ?? EMPTY;

export function keepDraft(session: string, draft: Draft): void {
  if (draft.text || draft.pictures.length) drafts.set(session, draft);
  else drafts.delete(session);
}

export function keepSent(session: string, message: string, draft: Draft): void {
  sent.set(`${session}/${message}`, draft);
  for (const key of sent.keys()) {
    if (sent.size <= MAX_SENT) break;
    sent.delete(key);
  }
}

/** What was said with a message of this page. */
export function sentWith(session: string, message: string): Draft | undefined {
  const draft = sent.get(`${session}/${message}`);
  return draft && { text: draft.text, pictures: draft.pictures };
}
