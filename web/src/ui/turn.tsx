import type { Turn } from "../api/types";
import { visible } from "../content/visible";
import { formatCost, formatDuration, formatTokens } from "../items/labels";
import css from "./turn.module.css";

/** How a turn ended: time, tokens, cost. */
export function TurnEnd({ turn }: { turn: Turn }) {
  const { usage } = turn;
  const tokens = usage?.totalTokens ?? sum(usage?.inputTokens, usage?.outputTokens);
  const told = [
    turn.durationMs != null && formatDuration(turn.durationMs),
    tokens != null && `${formatTokens(tokens)} tokens`,
    turn.costUsd != null && turn.costUsd > 0 && formatCost(turn.costUsd),
    unusual(turn.stopReason),
  ].filter(Boolean);
  return (
    <div className={css.end}>
      <span>{told.join(" · ")}</span>
    </div>
  );
}

/** Nothing is heard of yet. */
export function Working() {
  return (
    <div className={css.working} role="status">
      <span className={css.dots} aria-hidden>
        <i />
        <i />
        <i />
      </span>
      Working…
    </div>
  );
}

const sum = (a?: number | null, b?: number | null) => (a == null && b == null ? null : (a ?? 0) + (b ?? 0));

/** Most turns end because the agent is done: that need not be said. */
function unusual(reason?: string | null): string | null {
  if (!reason || reason === "end_turn" || reason === "stop_sequence") return null;
  const words: Record<string, string> = {
    max_tokens: "cut off at the token limit",
    cancelled: "cancelled",
    refusal: "refused",
    max_turn_requests: "stopped at the limit of turns",
    max_turns: "stopped at the limit of turns",
    max_budget: "stopped at the limit of cost",
    model_context_window_exceeded: "cut off: the context window is full",
    error: "failed",
  };
  return Object.hasOwn(words, reason) ? words[reason]! : visible(reason.replaceAll("_", " ").slice(0, 80));
}
