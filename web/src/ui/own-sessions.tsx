import { useEffect, useState } from "react";
import { api } from "../api/client";
import type { AgentSession } from "../api/types";
import { visible } from "../content/visible";
import { ago } from "../items/labels";
import css from "./new-session.module.css";

interface Props {
  agent: string;
  chosen: string | undefined;
  onChoose(id: string | undefined): void;
}

/** The sessions that an agent keeps by itself, to go on with one. It is started to be asked. */
export function OwnSessions({ agent, chosen, onChoose }: Props) {
  const [asked, setAsked] = useState(false);
  const [sessions, setSessions] = useState<readonly AgentSession[]>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    if (!asked) return;
    const abort = new AbortController();
    api.agentSessions(agent, abort.signal).then(
      (told) => setSessions(told.sessions),
      (failure) => !abort.signal.aborted && setError((failure as Error).message),
    );
    return () => abort.abort();
  }, [asked, agent]);

  if (!asked) {
    return (
      <button type="button" className={css.link} onClick={() => setAsked(true)}>
        Go on with a session of this agent…
      </button>
    );
  }
  if (error) return <small role="alert">{visible(error)}</small>;
  if (!sessions) return <small role="status">The agent is asked for its sessions…</small>;
  if (sessions.length === 0) return <small role="status">The agent keeps no sessions.</small>;
  return (
    <label className={css.field}>
      <span>Session</span>
      <select value={chosen ?? ""} onChange={(event) => onChoose(event.target.value || undefined)}>
        <option value="">A new one</option>
        {sessions.map((session) => (
          <option key={session.id} value={session.id}>
            {nameOf(session)}
          </option>
        ))}
      </select>
    </label>
  );
}

function nameOf({ id, title, project, updatedAt }: AgentSession): string {
  const at = updatedAt ? Date.parse(updatedAt) : Number.NaN;
  const when = Number.isNaN(at) ? undefined : ago(at, Date.now());
  return visible([title?.slice(0, 80) ?? id, project, when].filter(Boolean).join(" · "));
}
