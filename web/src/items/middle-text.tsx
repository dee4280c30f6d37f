import { visible } from "../content/visible";
import styles from "./middle-text.module.css";

export interface MiddleTextProps {
  text: string;
  /** A path keeps its last name, other texts their last letters. */
  path?: boolean;
  mono?: boolean;
}

/** One line that loses its middle when there is no room, so that its end stays readable. */
export function MiddleText({ text, path = false, mono = false }: MiddleTextProps) {
  const line = oneLine(text);
  const at = splitAt(line, path);
  return (
    <span className={mono ? `${styles.text} ${styles.mono}` : styles.text} title={line}>
      <span className={styles.head}>{line.slice(0, at)}</span>
      {at < line.length && <span className={styles.tail}>{line.slice(at)}</span>}
    </span>
  );
}

const MOST = 600;

/** A text as one line of harmless letters; a very long one without its middle. */
export function oneLine(text: string): string {
  const trimmed = text.length > MOST * 2 ? ends(text.trim()) : text.trim();
  const line = visible(trimmed.replace(/\s*[\r\n]+\s*/g, " ↵ ").replace(/\t/g, " "));
  return line.length > MOST * 2 ? ends(line) : line;
}

function ends(text: string): string {
  if (text.length <= MOST) return text;
  return `${text.slice(0, whole(text, MOST / 2))} … ${text.slice(whole(text, text.length - MOST / 2))}`;
}

/** Where the part begins that is never cut; the length of the text when there is none. */
function splitAt(text: string, path: boolean): number {
  if (text.length < 24) return text.length;
  if (path) {
    const slash = Math.max(text.lastIndexOf("/"), text.lastIndexOf("\\"));
    if (slash > 0 && text.length - slash <= 32) return slash;
  }
  return whole(text, text.length - 12);
}

/** Marks, joiners and skin tones belong to the letter before them. */
const JOINED = /^(?:\p{M}|\u200d|\ufe0f|\p{Emoji_Modifier})/u;

/** The nearest place at or before `at` that parts no letter: no pair, no mark and no joined emoji. */
function whole(text: string, at: number): number {
  let place = at;
  for (let tries = 0; tries < 16 && place > 0; tries += 1) {
    const code = text.charCodeAt(place);
    const low = code >= 0xdc00 && code <= 0xdfff;
    if (!low && !JOINED.test(text.slice(place, place + 2)) && text[place - 1] !== "\u200d") return place;
    place -= 1;
  }
  return place;
}
