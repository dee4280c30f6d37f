import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { ApiError, api } from "../api/client";
import type { Socket } from "../api/socket";
import type { Item, Session } from "../api/types";
import type { Leave } from "../state/agents";
import { OpenState, type SessionAccess, SessionProvider } from "../state/context";
import { address, go, type Route } from "../state/route";
import { RunModel } from "../state/run";
import { SessionModel } from "../state/session";
import type { Target } from "./arrive";
import { Aside } from "./aside";
import { Broken, Copied, Gone, NoSuchItem, Nothing, Skeleton } from "./empty";
import { FindBar } from "./find-bar";
import { useKeys } from "./keys";
import { Prompt } from "./prompt";
import { isRunning, stepsOf } from "./rows";
import { SessionHeader } from "./session-header";
import css from "./session-page.module.css";
import { Transcript, type TranscriptHandle } from "./transcript";
import { Waiting } from "./waiting";

interface Props {
  id: string;
  route: Route;
  socket: Socket;
  /** What the list knows of it. */
  session: Session | undefined;
  /** What whoever reads may do. */
  leave: Leave;
  listHidden: boolean;
  onMenu(): void;
  onDelete(): void;
}

/** One session: its header, its transcript, what stands beside it. */
export function SessionPage({ id, route, socket, session, leave, listHidden, onMenu, onDelete }: Props) {
  const model = useMemo(() => new SessionModel(id, socket), [id, socket]);
  const open = useMemo(() => new OpenState(), []);
  const view = useSyncExternalStore(model.subscribe, model.getView);
  const running = isRunning(view, session);
  const [runs, run] = useRun(id, socket, running);
  const [openVersion, setOpenVersion] = useState(0);
  const [target, setTarget] = useState<Target | null>(null);
  const [finding, setFinding] = useState<string | null>(route.query);
  const [beside, setBeside] = useState(false);
  /** An item that somebody asked for and that is not there. */
  const [unknown, setUnknown] = useState<string | null>(null);
  const transcript = useRef<TranscriptHandle>(null);
  const find = useRef<HTMLInputElement>(null);
  const message = useRef<HTMLTextAreaElement>(null);

  useEffect(() => open.subscribe(() => setOpenVersion((n) => n + 1)), [open]);
  useEffect(() => () => model.stop(), [model]);

  /** Goes to an item, wherever it is: below a subagent's call, in folded steps, not loaded yet. */
  const show = useCallback(
    async (item: string, query = "") => {
      setUnknown(null);
      try {
        const found = await withParents(model, item);
        const chain = found.map(({ id }) => id);
        const [wanted, row] = [found[0]!, found.at(-1)!];
        for (const id of chain.slice(1)) open.set(id, true);
        if (wanted.type === "tool_call" || wanted.type === "thinking") open.set(wanted.id, true);
        const goal = { chain, order: row.order, query };
        setTarget(goal);
        if (!model.find(row.id)) await model.jump({ around: row.order });
        const unfold = (items: readonly Item[], id: string) => {
          const steps = stepsOf(items, id);
          if (steps) open.set(steps, true);
        };
        unfold(model.view.items, row.id);
        requestAnimationFrame(() => transcript.current?.reveal(goal));
        for (let at = chain.length - 2; at >= 0; at--) {
          unfold(await model.reach(chain[at + 1]!, chain[at]!), chain[at]!);
        }
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) setUnknown(item);
        if (!model.view.loaded) await model.start({ end: true });
      }
    },
    [model, open],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each step of the address
  useEffect(() => {
    if (route.query) setFinding(route.query);
    if (route.item) void show(route.item, route.query ?? "").then(() => model.readOutline());
    else if (!model.view.loaded) void model.start({ end: true });
  }, [model, route.step]);

  const closeBeside = useCallback(() => setBeside(false), []);
  const asked = useMemo(() => new Set(leave.approve ? run?.requests : []), [leave.approve, run?.requests]);
  const access = useMemo<SessionAccess>(
    () => ({
      sessionId: id,
      blob: (hash) => api.blob(id, hash),
      whole: model.whole,
      children: model.children,
      open,
      running,
      asked,
      link: (item) => location.origin + address(id, item),
    }),
    [id, model, open, running, asked],
  );

  useKeys({
    j: () => transcript.current?.step(1),
    k: () => transcript.current?.step(-1),
    G: () => transcript.current?.toEnd(),
    f: () => (finding === null ? setFinding("") : find.current?.select()),
    m: () => message.current?.focus(),
    o: () => setBeside((now) => !now),
    Escape: () => (beside ? setBeside(false) : setFinding(null)),
  });

  if (view.gone) return <Gone onMenu={onMenu} />;
  return (
    <SessionProvider value={access}>
      <div className={css.page}>
        <main className={css.main} aria-label="Session">
          <SessionHeader
            id={id}
            session={session}
            view={view}
            listHidden={listHidden}
            onMenu={onMenu}
            onDelete={onDelete}
            onFind={() => setFinding((now) => (now === null ? "" : null))}
            onBeside={() => setBeside((now) => !now)}
            beside={beside}
          />
          {finding !== null && (
            <FindBar
              id={id}
              initial={finding}
              input={find}
              current={target?.chain[0]}
              ready={view.loaded}
              onShow={show}
              onClose={() => setFinding(null)}
            />
          )}
          {unknown && !view.gone && <NoSuchItem onClose={() => setUnknown(null)} />}
          {session?.copyOf && <Copied of={session.copyOf} onOpen={(to) => go(address(to))} />}
          {view.error && <Broken error={view.error} onRetry={model.retry} />}
          {!view.loaded && !view.error && <Skeleton />}
          {view.loaded && view.items.length === 0 && !running && <Nothing />}
          {view.loaded && (
            <Transcript
              key={id}
              model={model}
              view={view}
              running={running}
              open={open}
              openVersion={openVersion}
              target={target}
              handle={transcript}
            />
          )}
          <Waiting view={view} run={run} onShow={show} />
          {run && run.state !== "none" && run.allowRun && leave.run && (
            <Prompt
              id={id}
              run={run}
              input={message}
              onDone={runs.wake}
              onSent={() => transcript.current?.toEnd()}
            />
          )}
        </main>
        <Aside outline={view.outline} shown={beside} onShow={show} onClose={closeBeside} />
      </div>
    </SessionProvider>
  );
}

/** How the agent of a session stands, while the session is on the screen. */
function useRun(id: string, socket: Socket, running: boolean) {
  const runs = useMemo(() => new RunModel(id), [id]);
  useEffect(() => {
    runs.start();
    const unlisten = socket.subscribe(() => socket.link === "live" && runs.wake());
    return () => {
      unlisten();
      runs.stop();
    };
  }, [runs, socket]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: somebody may have started it
  useEffect(() => runs.wake(), [runs, running]);
  return [runs, useSyncExternalStore(runs.subscribe, runs.getRun)] as const;
}

/** An item, the call of the subagent that it is below, and so on up to the transcript's own. */
async function withParents(model: SessionModel, id: string): Promise<Item[]> {
  const found = [model.find(id) ?? (await model.whole(id))];
  for (let parent = found[0]!.parentToolCallId; parent && !found.some((item) => item.id === parent); ) {
    const above = model.find(parent) ?? (await model.whole(parent).catch(() => null));
    if (!above) break;
    found.push(above);
    parent = above.parentToolCallId;
  }
  return found;
}
