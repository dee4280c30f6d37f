import remend from "remend";

// What a block that is still being written will look like when it is closed.

/** Marks are closed near the end of a text; what lies further back is as it will stay. */
const reach = 4000;

// Only what closes marks: nothing may look otherwise when the text is whole.
const options = {
  linkMode: "text-only",
  htmlTags: false,
  katex: false,
  singleTilde: false,
  comparisonOperators: false,
} as const;

function closeMarks(source: string): string {
  if (source.length <= reach) return remend(source, options);
  const from = source.lastIndexOf("\n", source.length - reach) + 1;
  const end = source.slice(from);
  return end.length > 2 * reach ? source : source.slice(0, from) + remend(end, options);
}

function cells(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/);
}

/** A table whose ruler has not come yet, or not all of it: shown as the table it is going to be. */
function closeTable(source: string): string | null {
  const lines = source.replace(/\n$/, "").split("\n");
  const last = lines.at(-1)!;
  const before = lines.at(-2);
  if (lines.length === 1) {
    if (!/^ {0,3}\|.*[^\s|]/.test(last)) return null;
    const columns = cells(last).length;
    const row = /(?<!\\)\|\s*$/.test(last) && last.trim().length > 1 ? last : `${last} |`;
    return `${row}\n|${" --- |".repeat(columns)}`;
  }
  if (!before?.includes("|") || !/^ {0,3}[|:-][|: \t-]*$/.test(last)) return null;
  if (lines.length > 2 && !/^ {0,3}\|/.test(before)) return null;
  const columns = cells(before).length;
  const come = cells(last).map((cell) => cell.trim());
  const ruler = Array.from({ length: columns }, (_, n) => {
    const cell = come[n] ?? "";
    return `${cell.startsWith(":") ? ":" : ""}---${cell.length > 1 && cell.endsWith(":") ? ":" : ""}`;
  });
  return `${lines.slice(0, -1).join("\n")}\n| ${ruler.join(" | ")} |`;
}

export function mend(source: string, type: string): string {
  if (type === "code" || type === "html" || type === "hr" || type === "space" || type === "def")
    return source;
  if (type === "paragraph" || type === "heading") {
    const table = closeTable(source);
    if (table) return table;
  }
  return closeMarks(source);
}
