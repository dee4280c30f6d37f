// Calls by which the agent speaks to a person: its list, its plan, its questions.
import type { QuestionPart, ToolCall } from "../api/types";
import { LongText } from "../content/long-text";
import { Markdown } from "../content/markdown";
import type { BodyProps } from "./body";
import { Output } from "./body-generic";
import { Nothing, Part, Trouble } from "./body-parts";
import { record } from "./fields";
import { Questions } from "./question";
import { Progress, Todos } from "./todo-list";

export function TodoBody({ item }: BodyProps) {
  const { todos, error, rawOutput } = item.toolCall;
  return (
    <>
      <Trouble text={error} openKey={item.id} />
      {todos && todos.length > 0 ? (
        <div>
          <Progress todos={todos} />
          <Todos todos={todos} />
        </div>
      ) : (
        !error && !rawOutput && <Nothing>The list is not known.</Nothing>
      )}
      {!todos?.length && rawOutput && <Output text={rawOutput} openKey={`${item.id}/output`} />}
    </>
  );
}

export function PlanBody({ item }: BodyProps) {
  const { plan, error, rawOutput } = item.toolCall;
  return (
    <>
      {plan && <Markdown text={plan} />}
      <Trouble text={error} openKey={item.id} />
      {rawOutput && (
        <Part label="Answer">
          <LongText text={rawOutput} openKey={`${item.id}/output`} />
        </Part>
      )}
      {!plan && !error && !rawOutput && <Nothing>The plan is not known.</Nothing>}
    </>
  );
}

export function QuestionBody({ item }: BodyProps) {
  const { error, rawOutput } = item.toolCall;
  const questions = questionsOf(item.toolCall);
  return (
    <>
      {questions.length > 0 && (
        <div>
          <Questions questions={questions} answers={[]} />
        </div>
      )}
      <Trouble text={error} openKey={item.id} />
      {rawOutput && (
        <Part label="Answer">
          <LongText text={rawOutput} openKey={`${item.id}/output`} />
        </Part>
      )}
      {questions.length === 0 && !error && !rawOutput && <Nothing>The question is not known.</Nothing>}
    </>
  );
}

/** The questions in the arguments, as far as they are some. */
function questionsOf(call: ToolCall): QuestionPart[] {
  const list = record(call.input)?.questions;
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry) => {
    const part = record(entry);
    if (typeof part?.question !== "string") return [];
    const options = Array.isArray(part.options) ? part.options : [];
    return [
      {
        question: part.question,
        header: typeof part.header === "string" ? part.header : undefined,
        multiSelect: part.multiSelect === true,
        options: options.flatMap((option) => {
          const { label, description } = record(option) ?? {};
          if (typeof label !== "string") return [];
          return [{ label, description: typeof description === "string" ? description : undefined }];
        }),
      },
    ];
  });
}
