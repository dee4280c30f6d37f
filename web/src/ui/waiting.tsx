import { Hand } from "lucide-react";
import type { Item } from "../api/types";
import { visible } from "../content/visible";
import type { View } from "../state/session";
import css from "./waiting.module.css";

/** What needs a person, wherever one reads. It stands outside of what an agent can write. */
export function Waiting({ view, onShow }: { view: View; onShow(item: string): void }) {
  if (view.ended) return null;
  const open = view.items.filter(isOpen);
  const known = new Set(view.items.map((item) => item.id));
  const elsewhere = (view.outline?.waiting ?? []).filter((id) => !known.has(id));
  const first = open[0]?.id ?? elsewhere[0];
  if (!first) return null;
  const count = open.length + elsewhere.length;
  return (
    <section className={css.bar} aria-label="Waiting for you">
      <Hand size={16} aria-hidden />
      <p>
        {count === 1 ? "The agent waits for an answer." : `The agent waits for ${count} answers.`}
        <span>{open[0] && ` ${wordsOf(open[0])}`}</span>
      </p>
      <button type="button" onClick={() => onShow(first)}>
        Show
      </button>
    </section>
  );
}

function isOpen(item: Item): boolean {
  return item.type === "permission" || (item.type === "question" && !item.answers && !!item.requestId);
}

function wordsOf(item: Item): string {
  if (item.type === "permission") return visible(item.title ?? "");
  return item.type === "question" ? visible(item.questions[0]?.question ?? "") : "";
}
