import { useEffect } from "react";

const MOST = 500;
/** Words do not go on from one of these to the next. */
const BLOCKS = "p, li, td, th, pre, div, h1, h2, h3, h4, h5, h6, button, section, dt, dd";

/** The words of a query, as the server reads it: phrases in quotes, else words. */
export function termsOf(query: string): string[] {
  const terms = [...query.matchAll(/"([^"]+)"|(\S+)/g)].map((found) => found[1] ?? found[2] ?? "");
  return terms.map((term) => term.replaceAll('"', "").toLowerCase()).filter((term) => term.trim());
}

/** Where words stand on the screen, also across the elements that give code its colours. */
export function rangesOf(root: Node, terms: readonly string[], most = MOST): Range[] {
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  let nodes: Text[] = [];
  let block: Element | null = null;
  for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
    const own = node.parentElement?.closest(BLOCKS) ?? null;
    if (own !== block) {
      look(nodes, terms, ranges, most);
      if (ranges.length >= most) return ranges;
      nodes = [];
      block = own;
    }
    nodes.push(node);
  }
  look(nodes, terms, ranges, most);
  return ranges;
}

function look(nodes: readonly Text[], terms: readonly string[], ranges: Range[], most: number): void {
  const text = nodes.map((node) => node.data).join("");
  const small = text.toLowerCase();
  // A few letters are longer when they are small: then places would not be the same.
  const read = small.length === text.length ? small : text;
  if (!terms.some((term) => read.includes(term))) return;
  const starts: number[] = [];
  let length = 0;
  for (const node of nodes) {
    starts.push(length);
    length += node.length;
  }
  for (const term of terms) {
    for (let at = read.indexOf(term); at >= 0 && ranges.length < most; ) {
      const end = at + term.length;
      const first = nodeAt(starts, at);
      const last = nodeAt(starts, end - 1);
      const range = new Range();
      range.setStart(nodes[first]!, at - starts[first]!);
      range.setEnd(nodes[last]!, end - starts[last]!);
      ranges.push(range);
      at = read.indexOf(term, end);
    }
  }
}

/** Which of the nodes a place is in. */
function nodeAt(starts: readonly number[], place: number): number {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= place) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Marks words in the rows on the screen, without touching them: React owns the elements, the
 * browser paints ranges.
 */
export function useMarks(query: string, ready: boolean): void {
  useEffect(() => {
    if (typeof Highlight === "undefined" || !CSS.highlights) return;
    const terms = termsOf(query);
    const root = ready && document.querySelector('[data-testid="transcript"]');
    if (!terms.length || !root) return;
    const paint = () => CSS.highlights.set("found", new Highlight(...rangesOf(root, terms)));
    let timer = setTimeout(paint, 50);
    const changed = new MutationObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(paint, 80);
    });
    changed.observe(root, { childList: true, subtree: true, characterData: true });
    return () => {
      changed.disconnect();
      clearTimeout(timer);
      CSS.highlights.delete("found");
    };
  }, [query, ready]);
}
