import { type RefObject, useEffect, useState } from "react";
import type { VirtualizerHandle } from "virtua";
import type { SessionModel, View } from "../state/session";
import css from "./rail.module.css";
import type { Line } from "./rows";

interface Props {
  model: SessionModel;
  view: View;
  list: RefObject<VirtualizerHandle | null>;
  lines: readonly Line[];
}

/** Where one is in a session of which only a part is loaded, and a way to anywhere in it. */
export function Rail({ model, view, list, lines }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const [held, setHeld] = useState<number | null>(null);
  useEffect(() => {
    const look = () => {
      const { current } = list;
      if (!current) return;
      setAt(lines[current.findItemIndex(current.scrollOffset + current.viewportSize / 2)]?.order ?? null);
    };
    look();
    const timer = setInterval(look, 200);
    return () => clearInterval(timer);
  }, [list, lines]);
  const last = Math.max(1, view.next - 1);
  const value = held ?? at ?? last;
  const done = () => {
    if (held === null) return;
    void model.jump(held >= last ? { end: true } : { around: held });
    setHeld(null);
  };
  return (
    <input
      type="range"
      className={css.rail}
      aria-label="Place in the session"
      aria-valuetext={`item ${value + 1} of ${last + 1}`}
      title={`Item ${value + 1} of ${last + 1}`}
      min={0}
      max={last}
      value={value}
      onChange={(event) => setHeld(Number(event.target.value))}
      onPointerUp={done}
      onKeyUp={done}
      onBlur={done}
    />
  );
}
