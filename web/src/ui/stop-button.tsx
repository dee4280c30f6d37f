import { Square } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import type { RunState } from "../api/types";
import css from "./stop-button.module.css";

/** An agent that has not stopped by then can be ended. */
const PATIENCE = 5000;
/** So soon after the first, a second press is the same one. */
const DOUBLE = 600;

interface Props {
  id: string;
  run: RunState;
  onDone(): void;
  onError(error: string | null): void;
}

/** Stops the turn; pressed again, it ends the agent. */
export function StopButton({ id, run, onDone, onError }: Props) {
  const turn = run.turn?.id ?? run.state;
  const [asked, setAsked] = useState<string>();
  const [late, setLate] = useState(false);
  const pressed = useRef(0);
  const stopping = run.cancelling || asked === turn;
  // Before its first turn there is nothing to cancel.
  const ends = stopping || run.state === "starting";
  useEffect(() => {
    setLate(false);
    if (!stopping) return;
    const timer = setTimeout(() => setLate(true), PATIENCE);
    return () => clearTimeout(timer);
  }, [stopping]);

  const press = async () => {
    if (Date.now() - pressed.current < DOUBLE) return;
    pressed.current = Date.now();
    onError(null);
    try {
      if (ends) await api.stop(id);
      else {
        setAsked(turn);
        await api.cancel(id);
      }
      onDone();
    } catch (failure) {
      setAsked(undefined);
      onError(`Not stopped: ${(failure as Error).message}`);
    }
  };
  const words = late ? "End agent" : stopping ? "Stopping…" : "Stop";
  return (
    <button
      type="button"
      className={late ? `${css.stop} ${css.late}` : css.stop}
      onClick={() => void press()}
      title={ends ? "End the agent; a message starts it again" : "Stop the turn"}
    >
      <Square size={11} fill="currentColor" aria-hidden /> {words}
    </button>
  );
}
