import type { Token, Tokens } from "marked";
import { type BlockContext, blocks } from "./block";
import styles from "./markdown.module.css";

const names = { NOTE: "Note", TIP: "Tip", IMPORTANT: "Important", WARNING: "Warning", CAUTION: "Caution" };
const mark = /^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*(?:\n|$)/;

interface Alert {
  kind: keyof typeof names;
  rest: Token[];
}

/** `> [!NOTE]`: a quote that is a remark. */
function alertOf(token: Tokens.Blockquote): Alert | null {
  const [first, ...rest] = token.tokens;
  if (first?.type !== "paragraph") return null;
  const [start, ...more] = first.tokens ?? [];
  const said = start?.type === "text" ? String((start as Tokens.Text).text) : "";
  const found = mark.exec(said);
  if (!found) return null;
  const text = said.slice(found[0].length);
  if (more[0]?.type === "br") more.shift();
  const inner: Token[] = text ? [{ type: "text", raw: text, text, escaped: false }, ...more] : more;
  const kind = found[1] as Alert["kind"];
  if (inner.length === 0) return { kind, rest };
  return { kind, rest: [{ ...first, tokens: inner } as Token, ...rest] };
}

export function Quote({ token, context }: { token: Tokens.Blockquote; context: BlockContext }) {
  const inner = { depth: context.depth + 1, openKey: context.openKey };
  const alert = alertOf(token);
  if (!alert) return <blockquote className={styles.quote}>{blocks(token.tokens, inner)}</blockquote>;
  return (
    <div role="note" className={styles.alert} data-kind={alert.kind.toLowerCase()}>
      <p className={styles.alertName}>{names[alert.kind]}</p>
      {blocks(alert.rest, inner)}
    </div>
  );
}
