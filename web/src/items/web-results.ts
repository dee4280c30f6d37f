// Reads the output of web searches, which every agent writes in its own way.
import { parsedJson, record } from "./fields";

export interface WebResult {
  url: string;
  title?: string;
  snippet?: string;
}

export interface WebResults {
  results: WebResult[];
  /** What stood around them. */
  rest: string;
}

/** The pages that were found; nothing when the text names none. */
export function webResults(output: string): WebResults | undefined {
  const text = output.slice(0, 400_000);
  return fromJson(text) ?? fromLinks(text) ?? fromBlocks(text) ?? fromList(text);
}

const isUrl = (value: unknown): value is string =>
  typeof value === "string" && /^https?:\/\/\S+$/.test(value);
const said = (value: unknown) => (typeof value === "string" && value.trim() ? value.trim() : undefined);

function listed(value: unknown): WebResult[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry) => {
    const fields = record(entry);
    const url = [fields?.url, fields?.link, fields?.href].find(isUrl);
    if (!fields || !url) return [];
    const snippet = said(fields.snippet) ?? said(fields.description) ?? said(fields.text);
    return [{ url, title: said(fields.title), snippet }];
  });
}

/** The whole is JSON. */
function fromJson(text: string): WebResults | undefined {
  const value = parsedJson(text);
  const results = listed(Array.isArray(value) ? value : record(value)?.results);
  return results.length ? { results, rest: "" } : undefined;
}

/** `Links: [{"title": …, "url": …}]`, and then what the model made of them. */
function fromLinks(text: string): WebResults | undefined {
  const results: WebResult[] = [];
  const rest = text.replace(/^Links: (\[.*\])$/gm, (line, list: string) => {
    const found = listed(parsedJson(list));
    results.push(...found);
    return found.length ? "" : line;
  });
  return results.length ? { results, rest: rest.trim() } : undefined;
}

/** Blocks of `Title: …`, `URL: …` and a text. */
function fromBlocks(text: string): WebResults | undefined {
  const results: WebResult[] = [];
  const [before = "", ...blocks] = text.split(/^(?=Title: )/m);
  for (const block of [before, ...blocks]) {
    const url = /^URL: (\S+)$/m.exec(block)?.[1];
    if (!isUrl(url)) continue;
    const title = said(/^Title: (.*)$/m.exec(block)?.[1]);
    const body = block.replace(/^(?:Title|URL|Author|Published Date|Score): .*$/gm, "");
    results.push({ url, title, snippet: said(body.replace(/^(?:Text|Highlights|Snippet|Summary): ?/m, "")) });
  }
  if (results.length === 0) return undefined;
  return { results, rest: /^(?:Title|URL): /m.test(before) ? "" : before.trim() };
}

/** A list of addresses or of Markdown links, with a text below each. */
function fromList(text: string): WebResults | undefined {
  const results: WebResult[] = [];
  const rest: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const entry = /^\s*(?:[-*•]|\d{1,3}[.)])\s+(.*)$/.exec(line)?.[1];
    const link = entry && /^(?:\*\*)?\[([^\]]*)\]\((https?:\/\/[^\s)]+)\)(?:\*\*)?[\s:–—-]*(.*)$/.exec(entry);
    const bare = entry && /^<?(https?:\/\/[^\s>]+)>?[\s:–—-]*(.*)$/.exec(entry);
    if (link) results.push({ url: link[2]!, title: said(link[1]), snippet: said(link[3]) });
    else if (bare) results.push({ url: bare[1]!, snippet: said(bare[2]) });
    else if (results.length > 0 && /^\s{2,}\S/.test(line)) append(results[results.length - 1]!, line.trim());
    else rest.push(line);
  }
  return results.length ? { results, rest: rest.join("\n").trim() } : undefined;
}

function append(result: WebResult, text: string): void {
  result.snippet = result.snippet ? `${result.snippet} ${text}` : text;
}
