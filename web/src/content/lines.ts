export function unixLines(text: string): string {
  return text.includes("\r\n") ? text.replaceAll("\r\n", "\n") : text;
}

/** The lines of a text; the newline at its end begins no further line. */
export function linesOf(text: string): string[] {
  const lines = unixLines(text).split("\n");
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return lines;
}

/** A line longer than this is cut until somebody asks for all of it. */
export const longLine = 2000;
/** And never more than this of one line: it would stop the browser. */
export const longestLine = 100_000;

export function hasLongLine(lines: readonly string[]): boolean {
  return lines.some((line) => line.length > longLine);
}

/** What of a line is shown, and how many characters are not. */
export function cutLine(line: string, opened: boolean): { text: string; left: number } {
  const limit = opened ? longestLine : longLine;
  if (line.length <= limit) return { text: line, left: 0 };
  return { text: line.slice(0, limit), left: line.length - limit };
}
