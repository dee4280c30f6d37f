import {
  CircleQuestionMark,
  CornerDownRight,
  GitPullRequest,
  Hand,
  Info,
  type LucideIcon,
  RefreshCw,
  SquareTerminal,
  TriangleAlert,
  Unplug,
  Webhook,
} from "lucide-react";
import type { NoticeItem } from "../api/types";
import { LongText } from "../content/long-text";
import { visible } from "../content/visible";
import { letters } from "../state/apply";
import { useOpen, useWhole } from "../state/context";
import { LoadError } from "./body-parts";
import { plural } from "./labels";
import { MoreButton } from "./more-button";
import styles from "./note.module.css";
import { beginning, linked } from "./plain";

const KINDS: Record<string, { Icon: LucideIcon; word?: string }> = {
  interrupted: { Icon: Hand },
  retry: { Icon: RefreshCw },
  warning: { Icon: TriangleAlert },
  error: { Icon: TriangleAlert },
  info: { Icon: Info },
  max_turns: { Icon: TriangleAlert },
  max_tokens: { Icon: TriangleAlert },
  context_full: { Icon: TriangleAlert },
  refusal: { Icon: TriangleAlert },
  max_budget: { Icon: TriangleAlert },
  hook: { Icon: Webhook, word: "Hook" },
  command: { Icon: SquareTerminal },
  command_output: { Icon: CornerDownRight },
  pull_request: { Icon: GitPullRequest, word: "Pull request" },
  unknown: { Icon: CircleQuestionMark, word: "Not understood" },
  malformed: { Icon: Unplug, word: "Not readable" },
  notice: { Icon: Info },
};

/** Something small that happened: a quiet row. */
export function Notice({ item }: { item: NoticeItem }) {
  const [open, setOpen] = useOpen(`${item.id}/all`);
  const whole = useWhole(item, open);
  const known = Object.hasOwn(KINDS, item.kind) ? KINDS[item.kind] : undefined;
  const { Icon, word } = known ?? { Icon: Info, word: visible(item.kind.replaceAll("_", " ").slice(0, 60)) };
  const text = plainWords(whole.item.text) || (word ? "" : item.kind.replaceAll("_", " "));
  const first = beginning(text, 8);
  const cut = item.clipped?.text;
  const code = item.kind === "command" || item.kind === "command_output";
  return (
    <div className={styles.notice}>
      <Icon size={14} strokeWidth={1.75} aria-hidden="true" className={styles.icon} />
      {word && <span className={styles.word}>{word}</span>}
      <div className={code ? styles.code : styles.words}>
        {open && text.length > 4000 ? (
          <LongText text={text} openKey={`${item.id}/text`} />
        ) : (
          linked(open ? text : (first ?? text))
        )}
        {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
        {(first !== undefined || cut !== undefined) && (
          <div>
            <MoreButton
              open={open}
              label={`Show all (${plural(cut ?? letters(whole.item.text), "character")})`}
              onToggle={() => setOpen(!open)}
            />
          </div>
        )}
      </div>
    </div>
  );
}

/** "**Warning:** …" and "[Request interrupted by user]" without their dress. */
function plainWords(text: string): string {
  return text
    .trim()
    .replace(/^\*\*(?:Notice|Warning):\*\*\s*/i, "")
    .replace(/^\[(.*)\]$/, "$1");
}
