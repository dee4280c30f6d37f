import { type FormEvent, useId, useState } from "react";
import type { QuestionPart } from "../api/types";
import { visibleProse } from "../content/visible";
import styles from "./ask.module.css";
import { Asked, chosenOf } from "./question";

interface Props {
  questions: readonly QuestionPart[];
  busy?: boolean;
  /** The answers, by the names of their questions, or by their words. */
  onAnswer(answers: Record<string, string>): void;
  /** Nothing is answered, and the agent goes on. */
  onDecline?(): void;
}

/** What somebody has said up to now: options by their places, and own words. */
interface Said {
  chosen: readonly number[];
  own: string;
}

/** Questions to answer. One with one answer is answered by a click, others when all is said. */
export function QuestionForm({ questions, busy, onAnswer, onDecline }: Props) {
  const [said, setSaid] = useState<readonly Said[]>(() => questions.map(suggested));
  const visit = questions.every((part) => part.optional && !part.name);
  const only = questions.length === 1 && !questions[0]!.multiSelect && !visit && !questions[0]!.optional;
  const answers = questions.map((part, at) => [keyOf(part), answerOf(part, said[at]!)] as const);
  const ready = answers.every(([, answer], at) => answer !== "" || questions[at]!.optional);
  const say = (at: number, now: Said) => setSaid(said.map((was, n) => (n === at ? now : was)));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready && !busy) onAnswer(Object.fromEntries(answers.filter(([, answer]) => answer !== "")));
  };
  const send = (
    <button type="submit" className={styles.send} disabled={busy || !ready}>
      {visit ? "Done" : `Send the ${questions.length > 1 ? "answers" : "answer"}`}
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
              <Buttons part={part} busy={busy} onPick={(label) => onAnswer({ [keyOf(part)]: label })} />
            ) : (
              <Choices part={part} said={said[at]!} onSay={(chosen) => say(at, { ...said[at]!, chosen })} />
            )}
            {takesWords(part) && (
              <div className={styles.free}>
                <input
                  type={inputOf(part)}
                  step={part.format === "integer" ? 1 : "any"}
                  value={said[at]!.own}
                  placeholder={part.options.length ? "Something else" : "Your answer"}
                  aria-label={part.options.length ? "Another answer" : "Your answer"}
                  onChange={(event) =>
                    say(at, { chosen: part.multiSelect ? said[at]!.chosen : [], own: event.target.value })
                  }
                />
                {only && send}
              </div>
            )}
          </fieldset>
        ))}
      </div>
      <div className={styles.ends}>
        {(!only || !takesWords(questions[0]!)) && !(only && questions[0]!.options.length > 0) && send}
        {onDecline && (
          <button type="button" className={styles.option} disabled={busy} onClick={onDecline}>
            Do not answer
          </button>
        )}
      </div>
    </form>
  );
}

/** The name by which an answer is given. */
function keyOf(part: QuestionPart): string {
  return part.name ?? part.question;
}

/** A field of a form takes what is on offer; an address is visited. */
function takesWords(part: QuestionPart): boolean {
  if (part.format === "url" || (part.optional && !part.name)) return false;
  return !part.name || part.options.length === 0;
}

const INPUTS: Record<string, string> = {
  number: "number",
  integer: "number",
  date: "date",
  email: "email",
  uri: "url",
};

function inputOf(part: QuestionPart): string {
  return INPUTS[part.format ?? ""] ?? "text";
}

/** What is suggested is there before anything is said. */
function suggested(part: QuestionPart): Said {
  if (part.default === undefined) return { chosen: [], own: "" };
  const named = chosenOf(part, part.default);
  const chosen = part.options.flatMap((option, at) => (named.includes(option.label) ? [at] : []));
  return { chosen, own: takesWords(part) && !chosen.length ? part.default : "" };
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
    if (!part.multiSelect) return onSay(part.optional && said.chosen.includes(at) ? [] : [at]);
    const had = said.chosen.includes(at);
    onSay(had ? said.chosen.filter((other) => other !== at) : [...said.chosen, at].sort((a, b) => a - b));
  };
  return (
    <ul className={styles.choices}>
      {part.options.map((option, at) => (
        <li key={at}>
          <label className={styles.pick}>
            <input
              type={part.multiSelect || part.optional ? "checkbox" : "radio"}
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
