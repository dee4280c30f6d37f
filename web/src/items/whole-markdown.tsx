import type { PlanItem, TextItem } from "../api/types";
import { Markdown } from "../content/markdown";
import { useOpen, useWhole } from "../state/context";
import { MAX_PARTS, partsOf, textOf } from "../state/parts";
import { LoadError } from "./body-parts";
import { plural } from "./labels";
import { MoreButton } from "./more-button";

/** Longer ones are shown whole when somebody asks. */
const LONGEST = 300_000;

/** A text whole, as it was while it came, though a page of items brings it cut. */
export function WholeMarkdown({ item, streaming }: { item: TextItem | PlanItem; streaming?: boolean }) {
  const cut = item.clipped?.content;
  const [open, setOpen] = useOpen(`${item.id}/all`, cut !== undefined && cut <= LONGEST);
  const whole = useWhole(item, open);
  const parts = partsOf(item);
  const more = open && parts !== undefined && parts.length > MAX_PARTS;
  return (
    <>
      {whole.item.content.trim() && <Markdown text={whole.item.content} streaming={streaming} />}
      {whole.error !== undefined && <LoadError error={whole.error} retry={whole.retry} />}
      {cut !== undefined && cut > LONGEST && (
        <MoreButton
          open={open}
          label={`Show all (${plural(cut, "character")})`}
          onToggle={() => setOpen(!open)}
        />
      )}
      {more && <p>The first {MAX_PARTS} MB are shown. An export has all of it.</p>}
      {/* What comes now is shown as it comes, also of a text that is too long to be shown whole. */}
      {parts !== undefined && streaming && !open && <Markdown text={textOf(parts.at(-1)!)} streaming />}
    </>
  );
}
