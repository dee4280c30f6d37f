// Characters that change the order of what is shown, or that are not shown at all, can make a command, a
// path or a program read as something else. Here they become visible.

/** Everything invisible: controls, soft hyphens and fillers, marks and turns of direction, tags. */
const unseen = [
  ...[
    "\\u0000-\\u0008",
    "\\u000b-\\u001f",
    "\\u007f-\\u009f",
    "\\u00ad",
    "\\u034f",
    "\\u061c",
    "\\u115f\\u1160",
  ],
  ...[
    "\\u17b4\\u17b5",
    "\\u180b-\\u180f",
    "\\u200b\\u200c\\u200e\\u200f",
    "\\u2028-\\u202e",
    "\\u2060-\\u206f",
  ],
  ...["\\u3164", "\\ufeff", "\\uffa0", "\\ufff9-\\ufffb", "\\u{1d173}-\\u{1d17a}", "\\u{e0000}-\\u{e0fff}"],
].join("");
/** The joiner between two pictographs is the one that belongs. */
const joiner = "(?<!\\p{ExtPict}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]?)\\u200d|\\u200d(?!\\p{ExtPict})";
const invisible = new RegExp(`[${unseen}]|${joiner}`, "gu");

/** What turns the direction of other text; the marks that single words need are left alone. */
const turning = /[\u202a-\u202e\u2066-\u2069]/g;

function shown(found: string): string {
  const code = found.codePointAt(0)!;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The text with its invisible and direction-changing characters shown as escapes. For commands, paths,
 * links and code. */
export function visible(text: string): string {
  return text.replace(invisible, shown);
}

/** The same for prose, where joiners and marks are part of many scripts: only what turns other text. */
export function visibleProse(text: string): string {
  return text.replace(turning, shown);
}
