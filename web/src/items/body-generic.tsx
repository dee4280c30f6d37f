import { Code } from "../content/code";
import { DiffView } from "../content/diff";
import { Images } from "../content/images";
import { Json } from "../content/json";
import { LongText } from "../content/long-text";
import { Terminal } from "../content/terminal";
import type { BodyProps } from "./body";
import { Facts, Locations, Nothing, Part, Trouble } from "./body-parts";
import { parsedJson } from "./fields";
import { Problems } from "./problems";

/** A call of any tool: what it was given, and what it gave. */
export function GenericBody({ item }: BodyProps) {
  const call = item.toolCall;
  const output = call.rawOutput ?? "";
  const given = call.input !== undefined && call.input !== null;
  const nothing = !given && !output && !call.error && !call.images?.length && !call.diffs?.length;
  return (
    <>
      {given && (
        <Part label="Arguments">
          <Json value={call.input} openKey={`${item.id}/input`} />
        </Part>
      )}
      <Trouble text={call.error} openKey={item.id} />
      {output && (
        <Part label="Output">
          <Output text={output} openKey={`${item.id}/output`} />
        </Part>
      )}
      {call.diffs && call.diffs.length > 0 && <DiffView diffs={call.diffs} openKey={`${item.id}/diff`} />}
      {call.images && <Images images={call.images} />}
      {call.diagnostics !== undefined && <Problems diagnostics={call.diagnostics} />}
      <Locations locations={call.locations} />
      {nothing && <Nothing>Nothing more is known of this call.</Nothing>}
      <Facts
        facts={[
          call.name && call.name !== call.description && call.name,
          call.rawKind && `kind ${call.rawKind}`,
          call.exitCode !== undefined && `exit code ${call.exitCode}`,
          call.truncated === true && "truncated by the agent",
        ]}
      />
    </>
  );
}

/** A text of which nothing is known: as JSON, as a terminal where it has its colours, or as it is. */
export function Output({ text, openKey }: { text: string; openKey: string }) {
  const json = parsedJson(text);
  if (json !== undefined) return <Code text={JSON.stringify(json, null, 2)} lang="json" openKey={openKey} />;
  if (text.includes("\u001b[")) return <Terminal text={text} openKey={openKey} />;
  return <LongText text={text} openKey={openKey} />;
}
