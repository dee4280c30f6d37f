import { type FormEvent, useId, useState } from "react";
import type { QuestionPart } from "../api/types";
import { visibleProse } from "../content/visible";
import styles from "./ask.module.css";
import { type Answer, Asked } from "./question";

interface Props {
  questions: readonly QuestionPart[];
  busy?: boolean;
  onAnswer(answers: Answer[]): void;
}

/** What somebody has said up to now: options by their places, and own words. */
interface Said {
  chosen: readonly number[];
  own: string;
}

const NOTHING: Said = { chosen: [], own: "" };

/** Questions to answer. One with one answer is answered by a click, others when all is said. */
export function QuestionForm({ questions, busy, onAnswer }: Props) {
  const [said, setSaid] = useState<Record<number, Said>>({});
  const only = questions.length === 1 && !questions[0]!.multiSelect;
  const answers = questions.map((part, at) => ({
    question: part.question,
    answer: answerOf(part, said[at] ?? NOTHING),
  }));
  const ready = answers.every(({ answer }) => answer !== "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready && !busy) onAnswer(answers);
  };
  const send = (
    <button type="submit" className={styles.send} disabled={busy || !ready}>
      Send the {questions.length > 1 ? "answers" : "answer"}
    </button>
  );
  return (
    <form onSubmit={submit}>
      <div className={styles.scroll}>
        {questions.map((part, at) => (
          <fieldset key={at} className={styles.question} disabled={busy}>
            <legend>
              <Asked part={part} />
            </legend>
            {only ? (
              <Buttons
                part={part}
                busy={busy}
                onPick={(label) => onAnswer([{ question: part.question, answer: label }])}
              />
            ) : (
              <Choices
                part={part}
                said={said[at] ?? NOTHING}
                onSay={(chosen) => setSaid({ ...said, [at]: { ...(said[at] ?? NOTHING), chosen } })}
              />
            )}
            <div className={styles.free}>
              <input
                type="text"
                value={said[at]?.own ?? ""}
                placeholder={part.options.length ? "Something else" : "Your answer"}
                aria-label={part.options.length ? "Another answer" : "Your answer"}
                onChange={(event) =>
                  setSaid({
                    ...said,
                    [at]: {
                      chosen: part.multiSelect ? (said[at]?.chosen ?? []) : [],
                      own: event.target.value,
                    },
                  })
                }
              />
              {only && send}
            </div>
          </fieldset>
        ))}
      </div>
      {!only && send}
    </form>
  );
}

function answerOf(part: QuestionPart, { chosen, own }: Said): string {
  const labels = chosen.map((at) => part.options[at]?.label ?? "");
  return [...labels, own.trim()].filter(Boolean).join(", ");
}

function Buttons({
  part,
  busy,
  onPick,
}: {
  part: QuestionPart;
  busy?: boolean;
  onPick(label: string): void;
}) {
  return (
    <ul className={styles.options}>
      {part.options.map((option, at) => (
        <li key={at}>
          <button
            type="button"
            className={styles.option}
            disabled={busy}
            data-digit={at < 9 ? at + 1 : undefined}
            onClick={() => onPick(option.label)}
          >
            <span>{visibleProse(option.label || `Option ${at + 1}`)}</span>
            <Why option={option} />
            {at < 9 && <kbd>{at + 1}</kbd>}
          </button>
        </li>
      ))}
    </ul>
  );
}

interface ChoicesProps {
  part: QuestionPart;
  said: Said;
  onSay(chosen: number[]): void;
}

function Choices({ part, said, onSay }: ChoicesProps) {
  const name = useId();
  const pick = (at: number) => {
    if (!part.multiSelect) return onSay([at]);
    const had = said.chosen.includes(at);
    onSay(had ? said.chosen.filter((other) => other !== at) : [...said.chosen, at].sort((a, b) => a - b));
  };
  return (
    <ul className={styles.choices}>
      {part.options.map((option, at) => (
        <li key={at}>
          <label className={styles.pick}>
            <input
              type={part.multiSelect ? "checkbox" : "radio"}
              name={name}
              checked={said.chosen.includes(at)}
              onChange={() => pick(at)}
            />
            <span>{visibleProse(option.label || `Option ${at + 1}`)}</span>
            <Why option={option} />
          </label>
        </li>
      ))}
    </ul>
  );
}

function Why({ option }: { option: QuestionPart["options"][number] }) {
  if (!option.description || option.description === option.label) return null;
  return <span className={styles.why}>{visibleProse(option.description)}</span>;
}
