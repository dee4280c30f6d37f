import { Code } from "../content/code";
import { Images } from "../content/images";
import type { BodyProps } from "./body";
import { Facts, Locations, Nothing, Trouble } from "./body-parts";
import { firstLineOf } from "./object";

/** A file, or the part of it that was read. */
export function ReadBody({ item }: BodyProps) {
  const call = item.toolCall;
  const failed = call.status === "failed";
  const output = call.rawOutput ?? "";
  const images = call.images ?? [];
  return (
    <>
      {images.length > 0 && <Images images={images} />}
      {failed && !call.error ? (
        <Trouble text={output} openKey={item.id} />
      ) : (
        output && (
          <Code
            text={output}
            path={call.filePath || undefined}
            start={firstLineOf(call) ?? 1}
            numbers
            openKey={`${item.id}/output`}
          />
        )
      )}
      <Trouble text={call.error} openKey={item.id} />
      {!output && !call.error && images.length === 0 && (
        <Nothing>
          {call.status === "completed" ? "The file is empty, or its text was not kept." : "Nothing was read."}
        </Nothing>
      )}
      {(call.locations?.length ?? 0) > 1 && <Locations locations={call.locations} />}
      <Facts
        facts={[
          call.exitCode !== undefined && call.exitCode !== 0 && `Exit code ${call.exitCode}`,
          call.truncated === true && "truncated by the agent",
        ]}
      />
    </>
  );
}
