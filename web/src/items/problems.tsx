import { visible } from "../content/visible";
import { record } from "./fields";
import { MiddleText } from "./middle-text";
import styles from "./problems.module.css";

export interface Problem {
  path?: string;
  line?: number;
  severity?: number;
  message: string;
}

const SEVERITIES: Record<number, string> = { 1: "error", 2: "warning", 3: "info", 4: "hint" };

/** What a language server said: lists of problems, by file or not. */
export function problemsOf(diagnostics: unknown): Problem[] {
  const found: Problem[] = [];
  if (Array.isArray(diagnostics)) add(found, undefined, diagnostics);
  for (const [path, list] of Object.entries(record(diagnostics) ?? {})) {
    if (Array.isArray(list)) add(found, path, list);
  }
  return found;
}

function add(found: Problem[], path: string | undefined, list: unknown[]): void {
  for (const entry of list) {
    const problem = record(entry);
    const message = problem?.message;
    if (!problem || typeof message !== "string") continue;
    const line = record(record(problem.range)?.start)?.line;
    const own = typeof problem.path === "string" ? problem.path : path;
    found.push({
      path: own,
      // Language servers count lines from 0.
      line: typeof line === "number" ? line + 1 : undefined,
      severity: typeof problem.severity === "number" ? problem.severity : undefined,
      message,
    });
  }
}

/** The problems as a small list. */
export function Problems({ diagnostics }: { diagnostics: unknown }) {
  const problems = problemsOf(diagnostics);
  if (problems.length === 0) return null;
  return (
    <ul className={styles.list} aria-label="Problems">
      {problems.slice(0, 100).map((problem, at) => (
        <li key={at} className={styles.problem} data-severity={problem.severity ?? 1}>
          <span className={styles.severity}>{SEVERITIES[problem.severity ?? 1] ?? "problem"}</span>
          <span className={styles.message}>{visible(problem.message)}</span>
          {problem.path && (
            <span className={styles.place}>
              <MiddleText mono path text={problem.line ? `${problem.path}:${problem.line}` : problem.path} />
            </span>
          )}
        </li>
      ))}
      {problems.length > 100 && <li className={styles.place}>and {problems.length - 100} more</li>}
    </ul>
  );
}
