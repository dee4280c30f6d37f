import { type MouseEvent, memo } from "react";
import type { Session } from "../api/types";
import { visible } from "../content/visible";
import { ago, formatCost, plural, titleOf } from "../items/labels";
import { isLive } from "../state/list";
import { address, go } from "../state/route";
import { exact } from "../when";
import { ForkMark } from "./fork";
import css from "./session-row.module.css";

interface Props {
  session: Session;
  chosen: boolean;
  onChoose(): void;
}

export const SessionRow = memo(function SessionRow({ session, chosen, onChoose }: Props) {
  const now = Date.now();
  const live = isLive(session, now);
  const { info } = session;
  const told = [
    info.agent,
    session.project,
    info.costUsd ? formatCost(info.costUsd) : plural(session.items, "item"),
  ];
  return (
    <a
      className={css.row}
      href={address(session.id)}
      aria-current={chosen ? "page" : undefined}
      onClick={(event) => follow(event, address(session.id), onChoose)}
    >
      <span className={css.title}>
        {live && <i className={css.live} role="img" aria-label="Live" />}
        {info.status === "failed" && <i className={css.failed} role="img" aria-label="Failed" />}
        <span className={css.name}>{titleOf(session)}</span>
        {session.fork && <ForkMark />}
      </span>
      <span className={css.about}>
        <span className={css.words}>{visible(told.filter(Boolean).join(" · "))}</span>
        <time dateTime={new Date(session.updatedAt).toISOString()} title={exact(session.updatedAt)}>
          {ago(session.updatedAt, now)}
        </time>
      </span>
    </a>
  );
});

/** A click stays in the page; with a modifier, the browser does what it does. */
export function follow(event: MouseEvent, to: string, done: () => void): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  // From here on the keys are for what was opened.
  (event.currentTarget as HTMLElement).blur();
  go(to);
  if (window.matchMedia("(max-width: 900px)").matches) done();
}
