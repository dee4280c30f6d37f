// The front end's own cleaning of paths. What narrows sends is clean: this must find nothing to do.

/** A path relative to the session's root. */
export function stripSessionPrefix(fullPath: string): string {
  if (!fullPath) return "";
  const sbSession = fullPath.match(/\/sandboxes\/[0-9a-f-]+\/sessions\/[0-9a-f-]+\/(.+)$/);
  if (sbSession?.[1]) return sbSession[1];
  const session = fullPath.match(/\/sessions\/[0-9a-f-]+\/(.+)$/);
  if (session?.[1]) return session[1];
  const segments = fullPath.split("/").filter(Boolean);
  if (segments.length > 3) return segments.slice(-3).join("/");
  return fullPath.startsWith("/") ? fullPath.slice(1) : fullPath;
}

const SESSION_PATH_PATTERNS = [
  /(?:\/[\w._-]+)*\/sandboxes\/[0-9a-f-]+\/sessions\/[0-9a-f-]+\//g,
  /(?:\/[\w._-]+)*\/sessions\/[0-9a-f-]+\//g,
];

/** A text without the prefixes of sessions. */
export function sanitizePathsInText(text: string): string {
  if (!text) return "";
  let result = text;
  for (const pattern of SESSION_PATH_PATTERNS) {
    pattern.lastIndex = 0;
    result = result.replace(pattern, "");
  }
  return result;
}
