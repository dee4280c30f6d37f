import { ArrowDown } from "lucide-react";
import {
  memo,
  type RefObject,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { ItemView } from "../items/item";
import { StepsHeader } from "../items/steps-view";
import type { OpenState } from "../state/context";
import type { SessionModel, View } from "../state/session";
import { arrive, type Target } from "./arrive";
import { Guard } from "./guard";
import { Rail } from "./rail";
import { type Line, lineOf, linesOf } from "./rows";
import { useStick } from "./stick";
import css from "./transcript.module.css";
import { TurnEnd, Working } from "./turn";

/** What others may ask of the transcript. */
export interface TranscriptHandle {
  /** Brings an item into sight, if its surroundings are loaded. */
  reveal(target: Target): boolean;
  /** Goes on by so many rows. */
  step(by: number): void;
  toEnd(): void;
}

interface Props {
  model: SessionModel;
  view: View;
  running: boolean;
  open: OpenState;
  openVersion: number;
  /** An item to begin at, instead of the end. */
  target: Target | null;
  handle: RefObject<TranscriptHandle | null>;
}

/** Rows from the edge of what is loaded at which more is fetched. */
const EDGE = 30;

export function Transcript({ model, view, running, open, openVersion, target, handle }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version tells that something was opened
  const lines = useMemo(
    () => linesOf(view, running, (key) => open.get(key)),
    [view, running, open, openVersion],
  );
  const [arriving, setArriving] = useState(false);
  // On the way to an item one may pass the end.
  const stick = useStick(scroller, content, !target, !view.after && !arriving);
  const shift = useShift(lines, view.place);
  const shown = useRef(lines);
  shown.current = lines;

  const stop = useRef(() => {});
  const revealed = useRef<Target | null>(null);
  useEffect(() => () => stop.current(), []);
  const reveal = useCallback(
    (goal: Target) => {
      const place = () => lineOf(shown.current, goal.chain.at(-1) ?? "", goal.order);
      const near = () => list.current?.scrollToIndex(place(), { align: "start", offset: -72 });
      if (place() < 0 || !scroller.current) return false;
      revealed.current = goal;
      stop.current();
      stick.release();
      setArriving(true);
      near();
      stop.current = arrive(scroller.current, goal, { near, found: mark, ended: () => setArriving(false) });
      return true;
    },
    [stick.release],
  );

  const step = useCallback(
    (by: number) => {
      const rows = shown.current;
      const now = focused(content.current, rows);
      const top = list.current?.findItemIndex((list.current?.scrollOffset ?? 0) + 80) ?? 0;
      const next = Math.max(0, Math.min(rows.length - 1, now < 0 ? top : now + by));
      const row = rows[next];
      if (!row) return;
      if (by < 0) stick.release();
      list.current?.scrollToIndex(next, { align: "nearest" });
      requestAnimationFrame(() => focusRow(content.current, row.key));
    },
    [stick.release],
  );

  const toEnd = useCallback(() => {
    if (view.after) void model.jump({ end: true }).then(() => stick.toEnd());
    else stick.toEnd();
  }, [model, view.after, stick.toEnd]);
  useImperativeHandle(handle, () => ({ reveal, step, toEnd }), [reveal, step, toEnd]);

  // A new place: at the item that was asked for, somewhere in the middle, or at the end.
  const settled = useRef(0);
  useLayoutEffect(() => {
    if (settled.current === view.place) return;
    settled.current = view.place;
    if (target && target !== revealed.current && reveal(target)) return;
    if (view.at === null) return stick.toEnd();
    // Who was at the end is there no more: it would draw the reader along with all that is loaded.
    stick.release();
    list.current?.scrollToIndex(lineOf(shown.current, "", view.at), { align: "center" });
  }, [view.place, view.at, target, reveal, stick.toEnd, stick.release]);

  const look = useCallback(() => {
    const { current } = list;
    if (!current) return;
    const first = current.findItemIndex(current.scrollOffset);
    const last = current.findItemIndex(current.scrollOffset + current.viewportSize);
    model.reading = stick.stuck ? Number.POSITIVE_INFINITY : (shown.current[first]?.order ?? 0);
    if (first < EDGE) void model.more("before");
    if (last > shown.current.length - EDGE) void model.more("after");
  }, [model, stick.stuck]);
  useEffect(() => {
    if (lines.length) look();
  }, [lines, look]);

  return (
    <div className={css.frame}>
      <div className={css.scroller} ref={scroller} tabIndex={-1} data-testid="transcript">
        <div ref={content} className={css.content}>
          <Virtualizer
            key={view.place}
            ref={list}
            scrollRef={scroller}
            data={lines}
            shift={shift}
            bufferSize={600}
            as="ol"
            item="li"
            onScroll={look}
          >
            {(line: Line) => <RowView key={line.key} line={line} />}
          </Virtualizer>
        </div>
      </div>
      {(view.before || view.after) && <Rail model={model} view={view} list={list} lines={lines} />}
      {(!stick.stuck || view.after) && view.loaded && (
        <button type="button" className={css.latest} onClick={toEnd}>
          <ArrowDown size={16} aria-hidden /> Jump to latest
          {view.behind > 0 && <span className={css.count}>{view.behind} new</span>}
        </button>
      )}
    </div>
  );
}

const RowView = memo(
  function RowView({ line }: { line: Line }) {
    return (
      <div
        className={css.row}
        data-row={line.key}
        tabIndex={-1}
        {...(line.kind === "item" && { "data-item": line.item.id })}
      >
        <Guard of={line}>
          <RowBody line={line} />
        </Guard>
      </div>
    );
  },
  (a, b) => same(a.line, b.line),
);

function RowBody({ line }: { line: Line }) {
  switch (line.kind) {
    case "item":
      return <ItemView item={line.item} />;
    case "steps":
      return <StepsHeader row={line} />;
    case "turn":
      return <TurnEnd turn={line.turn} />;
    case "working":
      return <Working />;
  }
}

/** Rows are made anew with every change: most say what they said before. */
function same(a: Line, b: Line): boolean {
  if (a.key !== b.key) return false;
  if (a.kind === "item") return b.kind === "item" && a.item === b.item;
  if (a.kind === "turn") return b.kind === "turn" && a.turn === b.turn;
  if (a.kind === "steps") {
    if (b.kind !== "steps" || a.running !== b.running || a.items.length !== b.items.length) return false;
    return a.items.every((item, i) => item === b.items[i]) && a.shown.length === b.shown.length;
  }
  return true;
}

/** Whether rows came or went at the top: then what is on the screen keeps its distance to the end. */
function useShift(lines: readonly Line[], place: number): boolean {
  const last = useRef<{ keys: string[]; place: number }>({ keys: [], place: -1 });
  const shift = useMemo(() => {
    const { keys, place: before } = last.current;
    if (before !== place || !keys.length) return false;
    const now = new Map(lines.map((line, i) => [line.key, i]));
    for (let i = 0; i < keys.length; i++) {
      const at = now.get(keys[i]!);
      if (at !== undefined) return at !== i;
    }
    return false;
  }, [lines, place]);
  useLayoutEffect(() => {
    last.current = { keys: lines.map((line) => line.key), place };
  }, [lines, place]);
  return shift;
}

function focused(root: HTMLElement | null, lines: readonly Line[]): number {
  const key = document.activeElement?.closest("[data-row]")?.getAttribute("data-row");
  return key && root?.contains(document.activeElement) ? lines.findIndex((line) => line.key === key) : -1;
}

function focusRow(root: HTMLElement | null, key: string): void {
  root?.querySelector<HTMLElement>(`[data-row="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

/** Shows for a moment which item is meant. Whoever writes in the find bar goes on writing. */
function mark(item: HTMLElement): void {
  const row = item.closest<HTMLElement>("[data-row]") ?? item;
  if (!document.activeElement?.closest("search")) row.focus({ preventScroll: true });
  item.classList.add(css.marked!);
  setTimeout(() => item.classList.remove(css.marked!), 1600);
}
