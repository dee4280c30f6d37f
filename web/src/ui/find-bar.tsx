import { ChevronDown, ChevronUp, X } from "lucide-react";
import { type RefObject, useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import type { Hit } from "../api/types";
import css from "./find-bar.module.css";
import { termsOf, useMarks } from "./marks";

interface Props {
  id: string;
  initial: string;
  input: RefObject<HTMLInputElement | null>;
  /** The item that was gone to last. */
  current: string | undefined;
  /** There is something on the screen in which words can be marked. */
  ready: boolean;
  onShow(item: string, query: string): void;
  onClose(): void;
}

/** Looks for words in one session, also where it is not loaded. */
export function FindBar({ id, initial, input, current, ready, onShow, onClose }: Props) {
  const [text, setText] = useState(initial);
  const [found, setFound] = useState<{ hits: Hit[]; more: boolean; of: string; error?: string } | null>(null);
  const [at, setAt] = useState(-1);
  const last = useRef(current);
  last.current = current;
  // Whoever comes from a search has found already, and reads.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it is opened
  useEffect(() => {
    if (!initial) input.current?.focus();
  }, []);
  useEffect(() => setText(initial), [initial]);
  useMarks(text, ready);

  useEffect(() => {
    const q = text.trim();
    setAt(-1);
    // A lone quote is the beginning of something.
    if (!termsOf(q).length) return setFound(null);
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const page = await api.search({ q, session: id, limit: 100 }, stop.signal);
        const hits = [...page.hits].sort((a, b) => a.order - b.order);
        setFound({ hits, more: page.next != null, of: q });
        setAt(hits.findIndex((hit) => hit.itemId === last.current));
      } catch (error) {
        if (stop.signal.aborted) return;
        setFound({ hits: [], more: false, of: q, error: (error as Error).message });
      }
    }, 120);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, id]);

  const count = found?.hits.length ?? 0;
  const step = (by: number) => {
    if (!count) return;
    const next = at < 0 ? (by > 0 ? 0 : count - 1) : (at + by + count) % count;
    setAt(next);
    onShow(found!.hits[next]!.itemId, found!.of);
  };
  return (
    <search className={css.bar}>
      <input
        ref={input}
        className={css.input}
        type="search"
        value={text}
        placeholder="Find in this session"
        aria-label="Find in this session"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") onClose();
        }}
      />
      <span className={css.count} role="status">
        {found &&
          (count
            ? `${at < 0 ? "" : `${at + 1} of `}${count}${found.more ? "+" : ""}`
            : (found.error ?? "Nothing found"))}
      </span>
      <button type="button" onClick={() => step(-1)} aria-label="The one before" disabled={!count}>
        <ChevronUp size={16} aria-hidden />
      </button>
      <button type="button" onClick={() => step(1)} aria-label="The next one" disabled={!count}>
        <ChevronDown size={16} aria-hidden />
      </button>
      <button type="button" onClick={onClose} aria-label="Close find">
        <X size={16} aria-hidden />
      </button>
    </search>
  );
}
