import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { api } from "./api/client";
import type { Socket } from "./api/socket";
import css from "./app.module.css";
import { titleOf } from "./items/labels";
import { useLeave } from "./state/agents";
import type { SessionList } from "./state/list";
import { address, go, useRoute } from "./state/route";
import { Connection } from "./ui/connection";
import { Confirm, KeysHelp } from "./ui/dialog";
import { NoSuchPage, Refused, Welcome } from "./ui/empty";
import { Guard } from "./ui/guard";
import { useKeyboard } from "./ui/keyboard";
import { useKeys } from "./ui/keys";
import { STEPS, stepInList } from "./ui/list-keys";
import { NewSession } from "./ui/new-session";
import { SessionPage } from "./ui/session-page";
import { Sidebar } from "./ui/sidebar";

const isNarrow = () => window.matchMedia("(max-width: 900px)").matches;

interface Props {
  socket: Socket;
  list: SessionList;
  /** The address held a ticket that lets nobody in any more. */
  usedTicket: boolean;
}

export function App({ socket, list, usedTicket }: Props) {
  const route = useRoute();
  const view = useSyncExternalStore(list.subscribe, list.getView);
  const link = useSyncExternalStore(socket.subscribe, socket.getLink);
  const [shown, setShown] = useState(() => !isNarrow() || !(route.session || route.unknown));
  const [query, setQuery] = useState("");
  const leave = useLeave(socket);
  const [help, setHelp] = useState(false);
  const [starting, setStarting] = useState(false);
  const [deleting, setDeleting] = useState<string | null>(null);
  const search = useRef<HTMLInputElement>(null);
  const session = route.session ? list.get(route.session) : undefined;

  useEffect(() => {
    if (route.session) list.learn(route.session).catch(() => {});
  }, [route.session, list]);
  const title = session && titleOf(session);
  useEffect(() => {
    document.title = title ? `${title} · narrows` : "narrows";
  }, [title]);

  useKeyboard();
  const onNew = leave.agents ? () => setStarting(true) : undefined;
  useKeys({
    "/": () => {
      setShown(true);
      requestAnimationFrame(() => search.current?.select());
    },
    "?": () => setHelp(true),
    n: () => onNew?.(),
    "[": () => setShown((now) => !now),
    // In a session these move in the transcript, which has keys of its own.
    ...(!route.session &&
      Object.fromEntries(Object.entries(STEPS).map(([key, by]) => [key, () => stepInList(by)]))),
    l: () => {
      setShown(true);
      requestAnimationFrame(() => stepInList(1));
    },
    Enter: (event) => toggle(event.target as HTMLElement),
  });
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!(event.metaKey || event.ctrlKey) || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      setShown(true);
      requestAnimationFrame(() => search.current?.select());
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);

  // On a phone the list would hide what tells how to begin.
  const nothing = view.ready && !route.session && (view.facets?.total ?? view.sessions.length) === 0;

  if (link === "refused") return route.unknown ? <NoSuchPage /> : <Refused usedTicket={usedTicket} />;
  return (
    <div className={css.app}>
      <Connection socket={socket} />
      <Sidebar
        list={list}
        view={view}
        chosen={route.session}
        query={query}
        onQuery={setQuery}
        input={search}
        shown={shown && !(nothing && isNarrow())}
        onNew={onNew}
        onClose={() => setShown(false)}
        onLogout={() => {
          // Also where the server does not answer: this browser forgets its key.
          void api.logout().catch(() => {});
          socket.refuse();
        }}
      />
      <Guard of={route.step}>
        {route.unknown ? (
          <NoSuchPage onMenu={() => setShown(true)} />
        ) : route.session ? (
          <SessionPage
            key={route.session}
            id={route.session}
            route={route}
            socket={socket}
            session={session}
            leave={leave}
            onMenu={() => setShown(true)}
            onDelete={() => setDeleting(route.session)}
            listHidden={!shown}
          />
        ) : (
          <Welcome list={view} onMenu={() => setShown(true)} onNew={onNew} />
        )}
      </Guard>
      {help && <KeysHelp onClose={() => setHelp(false)} />}
      {starting && leave.agents && (
        <NewSession
          agents={leave.agents}
          onStarted={(id) => {
            setStarting(false);
            if (isNarrow()) setShown(false);
            go(address(id));
          }}
          onClose={() => setStarting(false)}
        />
      )}
      {deleting && <Delete id={deleting} list={list} onClose={() => setDeleting(null)} />}
    </div>
  );
}

function Delete({ id, list, onClose }: { id: string; list: SessionList; onClose(): void }) {
  const [error, setError] = useState<string | null>(null);
  const session = list.get(id);
  const remove = async () => {
    try {
      await list.remove(id);
      go("/", true);
      onClose();
    } catch (failure) {
      setError(`It was not deleted: ${(failure as Error).message}`);
    }
  };
  return (
    <Confirm
      title="Delete this session?"
      text={`“${session ? titleOf(session) : id}” is removed from narrows for good. The agent's own files stay.`}
      action="Delete"
      error={error}
      onConfirm={remove}
      onClose={onClose}
    />
  );
}

/** Enter on a row opens or closes it. */
function toggle(target: HTMLElement): void {
  if (target.matches("[data-row]")) target.querySelector<HTMLElement>("button[aria-expanded]")?.click();
  else if (target.matches("button, a, summary")) target.click();
}
