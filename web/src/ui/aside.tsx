import { X } from "lucide-react";
import { memo, useState } from "react";
import type { FileTouched, Outline, Turn } from "../api/types";
import { visible, visibleProse } from "../content/visible";
import { formatCount } from "../items/labels";
import { Todos } from "../items/todo-list";
import { exact } from "../when";
import css from "./aside.module.css";

interface Props {
  outline: Outline | null;
  /** On a narrow screen it lies over the transcript. */
  shown: boolean;
  onShow(item: string): void;
  onClose(): void;
}

/** What a session is made of, to jump to. It changes seldom: not with every word that is said. */
export const Aside = memo(function Aside({ outline, shown, onShow, onClose }: Props) {
  const go = (item: string) => {
    onShow(item);
    onClose();
  };
  return (
    <aside className={shown ? `${css.aside} ${css.shown}` : css.aside} aria-label="About this session">
      <button type="button" className={css.close} onClick={onClose} aria-label="Close">
        <X size={18} aria-hidden />
      </button>
      {outline && <Parts outline={outline} onShow={go} />}
    </aside>
  );
});

function Parts({ outline, onShow }: { outline: Outline; onShow(item: string): void }) {
  return (
    <>
      {outline.todos && outline.todos.todos.length > 0 && (
        <section className={css.part}>
          <h2>Todos</h2>
          <Todos todos={outline.todos.todos} />
        </section>
      )}
      <section className={css.part}>
        <h2>
          Turns <span>{formatCount(outline.turns.length)}</span>
        </h2>
        <Turns turns={outline.turns} onShow={onShow} />
      </section>
      {outline.files.length > 0 && (
        <section className={css.part}>
          <h2>
            Files changed <span>{outline.files.length}</span>
          </h2>
          <Files files={outline.files} />
          {outline.filesCut && <p className={css.note}>Only the latest are listed.</p>}
        </section>
      )}
    </>
  );
}

const FEW = 60;

function Turns({ turns, onShow }: { turns: Turn[]; onShow(item: string): void }) {
  const [all, setAll] = useState(false);
  if (!turns.length) return <p className={css.note}>No prompt yet.</p>;
  const cut = !all && turns.length > FEW;
  const shown = cut ? turns.slice(-FEW) : turns;
  return (
    <>
      {cut && (
        <button type="button" className={css.more} onClick={() => setAll(true)}>
          Show {turns.length - FEW} earlier
        </button>
      )}
      <ol className={css.list}>
        {shown.map((turn) => (
          <li key={turn.id}>
            <button
              type="button"
              onClick={() => onShow(turn.id)}
              title={turn.timestamp ? exact(Date.parse(turn.timestamp)) : undefined}
            >
              <span className={css.words}>{visibleProse(turn.text) || "(no words)"}</span>
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

function Files({ files }: { files: FileTouched[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? files : files.slice(0, 40);
  return (
    <>
      <ul className={css.files}>
        {shown.map((file) => {
          const path = visible(file.path);
          const cut = path.lastIndexOf("/") + 1;
          return (
            <li key={file.path} title={path}>
              <span className={css.path}>
                <span className={css.folder}>{path.slice(0, cut)}</span>
                <span className={css.name}>{path.slice(cut)}</span>
              </span>
              {file.additions > 0 && <span className={css.added}>+{file.additions}</span>}
              {file.deletions > 0 && <span className={css.removed}>−{file.deletions}</span>}
            </li>
          );
        })}
      </ul>
      {!all && files.length > shown.length && (
        <button type="button" className={css.more} onClick={() => setAll(true)}>
          Show {files.length - shown.length} more
        </button>
      )}
    </>
  );
}
