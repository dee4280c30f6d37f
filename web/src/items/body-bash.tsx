import { CopyButton } from "../content/copy";
import { Images } from "../content/images";
import { Terminal } from "../content/terminal";
import { visible } from "../content/visible";
import { useSession } from "../state/context";
import type { BodyProps } from "./body";
import styles from "./body.module.css";
import { Facts, Locations, Nothing, Trouble } from "./body-parts";
import { inBackground, inputNumber, inputText } from "./fields";
import { formatDuration, statusOf } from "./labels";
import { objectOf } from "./object";

/** A command and what it said. */
export function BashBody({ item }: BodyProps) {
  const call = item.toolCall;
  const { running } = useSession();
  const status = statusOf(call.status, running);
  const live = status === "running" || status === "waiting";
  const { aside, text } = objectOf(call);
  const said = call.command ? aside : text;
  const output = call.rawOutput ?? "";
  const timeout = inputNumber(call, "timeout", "timeout_ms");
  const cwd = inputText(call, "cwd", "workdir");
  return (
    <>
      {said && <p className={styles.said}>{visible(said)}</p>}
      {(call.command || output) && (
        <div className={styles.shell}>
          {call.command && (
            <div className={styles.command}>
              <span className={styles.prompt} aria-hidden="true">
                $
              </span>
              <code>{visible(call.command)}</code>
              <CopyButton text={call.command} label="Copy the command" />
            </div>
          )}
          {output && <Terminal text={output} tail={live} openKey={`${item.id}/output`} />}
        </div>
      )}
      {!output && !call.error && <Nothing>{live ? "No output yet." : "No output."}</Nothing>}
      <Trouble text={call.error === output ? undefined : call.error} openKey={item.id} />
      {call.images && <Images images={call.images} />}
      {!call.command && <Locations locations={call.locations} />}
      <Facts
        facts={[
          call.exitCode !== undefined && `Exit code ${call.exitCode}`,
          cwd && cwd !== "." && `in ${cwd}`,
          timeout !== undefined && `at most ${formatDuration(timeout)}`,
          inBackground(call) && "runs in the background",
          call.truncated === true && "output truncated by the agent",
        ]}
      />
    </>
  );
}
