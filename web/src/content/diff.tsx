import { memo, useRef } from "react";
import type { Diff } from "../api/types";
import styles from "./diff.module.css";
import { Counts, DiffFile, Path } from "./diff-file";
import { countDiff } from "./diff-lines";
import { type DiffStyle, setDiffStyle, useDiffStyle, useWide } from "./diff-style";
import { countOf } from "./fold";
import { visible } from "./visible";

export interface DiffViewProps {
  diffs: readonly Diff[];
  openKey?: string;
}

/** Files are open until this many changed lines are shown. */
const enough = 600;

/** What was changed, file by file. */
export const DiffView = memo(function DiffView({ diffs, openKey }: DiffViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const wide = useWide(box);
  const wanted = useDiffStyle();
  const style = wide ? wanted : "unified";
  const switcher = wide ? <Switch style={style} /> : null;
  const files = byPath(diffs);
  const several = files.size > 1;
  let shown = 0;
  const jump = (n: number) => {
    const target = box.current?.querySelectorAll(":scope > section")[n];
    const toggle = target?.querySelector<HTMLButtonElement>("button[aria-expanded]");
    if (toggle?.getAttribute("aria-expanded") === "false") toggle.click();
    target?.scrollIntoView({ block: "start" });
    toggle?.focus({ preventScroll: true });
  };
  return (
    <div className={styles.diffs} ref={box}>
      {several && (
        <div className={styles.summary}>
          <div className={styles.head}>
            <span>{countOf(files.size, "file")}</span>
            {switcher}
          </div>
          <ul className={styles.files}>
            {[...files].map(([path, own]) => (
              <li key={path}>
                <button
                  type="button"
                  onClick={() => jump(diffs.indexOf(own[0]!))}
                  aria-label={`Go to ${visible(path)}`}
                >
                  <Path path={path} />
                  <Counts diffs={own} />
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
      {diffs.map((diff, n) => {
        const initial = n === 0 || shown < enough;
        const { additions, deletions } = countDiff(diff);
        shown += additions + deletions;
        return (
          <DiffFile
            key={n}
            diff={diff}
            style={style}
            openKey={openKey && `${openKey}/file${n}`}
            initial={initial}
            tools={several || n > 0 ? null : switcher}
          />
        );
      })}
    </div>
  );
});

/** A file may be changed at several places, one after the other. */
export function byPath(diffs: readonly Diff[]): Map<string, Diff[]> {
  const files = new Map<string, Diff[]>();
  for (const diff of diffs) {
    const own = files.get(diff.path);
    if (own) own.push(diff);
    else files.set(diff.path, [diff]);
  }
  return files;
}

const choices: [DiffStyle, string][] = [
  ["unified", "Unified"],
  ["split", "Side by side"],
];

function Switch({ style }: { style: DiffStyle }) {
  return (
    <fieldset className={styles.switch}>
      <legend className="hidden-visually">How changes are shown</legend>
      {choices.map(([value, words]) => (
        <button key={value} type="button" aria-pressed={style === value} onClick={() => setDiffStyle(value)}>
          {words}
        </button>
      ))}
    </fieldset>
  );
}
