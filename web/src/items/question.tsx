import { Check, Circle, CircleQuestionMark } from "lucide-react";
import type { QuestionItem, QuestionPart } from "../api/types";
import { visibleProse } from "../content/visible";
import { useSession } from "../state/context";
import styles from "./ask.module.css";
import { Below } from "./permission";
import { linked } from "./plain";
import { QuestionForm } from "./question-form";

export type Answer = { question: string; answer: string };

export interface QuestionProps {
  item: QuestionItem;
  /** Makes the options buttons; called when every question has its answer. */
  onAnswer?(answers: Record<string, string>): void;
  /** Nothing is answered, and the agent goes on. */
  onDecline?(): void;
  /** The form waits: for what is shown, or for what becomes of the answers. */
  busy?: boolean;
}

/** What the agent asks somebody, and what was answered. */
export function Question({ item, onAnswer, onDecline, busy }: QuestionProps) {
  const open = !item.answers;
  const { asked } = useSession();
  if (open && !onAnswer && item.requestId && asked?.has(item.requestId)) {
    return <Below words={item.questions[0]?.question ?? "A question"} />;
  }
  return (
    <section className={open ? styles.waiting : styles.plan} aria-label="Question">
      <p className={styles.title}>
        <CircleQuestionMark size={16} strokeWidth={2} aria-hidden="true" />
        <span>{item.questions.length > 1 ? "Questions" : "Question"}</span>
        <span className={open ? styles.state : styles.answered}>
          {open ? "waiting for an answer" : endOf(item)}
        </span>
      </p>
      {open && onAnswer ? (
        <QuestionForm questions={item.questions} busy={busy} onAnswer={onAnswer} onDecline={onDecline} />
      ) : (
        <Questions questions={item.questions} answers={item.answers ?? []} />
      )}
      {open && !onAnswer && <p className={styles.hint}>Answer it where the agent runs.</p>}
    </section>
  );
}

/** How it ended: a form may be declined as a whole. */
function endOf({ questions, answers }: QuestionItem): string {
  if (!answers?.length) return "withdrawn, not answered";
  const word = answers.length === 1 ? answers[0]!.answer : "";
  const whole = questions.length > 1 || questions.every((part) => part.optional && !part.name);
  if (whole || questions.every((part) => part.name)) {
    if (word === "decline") return "not answered";
    if (word === "cancel") return "withdrawn, not answered";
  }
  return "answered";
}

/** The questions as they are; the options that were chosen are marked. */
export function Questions({
  questions,
  answers,
}: {
  questions: readonly QuestionPart[];
  answers: readonly Answer[];
}) {
  return questions.map((part, at) => {
    const answer = answers.find((given) => given.question === part.question)?.answer;
    const chosen = answer === undefined ? [] : chosenOf(part, answer);
    return (
      <div key={at} className={styles.question}>
        <Asked part={part} />
        <ul className={styles.choices}>
          {part.options.map((option, n) => (
            <li key={n} className={chosen.includes(option.label) ? styles.chosen : styles.choice}>
              {chosen.includes(option.label) ? (
                <Check size={14} strokeWidth={2.5} role="img" aria-label="Chosen" />
              ) : (
                <Circle size={12} aria-hidden="true" />
              )}
              <span>{visibleProse(option.label || "An option without words")}</span>
              {option.description && <span className={styles.why}>{visibleProse(option.description)}</span>}
            </li>
          ))}
        </ul>
        {answer !== undefined && chosen.length === 0 && (
          <p className={styles.own}>
            <span className={styles.why}>Answer: </span>
            {visibleProse(answer || "nothing")}
          </p>
        )}
      </div>
    );
  });
}

export function Asked({ part }: { part: QuestionPart }) {
  return (
    <p className={styles.asked}>
      {part.header && <span className={styles.header}>{visibleProse(part.header)}</span>}
      <span>{linked(part.question)}</span>
      {part.multiSelect && <span className={styles.why}>several may be chosen</span>}
      {part.optional && part.name && <span className={styles.why}>may be left out</span>}
    </p>
  );
}

/** Which options an answer names: one, or several with commas between them. */
export function chosenOf(part: QuestionPart, answer: string): string[] {
  const labels = part.options.map((option) => option.label);
  if (labels.includes(answer)) return [answer];
  const named = answer.split(/,\s*/);
  return part.multiSelect && named.every((name) => labels.includes(name)) ? named : [];
}
