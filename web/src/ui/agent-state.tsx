import { useState } from "react";
import { api } from "../api/client";
import type { RunChoice, RunState } from "../api/types";
import { visible } from "../content/visible";
import css from "./agent-state.module.css";

/** What the agent does right now. */
export function AgentState({ run }: { run: RunState }) {
  const words = wordsOf(run);
  return (
    <p className={css.state} data-state={run.state} role="status" title={words}>
      <i aria-hidden />
      <span>{words}</span>
    </p>
  );
}

interface Props {
  id: string;
  run: RunState;
  onError(error: string | null): void;
}

/** How the agent is set, where it leaves a choice. */
export function AgentChoices({ id, run, onError }: Props) {
  const choose = async (change: { mode: string } | { model: string }) => {
    onError(null);
    try {
      await api.choose(id, change);
    } catch (failure) {
      onError(`Not changed: ${(failure as Error).message}`);
    }
  };
  return (
    <>
      <Choice label="Mode" choices={run.modes} now={run.mode} onChoose={(mode) => choose({ mode })} />
      <Choice label="Model" choices={run.models} now={run.model} onChoose={(model) => choose({ model })} />
    </>
  );
}

function wordsOf(run: RunState): string {
  if (run.cancelling) return "Stopping…";
  switch (run.state) {
    case "starting":
      return `Starting ${visible(run.agent ?? "the agent")}…`;
    case "running":
      return "Working";
    case "waiting":
      return "Waiting for you";
    case "idle":
      return "Idle";
    default:
      return "Ended. A message starts it again.";
  }
}

interface ChoiceProps {
  label: string;
  choices: readonly RunChoice[];
  now: string | null | undefined;
  onChoose(id: string): Promise<void>;
}

function Choice({ label, choices, now, onChoose }: ChoiceProps) {
  const [asked, setAsked] = useState<string>();
  if (choices.length < 2) return null;
  const known = choices.some(({ id }) => id === now);
  const choose = async (id: string) => {
    setAsked(id);
    await onChoose(id);
    setAsked(undefined);
  };
  return (
    <select
      className={css.choice}
      value={asked ?? now ?? ""}
      disabled={asked !== undefined}
      aria-label={label}
      title={label}
      onChange={(event) => void choose(event.target.value)}
    >
      {!known && <option value={now ?? ""}>{visible(now ?? label)}</option>}
      {choices.map((choice) => (
        <option key={choice.id} value={choice.id}>
          {visible(choice.name || choice.id)}
        </option>
      ))}
    </select>
  );
}
