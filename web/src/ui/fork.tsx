import { GitFork } from "lucide-react";
import css from "./fork.module.css";

/** Beside the name of a session that began as a copy of another one, which is called the same. */
export function ForkMark() {
  return (
    <span className={css.mark} title="It began as a copy of another session">
      <GitFork size={11} strokeWidth={2} aria-hidden="true" />
      fork
    </span>
  );
}
