import { type FormEvent, useRef, useState } from "react";
import { api } from "../api/client";
import type { AgentInfo } from "../api/types";
import { EMPTY } from "../state/drafts";
import { recall, remember } from "../state/remember";
import { newKey, send } from "../state/send";
import { Dialog } from "./dialog";
import dialog from "./dialog.module.css";
import { Growing } from "./growing";
import css from "./new-session.module.css";
import { OwnSessions } from "./own-sessions";
import { sends } from "./write";

interface Props {
  agents: readonly AgentInfo[];
  onStarted(id: string): void;
  onClose(): void;
}

/** Starts an agent: which one, where, and with what. */
export function NewSession({ agents, onStarted, onClose }: Props) {
  const ready = agents.filter((agent) => agent.installed);
  const [agent, setAgent] = useState(() => {
    const last = recall("agent");
    return ready.find(({ name }) => name === last)?.name ?? ready[0]?.name ?? "";
  });
  const [folder, setFolder] = useState(() => recall("folder") ?? "");
  const [text, setText] = useState("");
  // The agent's own session that is gone on with.
  const [native, setNative] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  // What was made before the message failed is used again, not made again.
  const made = useRef<{ for: string; id: string; key: string }>(undefined);

  const start = async () => {
    if (busy || !agent) return;
    setBusy(true);
    setError(null);
    const cwd = native ? "" : folder.trim();
    const wanted = JSON.stringify([agent, cwd, native]);
    try {
      if (made.current?.for !== wanted) {
        const { id } = await api.start({ agent, ...(cwd && { cwd }), ...(native && { nativeId: native }) });
        made.current = { for: wanted, id, key: newKey() };
      }
      remember("agent", agent);
      if (!native) remember("folder", cwd);
      const { id, key } = made.current;
      if (text.trim()) await send(id, { ...EMPTY, text }, key);
      onStarted(id);
    } catch (failure) {
      setError((failure as Error).message);
      setBusy(false);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void start();
  };
  return (
    <Dialog label="New session" onClose={onClose}>
      <form className={css.form} onSubmit={submit}>
        <h2 className={dialog.title}>New session</h2>
        <Agents
          agents={agents}
          chosen={agent}
          onChoose={(name) => {
            setAgent(name);
            setNative(undefined);
          }}
        />
        {ready.some(({ name, protocol }) => name === agent && protocol === "acp") && (
          <OwnSessions key={agent} agent={agent} chosen={native} onChoose={setNative} />
        )}
        {!native && <Folder value={folder} onChange={setFolder} />}
        {/* biome-ignore lint/a11y/noLabelWithoutControl: the field is inside */}
        <label className={css.field}>
          <span>{native ? "Next message" : "First message"}</span>
          <div className={css.text}>
            <Growing
              value={text}
              autoFocus
              placeholder="What should it do?"
              onChange={(event) => {
                setText(event.target.value);
                // Other words are another message.
                if (made.current) made.current.key = newKey();
              }}
              onKeyDown={(event) => {
                if (!sends(event)) return;
                event.preventDefault();
                void start();
              }}
            />
          </div>
        </label>
        {error && (
          <p className={dialog.error} role="alert">
            {error}
          </p>
        )}
        <div className={dialog.buttons}>
          <button type="button" className={dialog.button} onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className={`${dialog.button} ${dialog.main}`} disabled={busy || !agent}>
            {busy ? "Starting…" : "Start"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface FolderProps {
  value: string;
  onChange(folder: string): void;
}

/** Where it works. */
function Folder({ value, onChange }: FolderProps) {
  return (
    <label className={css.field}>
      <span>Folder</span>
      <input
        type="text"
        value={value}
        placeholder="A folder of its own"
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
      />
      <small>A whole path on the server's machine. Empty: the session gets a folder of its own.</small>
    </label>
  );
}

interface AgentsProps {
  agents: readonly AgentInfo[];
  chosen: string;
  onChoose(name: string): void;
}

/** Those that can be started first; of the others, why not. */
function Agents({ agents, chosen, onChoose }: AgentsProps) {
  const sorted = [...agents].sort((a, b) => Number(b.installed) - Number(a.installed));
  return (
    <fieldset className={css.agents}>
      <legend>Agent</legend>
      {sorted.map(({ name, title, installed, problem }) => (
        <label key={name} className={installed ? css.agent : css.missing}>
          <input
            type="radio"
            name="agent"
            value={name}
            checked={name === chosen}
            disabled={!installed}
            onChange={() => onChoose(name)}
          />
          <span>{title || name}</span>
          {!installed && <small>{problem ?? "not installed"}</small>}
        </label>
      ))}
      {agents.length === 0 && <p className={css.missing}>No agent is known to this server.</p>}
    </fieldset>
  );
}
