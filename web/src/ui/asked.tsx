import { useEffect, useRef, useState } from "react";
import { ApiError, api } from "../api/client";
import type { Answer, Item, PermissionItem, QuestionItem, ToolCallItem } from "../api/types";
import { LoadError } from "../items/body-parts";
import { Permission } from "../items/permission";
import { Question } from "../items/question";
import { useSession, useWhole } from "../state/context";
import css from "./asked.module.css";
import { useDigits } from "./digits";

/** A second press or click that was meant for the card before must not answer this one. */
const SETTLE = 400;

export type AskedItem = PermissionItem | QuestionItem;

interface Props {
  item: AskedItem;
  /** The call that it is about, if it is here. */
  call: Item | undefined;
  /** How many more wait. */
  more: number;
  /** A refusal may say why. */
  reasons?: boolean;
  onAnswered(): void;
}

/** A question of the agent that is answered here, once. */
export function Asked({ item, call, more, reasons, onAnswered }: Props) {
  const { sessionId } = useSession();
  const card = useRef<HTMLDivElement>(null);
  const [settled, setSettled] = useState(false);
  const [sent, setSent] = useState(false);
  const [error, setError] = useState<string | null>(null);
  useDigits(card);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLE);
    return () => clearTimeout(timer);
  }, []);

  const give = async (answer: Answer) => {
    if (sent || !item.requestId) return;
    setSent(true);
    setError(null);
    onAnswered();
    try {
      await api.answer(sessionId, item.requestId, answer);
    } catch (failure) {
      const late = failure instanceof ApiError && failure.code === "ALREADY_ANSWERED";
      setError(late ? "Somebody has answered this before." : `Not answered: ${(failure as Error).message}`);
      // What was answered cannot be answered again: it goes away by itself.
      if (!late) setSent(false);
    }
  };
  const busy = sent || !settled;
  return (
    <div ref={card} className={css.card}>
      {item.type === "permission" ? (
        <OfPermission
          item={item}
          call={call}
          busy={busy}
          reasons={reasons}
          onAnswer={(optionId, message) => give(message ? { optionId, message } : { optionId })}
        />
      ) : (
        <OfQuestion
          item={item}
          busy={busy}
          onAnswer={(answers) => give({ answers })}
          onDecline={() => give({ outcome: "declined" })}
        />
      )}
      {error && (
        <p className={css.error} role="alert">
          {error}
        </p>
      )}
      {more > 0 && <p className={css.more}>{more === 1 ? "One more waits." : `${more} more wait.`}</p>}
    </div>
  );
}

interface PermissionProps {
  item: PermissionItem;
  call: Item | undefined;
  busy: boolean;
  reasons?: boolean;
  onAnswer(optionId: string, message?: string): void;
}

/** Nobody should say yes to half a command: buttons wait until all of it is here. */
function OfPermission({ item, call, busy, reasons, onAnswer }: PermissionProps) {
  const whole = useWhole(item, true);
  const found = useFound(item.toolCallId, item.toolCall ? item : call);
  const half = whole.loading || whole.error !== undefined;
  const props = { item: whole.item, busy: busy || half, reasons, onAnswer };
  if (found?.type === "tool_call") return <OfCall {...props} call={found} />;
  return (
    <>
      <Permission {...props} />
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
    </>
  );
}

/** A request that does not say itself what it is about. */
function OfCall({ call, busy, ...props }: PermissionProps & { call: ToolCallItem }) {
  const whole = useWhole(call, true);
  const half = whole.loading || whole.error !== undefined;
  return (
    <>
      <Permission {...props} call={whole.item.toolCall} busy={busy || half} />
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
    </>
  );
}

interface QuestionProps {
  item: QuestionItem;
  busy: boolean;
  onAnswer(answers: Record<string, string>): void;
  onDecline(): void;
}

/** Answers name their questions by all their words: the form waits until they are here. */
function OfQuestion({ item, busy, onAnswer, onDecline }: QuestionProps) {
  const whole = useWhole(item, true);
  return (
    <Question
      key={whole.loading ? "part" : "whole"}
      item={whole.item}
      busy={busy || whole.loading}
      onAnswer={onAnswer}
      onDecline={onDecline}
    />
  );
}

/** An item that may not be among those on the screen. */
function useFound(id: string, here: Item | undefined): Item | undefined {
  const { whole } = useSession();
  const [found, setFound] = useState<Item>();
  const missing = !here;
  useEffect(() => {
    if (!missing) return;
    let stale = false;
    whole(id).then(
      (item) => stale || setFound(item),
      () => {},
    );
    return () => {
      stale = true;
    };
  }, [whole, id, missing]);
  return here ?? (found?.id === id ? found : undefined);
}
