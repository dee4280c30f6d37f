import { type ReactNode, useEffect, useRef } from "react";
import css from "./dialog.module.css";

/** A question or a page of help over everything; Escape closes it, the focus goes back. */
export function Dialog({
  label,
  onClose,
  children,
}: {
  label: string;
  onClose(): void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself
    <dialog
      ref={dialog}
      className={css.dialog}
      aria-label={label}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className={css.inner}>{children}</div>
    </dialog>
  );
}

const KEYS = [
  ["/  Ctrl+K", "search all sessions"],
  ["l", "to the list of sessions"],
  ["j  k  ↓  ↑", "next and previous row, also of the list and of what was found"],
  ["Enter", "open or close the row; in the message: send it"],
  ["Shift+Enter", "new line in the message"],
  ["n", "new session"],
  ["m", "write a message"],
  ["1  …  9", "answer what the agent asks"],
  ["G", "to the latest"],
  ["f", "find in this session"],
  ["o", "turns, files and todos"],
  ["[", "show or hide the list"],
  ["?", "this list"],
  ["Esc", "close what is open"],
] as const;

export function KeysHelp({ onClose }: { onClose(): void }) {
  return (
    <Dialog label="Keys" onClose={onClose}>
      <h2 className={css.title}>Keys</h2>
      <dl className={css.keys}>
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split("  ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className={css.buttons}>
        <button type="button" className={css.button} onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  text: string;
  action: string;
  error?: string | null;
  onConfirm(): void;
  onClose(): void;
}

export function Confirm({ title, text, action, error, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog label={title} onClose={onClose}>
      <h2 className={css.title}>{title}</h2>
      <p className={css.text}>{text}</p>
      {error && (
        <p className={css.error} role="alert">
          {error}
        </p>
      )}
      <div className={css.buttons}>
        <button type="button" className={css.button} onClick={onClose}>
          Keep it
        </button>
        <button type="button" className={`${css.button} ${css.danger}`} onClick={onConfirm}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}
