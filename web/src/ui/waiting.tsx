import { Hand } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { Item, RunState } from "../api/types";
import { visible } from "../content/visible";
import { useSession } from "../state/context";
import type { View } from "../state/session";
import { Asked, type AskedItem } from "./asked";
import css from "./waiting.module.css";

/** How long is told that somebody else was faster. */
const TOLD = 6000;

interface Props {
  view: View;
  /** How the agent stands, if it runs here. */
  run: RunState | null;
  onShow(item: string): void;
}

/** What needs a person, wherever one reads. It stands outside of what an agent can write. */
export function Waiting({ view, run, onShow }: Props) {
  const { asked } = useSession();
  const open = view.items.filter(isOpen);
  const known = new Set(view.items.map((item) => item.id));
  const elsewhere = (view.outline?.waiting ?? []).filter((id) => !known.has(id));
  const far = useFar(elsewhere[0], !open.length);
  const all = far ? [...open, far] : open;
  // Whatever else is known of the session: what is asked is answered or taken back.
  const here = all.find((item) => item.requestId && asked?.has(item.requestId));
  const [mine, setMine] = useState<string>();
  const faster = useFaster(here?.id, mine, run);

  if (here) {
    const call = view.items.find((item) => item.id === here.toolCallId);
    return (
      <section className={css.pinned} aria-label="Waiting for you">
        <Asked
          key={here.id}
          item={here}
          call={call}
          more={(asked?.size ?? 1) - 1}
          reasons={run?.denyReasons}
          onAnswered={() => setMine(here.id)}
        />
      </section>
    );
  }
  const first = open[0]?.id ?? elsewhere[0];
  if (!first) {
    if (!faster) return null;
    return (
      <p className={css.told} role="status">
        It was answered elsewhere, or is not asked any more.
      </p>
    );
  }
  // Answered, and not yet taken by the agent.
  if (first === mine) return null;
  const count = open.length + elsewhere.length;
  return (
    <section className={css.bar} aria-label="Waiting for you">
      <Hand size={16} aria-hidden />
      <p>
        {count === 1 ? "The agent waits for an answer." : `The agent waits for ${count} answers.`}
        <span>{open[0] && ` ${wordsOf(open[0])}`}</span>
      </p>
      <button type="button" onClick={() => onShow(first)}>
        Show
      </button>
    </section>
  );
}

function isOpen(item: Item): item is AskedItem {
  return item.type === "permission" || (item.type === "question" && !item.answers && !!item.requestId);
}

function wordsOf(item: AskedItem): string {
  if (item.type === "permission") return visible(item.title ?? "");
  return visible(item.questions[0]?.question ?? "");
}

/** A question that is not among the items here: a subagent asks, or it was long ago. */
function useFar(id: string | undefined, wanted: boolean): AskedItem | undefined {
  const { whole, asked } = useSession();
  const [found, setFound] = useState<Item>();
  const ask = wanted && !!asked?.size;
  useEffect(() => {
    if (!id || !ask) return;
    let stale = false;
    whole(id).then(
      (item) => stale || setFound(item),
      () => {},
    );
    return () => {
      stale = true;
    };
  }, [whole, id, ask]);
  return found && found.id === id && isOpen(found) ? found : undefined;
}

/** Whether a question went away that was not answered here, while the agent goes on. */
function useFaster(shown: string | undefined, mine: string | undefined, run: RunState | null): boolean {
  const before = useRef<string>(undefined);
  /** Questions that went away because somebody stopped the turn or the agent. */
  const stopped = useRef<string>(undefined);
  const [faster, setFaster] = useState(false);
  const goesOn = run?.state !== "ended" && !run?.cancelling;
  useEffect(() => {
    const gone = before.current;
    before.current = shown;
    if (shown && !goesOn) stopped.current = shown;
    if (shown) setFaster(false);
    else if (gone && gone !== mine && gone !== stopped.current && goesOn) setFaster(true);
  }, [shown, mine, goesOn]);
  useEffect(() => {
    if (!faster) return;
    const timer = setTimeout(() => setFaster(false), TOLD);
    return () => clearTimeout(timer);
  }, [faster]);
  return faster && goesOn;
}
