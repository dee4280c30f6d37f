import { Check, Circle, CircleQuestionMark } from "lucide-react";
import { useState } from "react";
import type { QuestionItem, QuestionPart } from "../api/types";
import { visibleProse } from "../content/visible";
import styles from "./ask.module.css";
import { linked } from "./plain";

export type Answer = { question: string; answer: string };

export interface QuestionProps {
  item: QuestionItem;
  /** Makes the options buttons; told when every question has its answer. */
  onAnswer?(answers: Answer[]): void;
}

/** What the agent asks somebody, and what was answered. */
export function Question({ item, onAnswer }: QuestionProps) {
  const open = !item.answers;
  return (
    <section className={open ? styles.waiting : styles.plan} aria-label="Question">
      <p className={styles.title}>
        <CircleQuestionMark size={16} strokeWidth={2} aria-hidden="true" />
        <span>{item.questions.length > 1 ? "Questions" : "Question"}</span>
        <span className={open ? styles.state : styles.answered}>
          {open ? "waiting for an answer" : "answered"}
        </span>
      </p>
      {open && onAnswer ? (
        <Form questions={item.questions} onAnswer={onAnswer} />
      ) : (
        <Questions questions={item.questions} answers={item.answers ?? []} />
      )}
      {open && !onAnswer && <p className={styles.hint}>Answer it where the agent runs.</p>}
    </section>
  );
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

function Asked({ part }: { part: QuestionPart }) {
  return (
    <p className={styles.asked}>
      {part.header && <span className={styles.header}>{visibleProse(part.header)}</span>}
      <span>{linked(part.question)}</span>
      {part.multiSelect && <span className={styles.why}>several may be chosen</span>}
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

function Form({
  questions,
  onAnswer,
}: {
  questions: readonly QuestionPart[];
  onAnswer(answers: Answer[]): void;
}) {
  const [chosen, setChosen] = useState<Record<number, string[]>>({});
  const only = questions.length === 1 && !questions[0]!.multiSelect;
  const answersOf = (picked: Record<number, string[]>): Answer[] =>
    questions.map((part, at) => ({ question: part.question, answer: (picked[at] ?? []).join(", ") }));
  const pick = (at: number, part: QuestionPart, label: string) => {
    const had = chosen[at] ?? [];
    const toggled = had.includes(label) ? had.filter((other) => other !== label) : [...had, label];
    const next = { ...chosen, [at]: part.multiSelect ? toggled : [label] };
    setChosen(next);
    if (only) onAnswer(answersOf(next));
  };
  return (
    <>
      {questions.map((part, at) => (
        <div key={at} className={styles.question}>
          <Asked part={part} />
          <ul className={styles.options}>
            {part.options.map((option, n) => (
              <li key={n}>
                <button
                  type="button"
                  className={styles.option}
                  aria-pressed={only ? undefined : (chosen[at] ?? []).includes(option.label)}
                  onClick={() => pick(at, part, option.label)}
                >
                  <span>{visibleProse(option.label || `Option ${n + 1}`)}</span>
                  {option.description && (
                    <span className={styles.why}>{visibleProse(option.description)}</span>
                  )}
                  {only && n < 9 && <kbd>{n + 1}</kbd>}
                </button>
              </li>
            ))}
          </ul>
        </div>
      ))}
      {!only && (
        <button
          type="button"
          className={styles.send}
          disabled={questions.some((_, at) => !chosen[at]?.length)}
          onClick={() => onAnswer(answersOf(chosen))}
        >
          Send the {questions.length > 1 ? "answers" : "answer"}
        </button>
      )}
    </>
  );
}
