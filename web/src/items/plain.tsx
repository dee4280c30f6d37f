import type { ReactNode } from "react";
import { SafeLink } from "../content/link";
import { visibleProse } from "../content/visible";
import styles from "./plain.module.css";

const ADDRESS = /https?:\/\/[^\s<>"'`\p{Cc}]+/gu;

/** A text as it was typed; only its addresses become links. */
export function Plain({ text }: { text: string }) {
  return <div className={styles.plain}>{linked(text)}</div>;
}

export function linked(text: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const found of text.matchAll(ADDRESS)) {
    // A full stop ends the sentence, not the address.
    const url = found[0].replace(/[.,;:!?)\]}*_]+$/, "");
    if (found.index > from) parts.push(visibleProse(text.slice(from, found.index)));
    parts.push(
      <SafeLink key={found.index} href={url}>
        {url}
      </SafeLink>,
    );
    from = found.index + url.length;
  }
  if (from < text.length) parts.push(visibleProse(text.slice(from)));
  return parts;
}

/** The first lines of a text that is too long to show, nothing when it is not. */
export function beginning(text: string, lines: number, letters = lines * 120): string | undefined {
  let at = -1;
  for (let line = 0; line < lines; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) break;
  }
  // A few more lines are no reason to fold.
  const long = at >= 0 && text.indexOf("\n", text.indexOf("\n", at + 1) + 1) > at;
  if (!long && text.length <= letters * 1.2) return undefined;
  const end = long ? Math.min(at, letters) : letters;
  const pair = text.charCodeAt(end) >= 0xdc00 && text.charCodeAt(end) <= 0xdfff;
  return text.slice(0, pair ? end - 1 : end);
}
