import { Ellipsis, Link as LinkIcon, ListTree, Menu as MenuIcon, Search } from "lucide-react";
import { useState } from "react";
import { api, download } from "../api/client";
import type { Session } from "../api/types";
import { copyText } from "../content/copy";
import { visible } from "../content/visible";
import { formatCost, formatCount, formatTokens, plural, titleOf } from "../items/labels";
import { address } from "../state/route";
import type { View } from "../state/session";
import { span } from "../when";
import { ForkOf } from "./fork-of";
import { Menu, MenuItem } from "./menu";
import { resumeCommand } from "./resume";
import { isRunning } from "./rows";
import css from "./session-header.module.css";

interface Props {
  id: string;
  session: Session | undefined;
  view: View;
  beside: boolean;
  listHidden: boolean;
  onMenu(): void;
  onDelete(): void;
  onFind(): void;
  onBeside(): void;
}

export function SessionHeader(props: Props) {
  const { id, session, view, beside, listHidden, onMenu, onDelete, onFind, onBeside } = props;
  const [said, setSaid] = useState("");
  const info = view.info ?? session?.info;
  const named = session ? { ...session, info: info ?? session.info } : info?.title ? { info } : null;
  const title = named ? titleOf(named) : "";
  const live = isRunning(view, session);
  const resume = resumeCommand(info?.agent, session?.nativeId ?? info?.nativeId);
  const say = (words: string) => {
    setSaid(words);
    setTimeout(() => setSaid(""), 1800);
  };
  const copy = (text: string, done: string) => {
    copyText(text).then(
      () => say(done),
      () => say("Could not copy"),
    );
  };
  const save = (format: string) => {
    download(api.exported(id, format)).catch((error: Error) => say(`Not exported: ${error.message}`));
  };
  return (
    <header className={css.header}>
      <button
        type="button"
        className={listHidden ? `${css.menu} ${css.away}` : css.menu}
        onClick={onMenu}
        aria-label="Show the list of sessions"
      >
        <MenuIcon size={18} aria-hidden />
      </button>
      <div className={css.words}>
        <div className={css.first}>
          <h1 className={css.title} title={title}>
            {title}
          </h1>
          {live && (
            <span className={css.live}>
              <i aria-hidden /> live
            </span>
          )}
        </div>
        <p className={css.second}>{session && <About session={session} view={view} />}</p>
      </div>
      <p className={css.numbers}>
        <Numbers view={view} session={session} />
      </p>
      <div className={css.actions}>
        <span className={css.said} role="status">
          {said}
        </span>
        <button
          type="button"
          onClick={onFind}
          aria-label="Find in this session"
          title="Find in this session (f)"
        >
          <Search size={16} aria-hidden />
        </button>
        <button
          type="button"
          className={css.link}
          onClick={() => copy(location.origin + address(id), "Link copied")}
          aria-label="Copy a link to this session"
          title="Copy a link to this session"
        >
          <LinkIcon size={16} aria-hidden />
        </button>
        <button
          type="button"
          className={css.beside}
          onClick={onBeside}
          aria-label="Turns, files and todos"
          aria-expanded={beside}
          title="Turns, files and todos (o)"
        >
          <ListTree size={16} aria-hidden />
        </button>
        <Menu label="More" icon={<Ellipsis size={16} aria-hidden />}>
          {resume && (
            <MenuItem onSelect={() => copy(resume, "Command copied")} hint={resume}>
              Copy resume command
            </MenuItem>
          )}
          <MenuItem onSelect={() => copy(location.origin + address(id), "Link copied")}>Copy link</MenuItem>
          <MenuItem onSelect={() => copy(id, "Id copied")}>Copy session id</MenuItem>
          <MenuItem onSelect={() => save("md")}>Export as Markdown</MenuItem>
          <MenuItem onSelect={() => save("html")}>Export as HTML</MenuItem>
          <MenuItem onSelect={() => save("text")}>Export as text</MenuItem>
          <MenuItem onSelect={() => save("json")}>Export as JSON</MenuItem>
          <MenuItem onSelect={() => save("jsonl")}>Export as JSON lines</MenuItem>
          <MenuItem danger onSelect={onDelete}>
            Delete…
          </MenuItem>
        </Menu>
      </div>
    </header>
  );
}

function About({ session, view }: { session: Session; view: View }) {
  const info = view.info ?? session.info;
  const told = [
    info.agent,
    session.project,
    span(session.createdAt, session.updatedAt),
    session.calls > 0 && plural(session.calls, "call"),
    session.failed > 0 && `${formatCount(session.failed)} failed`,
    session.fileExists === false && "kept here, gone from the agent's folder",
  ];
  return (
    <>
      {session.forkOf && (
        <>
          <ForkOf of={session.forkOf} /> ·{" "}
        </>
      )}
      {visible(told.filter(Boolean).join(" · "))}
    </>
  );
}

function Numbers({ view, session }: { view: View; session: Session | undefined }) {
  const info = view.info ?? session?.info;
  if (!info) return null;
  // What its subagents used was paid for too.
  const tokens = [info.usage, info.subagentUsage].reduce(
    (sum, used) => sum + (used?.totalTokens ?? (used?.inputTokens ?? 0) + (used?.outputTokens ?? 0)),
    0,
  );
  const context =
    info.contextUsed && info.contextSize
      ? `${Math.round((100 * info.contextUsed) / info.contextSize)}% of context`
      : null;
  const told = [
    info.model,
    tokens ? `${formatTokens(tokens)} tok` : null,
    context,
    info.costUsd ? formatCost(info.costUsd) : null,
  ];
  return <>{visible(told.filter(Boolean).join(" · "))}</>;
}
