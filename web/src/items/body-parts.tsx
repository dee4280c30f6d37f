// Small parts that several bodies have.
import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import type { Location, ToolCallItem } from "../api/types";
import { Json } from "../content/json";
import { LongText } from "../content/long-text";
import { visible } from "../content/visible";
import { useOpen } from "../state/context";
import styles from "./body.module.css";
import { MiddleText } from "./middle-text";

export function Part({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className={styles.part}>
      <p className={styles.label}>{label}</p>
      {children}
    </div>
  );
}

/** Something that is seldom wanted, behind a line of its own. */
export function Fold({ openKey, label, children }: { openKey: string; label: string; children: ReactNode }) {
  const [open, setOpen] = useOpen(openKey);
  return (
    <div className={styles.fold}>
      <button type="button" className={styles.foldButton} aria-expanded={open} onClick={() => setOpen(!open)}>
        <ChevronRight size={13} aria-hidden="true" />
        {label}
      </button>
      {open && children}
    </div>
  );
}

/** Why a call failed. */
export function Trouble({ text, openKey }: { text: string | undefined; openKey: string }) {
  if (!text?.trim()) return null;
  return (
    <div className={styles.trouble}>
      <LongText text={text} openKey={`${openKey}/error`} />
    </div>
  );
}

export function Facts({ facts }: { facts: (string | false | undefined)[] }) {
  const said = facts.filter((fact): fact is string => Boolean(fact));
  if (said.length === 0) return null;
  return <p className={styles.facts}>{said.map((fact) => visible(fact)).join(" · ")}</p>;
}

export function Locations({ locations }: { locations: readonly Location[] | undefined }) {
  if (!locations?.length) return null;
  return (
    <Part label="Files">
      <ul>
        {locations.slice(0, 200).map((place, at) => (
          <li key={at} className={styles.place}>
            <MiddleText mono path text={place.line === null ? place.path : `${place.path}:${place.line}`} />
          </li>
        ))}
      </ul>
    </Part>
  );
}

/** What the card itself says of a tool's arguments. */
const TOLD: Record<string, string[]> = {
  bash: ["command", "description"],
  read: ["filePath", "file_path", "path"],
  task: ["description", "prompt", "subagent_type"],
  webfetch: ["url", "prompt"],
  websearch: ["query"],
  todowrite: ["todos"],
};

/** Everything the tool was given, for those who want to see it as it was; not what is there anyway. */
export function Arguments({ item }: { item: ToolCallItem }) {
  const { input, toolName } = item.toolCall;
  if (input === undefined || input === null) return null;
  const told = Object.hasOwn(TOLD, toolName) ? TOLD[toolName] : undefined;
  if (typeof input === "object" && told && Object.keys(input).every((key) => told.includes(key))) return null;
  return (
    <Fold openKey={`${item.id}/arguments`} label="Arguments">
      <Json value={input} openKey={`${item.id}/input`} />
    </Fold>
  );
}

export function LoadError({ error, retry }: { error: string; retry(): void }) {
  return (
    <p className={styles.loadError} role="alert">
      <span>The whole text could not be loaded: {visible(error).slice(0, 300)}</span>
      <button type="button" className={styles.action} onClick={retry}>
        Try again
      </button>
    </p>
  );
}

/** Said when a call has nothing to show. */
export function Nothing({ children }: { children: ReactNode }) {
  return <p className={styles.nothing}>{children}</p>;
}
