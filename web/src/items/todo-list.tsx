import { Ban, Circle, CircleCheck, CircleDot, CircleQuestionMark, type LucideIcon } from "lucide-react";
import type { Todo, TodoListItem } from "../api/types";
import { visibleProse } from "../content/visible";
import { useOpen, useWhole } from "../state/context";
import { LoadError } from "./body-parts";
import { MoreButton } from "./more-button";
import styles from "./todo-list.module.css";

/** The agent's list of what it has to do, where it began; it changes in place. */
export function TodoListView({ item }: { item: TodoListItem }) {
  const [open, setOpen] = useOpen(`${item.id}/all`);
  const whole = useWhole(item, open);
  const { todos } = whole.item.todoList;
  return (
    <section className={styles.card} aria-label="Todo list">
      <Progress todos={todos} />
      <Todos todos={todos} />
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
      {item.clipped && (
        <MoreButton open={open} label="Show the whole texts" onToggle={() => setOpen(!open)} />
      )}
    </section>
  );
}

/** "4 of 7 done", and a thin bar of it. */
export function Progress({ todos }: { todos: readonly Todo[] }) {
  const done = todos.filter((todo) => todo.status === "completed").length;
  const all = todos.length;
  if (all === 0) return <p className={styles.sum}>An empty todo list</p>;
  return (
    <div className={styles.head}>
      <p className={styles.sum}>
        {done} of {all} done
      </p>
      <progress className={styles.bar} value={done} max={all} aria-label={`${done} of ${all} done`} />
    </div>
  );
}

const LOOKS: Record<string, { Icon: LucideIcon; word: string; look?: string }> = {
  pending: { Icon: Circle, word: "To do" },
  in_progress: { Icon: CircleDot, word: "In progress", look: styles.now },
  completed: { Icon: CircleCheck, word: "Done", look: styles.done },
  cancelled: { Icon: Ban, word: "Cancelled", look: styles.cancelled },
  failed: { Icon: Ban, word: "Failed", look: styles.cancelled },
};

/** The entries alone. */
export function Todos({ todos }: { todos: readonly Todo[] }) {
  return (
    <ul className={styles.list}>
      {todos.map((todo, at) => (
        <Entry key={at} todo={todo} />
      ))}
    </ul>
  );
}

function Entry({ todo }: { todo: Todo }) {
  const { status, content, activeForm, priority } = todo;
  const known = Object.hasOwn(LOOKS, status) ? LOOKS[status] : undefined;
  const { Icon, word, look } = known ?? {
    Icon: CircleQuestionMark,
    word: visibleProse(status.slice(0, 40)),
    look: undefined,
  };
  // What is being done is said as it is being done; what it is called stays for those who search.
  const doing = status === "in_progress" && activeForm && activeForm !== content;
  return (
    <li className={look ? `${styles.entry} ${look}` : styles.entry}>
      <Icon size={15} strokeWidth={2} role="img" aria-label={word} className={styles.icon} />
      <span className={styles.words} title={doing ? visibleProse(content) : undefined}>
        {visibleProse(doing ? activeForm : content || activeForm || "An entry without words")}
      </span>
      {priority === "high" && status !== "completed" && <span className={styles.priority}>high</span>}
    </li>
  );
}
