import type { Diff, ToolCall, ToolCallItem } from "../api/types";
import { countDiff } from "../content/diff-lines";
import { visible } from "../content/visible";
import styles from "./badges.module.css";
import { inBackground, isCut } from "./fields";
import { formatCount, plural } from "./labels";
import { problemsOf } from "./problems";

export interface Counts {
  additions: number;
  deletions: number;
}

const counted = new WeakMap<readonly Diff[], Counts>();

/** The changed lines of all files. Counting compares whole files: once for each list. */
export function countsOf(diffs: readonly Diff[]): Counts {
  let sum = counted.get(diffs);
  if (!sum) {
    sum = { additions: 0, deletions: 0 };
    for (const diff of diffs) {
      const { additions, deletions } = countDiff(diff);
      sum.additions += additions;
      sum.deletions += deletions;
    }
    counted.set(diffs, sum);
  }
  return sum;
}

/** Whether the changed lines can be told: texts that were cut would give wrong ones. */
function countable(item: ToolCallItem): boolean {
  const { diffs, status } = item.toolCall;
  // What failed or was refused changed nothing.
  if (!diffs?.length || status === "failed" || status === "cancelled") return false;
  return !isCut(item, "toolCall.diffs") || diffs.every((diff) => diff.additions !== undefined);
}

/** What is worth knowing of a call before it is opened. */
export function Badges({ item }: { item: ToolCallItem }) {
  const call = item.toolCall;
  const counts = countable(item) ? countsOf(call.diffs!) : undefined;
  const problems = call.diagnostics === undefined ? 0 : problemsOf(call.diagnostics).length;
  return (
    <span className={styles.badges}>
      {makesFile(call) && <span className={`${styles.badge} ${styles.minor}`}>new file</span>}
      {counts && (counts.additions > 0 || counts.deletions > 0) && (
        <span className={styles.counts}>
          {counts.additions > 0 && <span className={styles.added}>+{formatCount(counts.additions)}</span>}
          {counts.deletions > 0 && <span className={styles.removed}>−{formatCount(counts.deletions)}</span>}
        </span>
      )}
      {call.exitCode !== undefined && call.exitCode !== 0 && (
        <span className={`${styles.badge} ${styles.bad}`}>exit {call.exitCode}</span>
      )}
      {hits(call)}
      {problems > 0 && <span className={`${styles.badge} ${styles.bad}`}>{plural(problems, "problem")}</span>}
      {call.images !== undefined && call.images.length > 0 && (
        <span className={styles.badge}>{plural(call.images.length, "image")}</span>
      )}
      {inBackground(call) && <span className={`${styles.badge} ${styles.minor}`}>background</span>}
      {call.truncated === true && <span className={`${styles.badge} ${styles.minor}`}>truncated</span>}
      {decision(call)}
    </span>
  );
}

function makesFile(call: ToolCall): boolean {
  if (call.isNewFile === true) return true;
  return call.isNewFile !== false && call.diffs?.length === 1 && call.diffs[0]?.action === "add";
}

function hits(call: ToolCall) {
  // Some agents say 0 beside the lines they found.
  if (call.count === undefined || (call.count === 0 && found(call))) return null;
  const word = call.toolName === "glob" ? plural(call.count, "file") : plural(call.count, "result");
  return <span className={styles.badge}>{word}</span>;
}

function found(call: ToolCall): boolean {
  return /:\d+:/.test((call.rawOutput ?? "").slice(0, 2000));
}

const DECISIONS: Record<string, string> = {
  allowed: "allowed",
  rejected: "rejected",
  cancelled: "not answered",
};

function decision(call: ToolCall) {
  if (!call.permission) return null;
  const { decision, option } = call.permission;
  const word = Object.hasOwn(DECISIONS, decision) ? DECISIONS[decision] : visible(decision.slice(0, 40));
  const look = decision === "rejected" ? styles.bad : styles.minor;
  return (
    <span className={`${styles.badge} ${look}`} title={option?.slice(0, 200)}>
      {word}
    </span>
  );
}
