import { ArrowUp, ImagePlus } from "lucide-react";
import {
  type ClipboardEvent,
  type DragEvent,
  type RefObject,
  useCallback,
  useEffect,
  useRef,
  useState,
} from "react";
import type { RunState } from "../api/types";
import { type Draft, draftOf, EMPTY, keepDraft, keepSent } from "../state/drafts";
import { KINDS, readPicture, withPictures } from "../state/pictures";
import { newKey, send } from "../state/send";
import { AgentError } from "./agent-error";
import { AgentChoices, AgentState } from "./agent-state";
import { Growing } from "./growing";
import css from "./prompt.module.css";
import { PromptPictures } from "./prompt-pictures";
import { PromptQueue } from "./prompt-queue";
import { StopButton } from "./stop-button";
import { sends } from "./write";

interface Props {
  id: string;
  run: RunState;
  input: RefObject<HTMLTextAreaElement | null>;
  /** Something was done: how the run stands is worth a look. */
  onDone(): void;
  /** A message went out: its answer is what one wants to see. */
  onSent?(): void;
}

/** Where one talks to the agent. */
export function Prompt({ id, run, input, onDone, onSent }: Props) {
  const [draft, setDraft] = useState(() => draftOf(id));
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [over, setOver] = useState(false);
  const file = useRef<HTMLInputElement>(null);

  useNoStrayFiles();
  const keep = useCallback(
    (next: Draft) => {
      keepDraft(id, next);
      setDraft(next);
    },
    [id],
  );
  const add = async (files: readonly File[]) => {
    setError(null);
    try {
      const more = await Promise.all(files.map(readPicture));
      const now = draftOf(id);
      keep({ text: now.text, pictures: withPictures(now.pictures, more) });
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  const empty = !draft.text.trim() && draft.pictures.length === 0;
  const submit = async () => {
    if (empty || sending) return;
    const key = draft.key ?? newKey();
    setSending(true);
    setError(null);
    try {
      const taken = await send(id, draft, key);
      keepSent(id, taken.id, draft);
      keep(EMPTY);
      onDone();
      onSent?.();
    } catch (failure) {
      keep({ ...draft, key });
      setError(`Not sent: ${(failure as Error).message}`);
    } finally {
      setSending(false);
    }
  };
  const dropped = (event: DragEvent) => {
    setOver(false);
    const files = [...event.dataTransfer.files];
    if (!files.length) return;
    event.preventDefault();
    void add(files);
  };
  const pasted = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files].filter(({ type }) => type.startsWith("image/"));
    // Some programs put a picture of a text beside the text.
    if (!files.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    void add(files);
  };
  const busy = run.turn != null || run.state === "starting";
  return (
    <section className={css.prompt} aria-label="Message the agent">
      <AgentError run={run} />
      <PromptQueue
        id={id}
        queue={run.queue}
        held={run.held ?? false}
        onSent={onDone}
        onTaken={(text) => {
          if (text && !draft.text && draft.pictures.length === 0) keep(text);
          onDone();
        }}
        onError={setError}
      />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: pictures can be dropped here; a button does the same */}
      <div
        className={over ? `${css.box} ${css.over}` : css.box}
        onDragOver={(event) => {
          if (!event.dataTransfer.types.includes("Files")) return;
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={dropped}
      >
        <PromptPictures
          pictures={draft.pictures}
          onRemove={(at) => keep({ ...EMPTY, text: draft.text, pictures: draft.pictures.toSpliced(at, 1) })}
        />
        <Growing
          ref={input}
          value={draft.text}
          placeholder={run.turn ? "The next message waits for its turn" : "Message the agent"}
          aria-label="Message"
          readOnly={sending}
          enterKeyHint="enter"
          onPaste={pasted}
          onChange={(event) => keep({ text: event.target.value, pictures: draft.pictures })}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (!sends(event)) return;
            event.preventDefault();
            void submit();
          }}
        />
        <div className={css.tools}>
          <AgentState run={run} />
          <div className={css.buttons}>
            <AgentChoices id={id} run={run} onError={setError} />
            <button
              type="button"
              className={css.picture}
              onClick={() => file.current?.click()}
              aria-label="Add a picture"
              title="Add a picture (or paste it)"
            >
              <ImagePlus size={17} aria-hidden />
            </button>
            <input
              ref={file}
              type="file"
              accept={KINDS.join()}
              multiple
              hidden
              onChange={(event) => {
                void add([...(event.target.files ?? [])]);
                event.target.value = "";
              }}
            />
            {busy && <StopButton id={id} run={run} onDone={onDone} onError={setError} />}
            <button
              type="button"
              className={css.send}
              disabled={empty || sending}
              onClick={() => void submit()}
              aria-label={run.turn ? "Send when the turn is over" : "Send"}
              title={run.turn ? "Send when the turn is over (Enter)" : "Send (Enter)"}
            >
              <ArrowUp size={18} aria-hidden />
            </button>
          </div>
        </div>
      </div>
      {error && (
        <p className={css.error} role="alert">
          {error}
        </p>
      )}
    </section>
  );
}

/** A file that misses the box would be opened in the place of the page. */
function useNoStrayFiles(): void {
  useEffect(() => {
    const stay = (event: globalThis.DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    window.addEventListener("dragover", stay);
    window.addEventListener("drop", stay);
    return () => {
      window.removeEventListener("dragover", stay);
      window.removeEventListener("drop", stay);
    };
  }, []);
}
