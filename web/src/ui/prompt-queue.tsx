import { Undo2 } from "lucide-react";
import { useState } from "react";
import { api } from "../api/client";
import type { QueuedMessage } from "../api/types";
import { visible } from "../content/visible";
import { oneLine } from "../items/middle-text";
import { type Draft, sentWith } from "../state/drafts";
import css from "./prompt-queue.module.css";

interface Props {
  id: string;
  queue: readonly QueuedMessage[];
  /** One was taken back, with what it said if that is known. */
  onTaken(said: Draft | undefined): void;
  onError(error: string): void;
}

/** Messages that wait for their turn. */
export function PromptQueue({ id, queue, onTaken, onError }: Props) {
  const [taking, setTaking] = useState<string>();
  if (!queue.length) return null;
  const take = async (message: string) => {
    setTaking(message);
    try {
      const { done } = await api.takeBack(id, message);
      if (done) onTaken(sentWith(id, message));
      else onError("The agent has this message already.");
    } catch (failure) {
      onError(`Not taken back: ${(failure as Error).message}`);
    } finally {
      setTaking(undefined);
    }
  };
  return (
    <ol className={css.queue} aria-label="Messages that wait for their turn">
      {queue.map((message) => (
        <li key={message.id}>
          <span className={css.when}>next</span>
          <span className={css.text}>{visible(oneLine(message.text)) || "A picture"}</span>
          <button type="button" disabled={taking === message.id} onClick={() => void take(message.id)}>
            <Undo2 size={14} aria-hidden /> Take back
          </button>
        </li>
      ))}
    </ol>
  );
}
