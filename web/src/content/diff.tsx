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
  const several = diffs.length > 1;
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
            <span>{countOf(diffs.length, "file")}</span>
            {switcher}
          </div>
          <ul className={styles.files}>
            {diffs.map((diff, n) => (
              <li key={n}>
                <button type="button" onClick={() => jump(n)} aria-label={`Go to ${visible(diff.path)}`}>
                  <Path path={diff.path} />
                  <Counts diff={diff} />
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
            tools={several ? null : switcher}
          />
        );
      })}
    </div>
  );
});

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
