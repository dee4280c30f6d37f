import { CircleAlert } from "lucide-react";
import type { RunState } from "../api/types";
import { visible } from "../content/visible";
import css from "./agent-error.module.css";

/** Why the agent is not there any more: what happened, and what to do. */
export function AgentError({ run }: { run: RunState }) {
  if (!run.error || run.state !== "ended") return null;
  return (
    <div className={css.error} role="alert">
      <p>
        <CircleAlert size={15} aria-hidden />
        <span>The agent ended by itself. What it said is kept.</span>
      </p>
      <pre>{visible(run.error)}</pre>
    </div>
  );
}
