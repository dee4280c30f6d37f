import { Code } from "../content/code";
import { Images } from "../content/images";
import { SafeLink } from "../content/link";
import { LongText } from "../content/long-text";
import { Markdown } from "../content/markdown";
import { visible } from "../content/visible";
import { useOpen } from "../state/context";
import type { BodyProps } from "./body";
import { Facts, Nothing, Part, Trouble } from "./body-parts";
import styles from "./body-web.module.css";
import { inputText, parsedJson } from "./fields";
import { plural } from "./labels";
import { type WebResult, webResults } from "./web-results";

/** A page that was fetched. */
export function FetchBody({ item }: BodyProps) {
  const call = item.toolCall;
  const url = inputText(call, "url", "uri") ?? call.description ?? "";
  const prompt = inputText(call, "prompt");
  const output = call.rawOutput ?? "";
  return (
    <>
      {url && (
        <p className={styles.url}>
          <SafeLink href={url}>{visible(url)}</SafeLink>
        </p>
      )}
      {prompt && (
        <Part label="Asked of the page">
          <LongText text={prompt} openKey={`${item.id}/prompt`} />
        </Part>
      )}
      <Trouble text={call.error} openKey={item.id} />
      {output && (
        <Page text={output} html={inputText(call, "format") === "html"} openKey={`${item.id}/output`} />
      )}
      {call.images && <Images images={call.images} />}
      {!output && !call.error && <Nothing>Nothing of the page was kept.</Nothing>}
      <Facts facts={[call.truncated === true && "truncated by the agent"]} />
    </>
  );
}

const FOLDED = 4000;

function Page({ text, html, openKey }: { text: string; html: boolean; openKey: string }) {
  const [all, setAll] = useOpen(openKey);
  if (html || /^\s*<(?:!doctype|html)\b/i.test(text))
    return <Code text={text} lang="html" openKey={openKey} />;
  const json = parsedJson(text);
  if (json !== undefined) return <Code text={JSON.stringify(json, null, 2)} lang="json" openKey={openKey} />;
  const cut = !all && text.length > FOLDED * 1.5;
  return (
    <div className={styles.page}>
      <Markdown text={cut ? text.slice(0, text.lastIndexOf("\n", FOLDED) + 1 || FOLDED) : text} />
      {cut && (
        <button type="button" className={styles.more} onClick={() => setAll(true)}>
          Show all ({plural(text.length, "character")})
        </button>
      )}
    </div>
  );
}

/** The pages that a search of the web found. */
export function WebSearchBody({ item }: BodyProps) {
  const call = item.toolCall;
  const output = call.rawOutput ?? "";
  const found = output ? webResults(output) : undefined;
  // The line above the results says the query again.
  const rest = found?.rest.replace(/^Web search results.*$/m, "").trim();
  const query = call.pattern || inputText(call, "query");
  return (
    <>
      {query && query.length > 60 && <p className={styles.query}>{visible(query)}</p>}
      <Trouble text={call.error} openKey={item.id} />
      {found && (
        <ol className={styles.results}>
          {found.results.map((result, at) => (
            <Result key={at} result={result} />
          ))}
        </ol>
      )}
      {found
        ? rest && <Page text={rest} html={false} openKey={`${item.id}/output`} />
        : output && <Page text={output} html={false} openKey={`${item.id}/output`} />}
      {!output && !call.error && <Nothing>No results were kept.</Nothing>}
      <Facts
        facts={[
          found && plural(found.results.length, "page"),
          call.truncated === true && "truncated by the agent",
        ]}
      />
    </>
  );
}

const LONGEST = 400;

function Result({ result }: { result: WebResult }) {
  const { snippet } = result;
  return (
    <li className={styles.result}>
      <SafeLink href={result.url}>{visible(result.title ?? result.url)}</SafeLink>
      {snippet && (
        <p className={styles.snippet}>
          {visible(snippet.length > LONGEST ? `${snippet.slice(0, LONGEST)}…` : snippet)}
        </p>
      )}
    </li>
  );
}
