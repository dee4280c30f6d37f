import { ArrowUp, Undo2 } from "lucide-react";
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
  /** The turn before them was stopped: they wait for a person. */
  held: boolean;
  /** One was taken back, with what it said if that is known. */
  onTaken(said: Draft | undefined): void;
  onSent(): void;
  onError(error: string): void;
}

/** Messages that wait for their turn. */
export function PromptQueue({ id, queue, held, onTaken, onSent, onError }: Props) {
  const [taking, setTaking] = useState<string>();
  const [sending, setSending] = useState(false);
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
  const send = async () => {
    setSending(true);
    try {
      await api.choose(id, { hold: false });
      onSent();
    } catch (failure) {
      onError(`Not sent: ${(failure as Error).message}`);
    } finally {
      setSending(false);
    }
  };
  return (
    <>
      {held && (
        <p className={css.held}>
          <span>Not sent, since the agent was stopped or has ended. Your next message goes first.</span>
          <button type="button" disabled={sending} onClick={() => void send()}>
            <ArrowUp size={14} aria-hidden /> Send now
          </button>
        </p>
      )}
      <ol className={css.queue} aria-label="Messages that wait for their turn">
        {queue.map((message) => (
          <li key={message.id}>
            <span className={css.when}>{held ? "held" : "next"}</span>
            <span className={css.text}>{visible(oneLine(message.text)) || "A picture"}</span>
            <button type="button" disabled={taking === message.id} onClick={() => void take(message.id)}>
              <Undo2 size={14} aria-hidden /> Take back
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}
