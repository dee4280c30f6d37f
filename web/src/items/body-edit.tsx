import type { Diff, ToolCall } from "../api/types";
import { Code } from "../content/code";
import { DiffView } from "../content/diff";
import { Images } from "../content/images";
import type { BodyProps } from "./body";
import { Facts, Locations, Nothing, Trouble } from "./body-parts";
import { inputText } from "./fields";
import { Problems } from "./problems";

/** What was changed. */
export function EditBody({ item }: BodyProps) {
  const call = item.toolCall;
  const diffs = diffsOf(call);
  const patch = diffs.length === 0 ? inputText(call, "patchText", "patch", "input") : undefined;
  const nothing = diffs.length === 0 && !patch && !call.error && !call.rawOutput;
  return (
    <>
      <Trouble text={call.error} openKey={item.id} />
      {diffs.length > 0 && <DiffView diffs={diffs} openKey={`${item.id}/diff`} />}
      {patch && <Code text={patch} lang="diff" openKey={`${item.id}/patch`} />}
      {diffs.length === 0 && !patch && call.rawOutput && (
        <Code text={call.rawOutput} path={call.filePath || undefined} openKey={`${item.id}/output`} />
      )}
      {call.diagnostics !== undefined && <Problems diagnostics={call.diagnostics} />}
      {call.images && <Images images={call.images} />}
      {nothing && <Nothing>What was changed is not known.</Nothing>}
      {nothing && <Locations locations={call.locations} />}
      <Facts facts={[call.status === "failed" && diffs.length > 0 && "The change was not made"]} />
    </>
  );
}

/** The changes a call names, or the one that its arguments speak of. */
export function diffsOf(call: ToolCall): readonly Diff[] {
  if (call.diffs?.length) return call.diffs;
  const oldText = call.oldContent ?? inputText(call, "old_string", "oldString") ?? null;
  const newText =
    call.newContent ?? inputText(call, "new_string", "newString", "content", "new_source") ?? null;
  if (oldText === null && newText === null) return [];
  const path = call.filePath || call.description || "";
  return [{ path, oldText, newText, scope: "hunk", ...(call.isNewFile ? { action: "add" as const } : {}) }];
}
