import { useEffect, useState } from "react";
import { api } from "../api/client";
import type { Hit } from "../api/types";
import { visible, visibleProse } from "../content/visible";
import { titleOf } from "../items/labels";
import type { ListFilter, SessionList } from "../state/list";
import { address } from "../state/route";
import { ForkMark } from "./fork";
import { termsOf } from "./marks";
import css from "./search-results.module.css";
import { follow } from "./session-row";

interface Props {
  query: string;
  filter: ListFilter;
  list: SessionList;
  onChoose(): void;
}

interface Found {
  query: string;
  hits: Hit[];
  next: string | null;
  error?: string;
}

/** What a search over all sessions found, by session. */
export function SearchResults({ query, filter, list, onChoose }: Props) {
  const [found, setFound] = useState<Found | null>(null);
  const { agent, project, since } = filter;
  useEffect(() => {
    const q = query.trim();
    // A lone quote is the beginning of something.
    if (!termsOf(q).length) return;
    const stop = new AbortController();
    // As one types: the answer of before stays until the next is there.
    const timer = setTimeout(async () => {
      try {
        const page = await api.search({ q, agent, project, since, limit: 50 }, stop.signal);
        setFound({ query: q, hits: page.hits, next: page.next ?? null });
      } catch (error) {
        if (!stop.signal.aborted)
          setFound({ query: q, hits: [], next: null, error: (error as Error).message });
      }
    }, 100);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [query, agent, project, since]);

  const more = async () => {
    if (!found?.next) return;
    const page = await api.search({ q: found.query, agent, project, since, limit: 50, after: found.next });
    setFound({ ...found, hits: [...found.hits, ...page.hits], next: page.next ?? null });
  };

  if (!found) return null;
  if (found.error) return <p className={css.note}>The search failed: {found.error}</p>;
  if (!found.hits.length) return <p className={css.note}>Nothing has “{found.query}” in it.</p>;
  return (
    <div className={css.results} data-query={found.query}>
      <p className="hidden-visually" role="status">
        {found.hits.length} hits
      </p>
      {grouped(found.hits).map((group) => (
        <section key={group[0]!.sessionId + group[0]!.itemId}>
          <h2 className={css.title}>
            <span className={css.name}>{nameOf(list, group[0]!)}</span>
            {group[0]!.fork && <ForkMark />}
          </h2>
          <ul>
            {group.map((hit) => {
              const to = address(hit.sessionId, hit.itemId, found.query);
              return (
                <li key={hit.itemId}>
                  <a className={css.hit} href={to} onClick={(event) => follow(event, to, onChoose)}>
                    <span className={css.words}>
                      <span className={css.kind}>{kindOf(hit)}</span>
                      {hit.parts.map((part, i) => {
                        const text = shownOf(hit, part.text);
                        return part.hit ? <mark key={i}>{text}</mark> : text;
                      })}
                    </span>
                  </a>
                </li>
              );
            })}
          </ul>
        </section>
      ))}
      {found.next && (
        <button type="button" className={css.more} onClick={more}>
          Show more
        </button>
      )}
    </div>
  );
}

const KINDS: Record<string, string> = {
  user_message: "you",
  text: "agent",
  thinking: "thought",
  tool_call: "tool",
  todo_list: "todo",
  error: "error",
};

/** As the list calls the session. */
function nameOf(list: SessionList, { sessionId, title, label }: Hit): string {
  const session = list.get(sessionId);
  return titleOf(session ?? { info: { title }, label });
}

/** Commands and paths must not read as something else; prose has marks of its own. */
function shownOf(hit: Hit, text: string): string {
  return hit.type === "tool_call" || hit.type === "permission" ? visible(text) : visibleProse(text);
}

function kindOf(hit: Hit): string {
  return Object.hasOwn(KINDS, hit.type) ? KINDS[hit.type]! : hit.type.replaceAll("_", " ");
}

function grouped(hits: Hit[]): Hit[][] {
  const groups: Hit[][] = [];
  for (const hit of hits) {
    const last = groups.at(-1);
    if (last?.[0]?.sessionId === hit.sessionId) last.push(hit);
    else groups.push([hit]);
  }
  return groups;
}
