import { Images } from "../content/images";
import { Terminal } from "../content/terminal";
import { visible } from "../content/visible";
import { useOpen } from "../state/context";
import type { BodyProps } from "./body";
import { Facts, Locations, Nothing, Trouble } from "./body-parts";
import styles from "./body-search.module.css";
import { inputText } from "./fields";
import { plural } from "./labels";
import { MiddleText } from "./middle-text";
import { objectOf } from "./object";
import { type SearchGroup, type SearchResults, searchResults } from "./search-results";

const FIRST_ROWS = 120;

/** What a search found. */
export function SearchBody({ item }: BodyProps) {
  const call = item.toolCall;
  const output = call.rawOutput ?? "";
  const results = output.trim() ? searchResults(output, call.toolName, onePathOf(call.filePath)) : undefined;
  const { text, aside } = objectOf(call);
  // The line of the card has no room for it.
  const long = text.length > 60;
  const only = inputText(call, "glob", "include", "type");
  return (
    <>
      {(long || aside || only) && (
        <p className={styles.asked}>
          {long && <code>{visible(text)}</code>}
          {aside && <span>{visible(aside)}</span>}
          {only && <span>only {visible(only)}</span>}
        </p>
      )}
      <Trouble text={call.error} openKey={item.id} />
      {results ? (
        <Results results={results} openKey={`${item.id}/all`} />
      ) : (
        output.trim() && <Terminal text={output} openKey={`${item.id}/output`} />
      )}
      {!output.trim() && !call.error && (
        <Nothing>
          {call.status === "completed" || call.status === "failed"
            ? "Nothing was found, or it was not kept."
            : "No results yet."}
        </Nothing>
      )}
      {call.images && <Images images={call.images} />}
      {!results?.groups.length && (call.locations?.length ?? 0) > 1 && (
        <Locations locations={call.locations} />
      )}
      <Facts
        facts={[
          sumOf(results),
          call.exitCode !== undefined && call.exitCode !== 0 && `exit code ${call.exitCode}`,
          call.truncated === true && "truncated by the agent",
        ]}
      />
    </>
  );
}

/** A search in one file gives lines without its name. */
function onePathOf(path: string | undefined): string | undefined {
  return path && /\.[A-Za-z0-9]{1,8}$/.test(path) ? path : undefined;
}

function sumOf(results: SearchResults | undefined): string | undefined {
  if (!results?.groups.length) return undefined;
  const files = plural(results.groups.length, "file");
  return results.hits > 0 ? `${plural(results.hits, "result")} in ${files}` : files;
}

function Results({ results, openKey }: { results: SearchResults; openKey: string }) {
  const [all, setAll] = useOpen(openKey);
  const rows = results.groups.reduce((sum, group) => sum + 1 + group.hits.length, 0);
  const groups = all ? results.groups : firstRows(results.groups);
  return (
    <div className={styles.results}>
      {results.notes.map((note, at) => (
        <p key={at} className={styles.note}>
          {visible(note)}
        </p>
      ))}
      {groups.map((group) => (
        <Group key={group.path} group={group} />
      ))}
      {!all && rows > FIRST_ROWS && (
        <button type="button" className={styles.more} onClick={() => setAll(true)}>
          Show all ({plural(rows, "line")})
        </button>
      )}
    </div>
  );
}

function firstRows(groups: readonly SearchGroup[]): SearchGroup[] {
  const first: SearchGroup[] = [];
  let left = FIRST_ROWS;
  for (const group of groups) {
    if (left <= 0) break;
    const hits = group.hits.slice(0, left - 1);
    first.push({ path: group.path, hits });
    left -= 1 + hits.length;
  }
  return first;
}

function Group({ group }: { group: SearchGroup }) {
  return (
    <div className={styles.group}>
      <div className={styles.path}>
        <MiddleText mono path text={group.path} />
      </div>
      {group.hits.map((hit, at) => (
        <div key={at} className={styles.hit} data-beside={hit.beside ? true : undefined}>
          <span className={styles.line}>{hit.line}</span>
          <span className={styles.text}>{visible(hit.text.slice(0, 2000))}</span>
        </div>
      ))}
    </div>
  );
}
