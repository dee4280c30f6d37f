import { LogOut, PanelLeftClose, Plus, Search, X } from "lucide-react";
import { type RefObject, useMemo } from "react";
import { VList } from "virtua";
import type { Session } from "../api/types";
import { formatCount } from "../items/labels";
import { isLive, type ListView, type SessionList } from "../state/list";
import { dayName } from "../when";
import { Filters } from "./filters";
import { EDGES, edgeOfList, firstFound, inList, isTop, LIST, STEPS, stepInList } from "./list-keys";
import { SearchResults } from "./search-results";
import { SessionRow } from "./session-row";
import css from "./sidebar.module.css";

interface Props {
  list: SessionList;
  view: ListView;
  chosen: string | null;
  query: string;
  onQuery(query: string): void;
  input: RefObject<HTMLInputElement | null>;
  shown: boolean;
  /** Starts an agent, where one may. */
  onNew?: () => void;
  onClose(): void;
  onLogout(): void;
}

type Entry = { heading: string } | { session: Session };

/** All sessions: live ones first, then by day; or what a search found. */
export function Sidebar(props: Props) {
  const { list, view, chosen, query, onQuery, input, shown, onNew, onClose, onLogout } = props;
  const entries = useMemo(() => listed(view.sessions), [view.sessions]);
  return (
    <nav
      className={shown ? `${css.sidebar} ${css.shown}` : css.sidebar}
      aria-label="Sessions"
      {...{ [LIST]: "" }}
      onKeyDown={(event) => {
        if (!inList(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
        const by = STEPS[event.key];
        const edge = EDGES[event.key];
        if (edge) edgeOfList(edge);
        else if (!by) return;
        else if (by < 0 && isTop(event.target)) input.current?.focus();
        else stepInList(by);
        // Else the session beside the list would take it.
        event.preventDefault();
      }}
    >
      <div className={css.top}>
        <div className={css.search}>
          <Search size={15} aria-hidden />
          <input
            ref={input}
            type="search"
            value={query}
            placeholder="Search all sessions"
            aria-label="Search all sessions"
            onChange={(event) => onQuery(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                if (query) onQuery("");
                else event.currentTarget.blur();
              } else if (event.key === "ArrowDown" && stepInList(1)) {
                event.preventDefault();
              } else if (event.key === "Enter" && query.trim()) {
                firstFound(query.trim())?.click();
              }
            }}
          />
          {query ? (
            <button type="button" onClick={() => onQuery("")} aria-label="Clear the search">
              <X size={14} aria-hidden />
            </button>
          ) : (
            <kbd aria-hidden>/</kbd>
          )}
        </div>
        <button type="button" className={css.close} onClick={onClose} aria-label="Hide the list of sessions">
          <PanelLeftClose size={17} aria-hidden />
        </button>
      </div>
      {onNew && (
        <button type="button" className={css.new} onClick={onNew}>
          <Plus size={15} aria-hidden /> New session
          <kbd aria-hidden>n</kbd>
        </button>
      )}
      <Filters list={list} view={view} />
      {view.sources?.indexing && (
        <p className={css.note} role="status">
          Reading {formatCount(view.sources.indexing.done)} of {formatCount(view.sources.indexing.total)}{" "}
          files…
        </p>
      )}
      {query.trim() ? (
        <SearchResults query={query} filter={view.filter} list={list} onChoose={onClose} />
      ) : (
        <Sessions view={view} entries={entries} list={list} chosen={chosen} onChoose={onClose} />
      )}
      <button type="button" className={css.out} onClick={onLogout}>
        <LogOut size={14} aria-hidden /> Log out
      </button>
    </nav>
  );
}

interface SessionsProps {
  view: ListView;
  entries: Entry[];
  list: SessionList;
  chosen: string | null;
  onChoose(): void;
}

function Sessions({ view, entries, list, chosen, onChoose }: SessionsProps) {
  if (view.error && !entries.length)
    return <p className={css.note}>The list could not be read: {view.error}</p>;
  if (!view.ready) return <Loading />;
  if (!entries.length) {
    const filtered = Object.values(view.filter).some(Boolean);
    return <p className={css.note}>{filtered ? "No session is like that." : "No sessions yet."}</p>;
  }
  return (
    <VList
      className={css.list}
      data={entries}
      tabIndex={-1}
      onScroll={(offset) => {
        if (offset > entries.length * 46 - 1600) void list.more();
      }}
    >
      {(entry: Entry) =>
        "heading" in entry ? (
          <h2 key={`day:${entry.heading}`} className={css.heading}>
            {entry.heading}
          </h2>
        ) : (
          <SessionRow
            key={entry.session.id}
            session={entry.session}
            chosen={entry.session.id === chosen}
            onChoose={onChoose}
          />
        )
      }
    </VList>
  );
}

function Loading() {
  return (
    <div className={css.loading} role="status" aria-label="Loading the sessions">
      {[1, 2, 3, 4, 5, 6].map((n) => (
        <i key={n} />
      ))}
    </div>
  );
}

function listed(sessions: readonly Session[]): Entry[] {
  const now = Date.now();
  const entries: Entry[] = [];
  let heading = "";
  for (const session of sessions) {
    const name = isLive(session, now) ? "Live" : dayName(session.updatedAt, now);
    if (name !== heading) entries.push({ heading: name });
    heading = name;
    entries.push({ session });
  }
  return entries;
}
