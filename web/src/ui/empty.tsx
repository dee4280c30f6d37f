import { CircleAlert, Menu as MenuIcon, Plus } from "lucide-react";
import { visible } from "../content/visible";
import { formatCount } from "../items/labels";
import type { ListView } from "../state/list";
import css from "./empty.module.css";

/** The shape of a transcript that is on its way. */
export function Skeleton() {
  return (
    <div className={css.skeleton} aria-busy="true" role="status" aria-label="Loading the session">
      {[92, 64, 78, 40, 88, 56].map((width) => (
        <i key={width} data-width={width} />
      ))}
    </div>
  );
}

export function Nothing() {
  return (
    <div className={css.center}>
      <h2>Nothing here yet</h2>
      <p>The session has no items. What the agent says and does appears here as it happens.</p>
    </div>
  );
}

export function Gone({ onMenu }: { onMenu(): void }) {
  return (
    <main className={css.center} aria-label="Session">
      <h1>This session is not here</h1>
      <p>It was deleted, or the link is of another narrows.</p>
      <button type="button" className={css.button} onClick={onMenu}>
        <MenuIcon size={16} aria-hidden /> All sessions
      </button>
    </main>
  );
}

export function Broken({ error, onRetry }: { error: string; onRetry(): void }) {
  return (
    <div className={css.broken} role="alert">
      <CircleAlert size={16} aria-hidden />
      <span>The session could not be read: {error}. What is shown stays.</span>
      <button type="button" className={css.button} onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}

/** The address names an item that the session does not have. */
export function NoSuchItem({ onClose }: { onClose(): void }) {
  return (
    <div className={`${css.broken} ${css.note}`} role="status">
      <CircleAlert size={16} aria-hidden />
      <span>The link names an item that is not in this session. Its end is shown instead.</span>
      <button type="button" className={css.button} onClick={onClose}>
        Close
      </button>
    </div>
  );
}

/** The session came another way too, and the other one is in the list. */
export function Copied({ of, onOpen }: { of: string; onOpen(to: string): void }) {
  return (
    <div className={`${css.broken} ${css.note}`} role="status">
      <CircleAlert size={16} aria-hidden />
      <span>This session came by two ways. The list shows it as it came by the other one.</span>
      <button type="button" className={css.button} onClick={() => onOpen(of)}>
        Open that
      </button>
    </div>
  );
}

/** The address is none of this page. */
export function NoSuchPage({ onMenu }: { onMenu?: () => void }) {
  return (
    <main className={css.center}>
      <h1>Not found</h1>
      <p>There is nothing at this address. Perhaps it was cut off, or it is of another narrows.</p>
      {onMenu ? (
        <button type="button" className={`${css.button} ${css.narrow}`} onClick={onMenu}>
          <MenuIcon size={16} aria-hidden /> All sessions
        </button>
      ) : (
        <p>
          <a href="/">To the sessions</a>
        </p>
      )}
    </main>
  );
}

/** Nobody is logged in. */
export function Refused({ usedTicket = false }: { usedTicket?: boolean }) {
  return (
    <main className={css.center}>
      <h1>Not logged in</h1>
      {usedTicket ? (
        <p>
          The address that brought you here was used before, or is older than ten minutes: each lets one
          browser in, once. For another one, in a terminal:
        </p>
      ) : (
        <p>This page shows what your agents did, so it needs a key. In a terminal:</p>
      )}
      <pre className={css.command}>narrows login-url</pre>
      <p>It prints an address that lets this browser in, once.</p>
    </main>
  );
}

interface WelcomeProps {
  list: ListView;
  onMenu(): void;
  /** Starts an agent, where one may. */
  onNew?: () => void;
}

/** Nothing is chosen, or there is nothing to choose. */
export function Welcome({ list, onMenu, onNew }: WelcomeProps) {
  if (!list.ready) return <Skeleton />;
  if ((list.facets?.total ?? list.sessions.length) > 0) {
    return (
      <main className={css.center}>
        <h1>Choose a session</h1>
        <p>
          Live and past ones are in the list. <kbd>/</kbd> searches all of them, <kbd>?</kbd> lists the keys.
        </p>
        <button type="button" className={`${css.button} ${css.narrow}`} onClick={onMenu}>
          <MenuIcon size={16} aria-hidden /> All sessions
        </button>
      </main>
    );
  }
  return <FirstStart list={list} onNew={onNew} />;
}

function FirstStart({ list, onNew }: Pick<WelcomeProps, "list" | "onNew">) {
  const { sources } = list;
  return (
    <main className={css.center}>
      <h1>No sessions yet</h1>
      {sources?.indexing && (
        <p role="status">
          Reading {formatCount(sources.indexing.done)} of {formatCount(sources.indexing.total)} files…
        </p>
      )}
      {onNew && (
        <button type="button" className={`${css.button} ${css.narrow}`} onClick={onNew}>
          <Plus size={16} aria-hidden /> New session
        </button>
      )}
      {sources?.following ? (
        <>
          <p>narrows looked here, and goes on looking:</p>
          <ul className={css.folders}>
            {sources.folders.map((folder) => (
              <li key={folder.path}>
                <code>{visible(folder.path)}</code>{" "}
                <span>{folder.exists ? "nothing in it yet" : "not there"}</span>
              </li>
            ))}
          </ul>
          <p>Start Claude Code in any folder and its session appears here by itself. Or try one of these:</p>
        </>
      ) : (
        <p>Following the agents of this machine is off. Give it something to show:</p>
      )}
      <pre className={css.command}>
        {"narrows demo                # a sample session\nnarrows ingest FILE         # a recorded one"}
      </pre>
    </main>
  );
}
