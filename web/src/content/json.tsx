import { ChevronRight } from "lucide-react";
import { memo, useState } from "react";
import { countOf, spaced, useToggle } from "./fold";
import "./highlight.css";
import styles from "./json.module.css";
import { visible } from "./visible";

export interface JsonProps {
  value: unknown;
  openKey?: string;
}

/** Deeper values are said, not shown. */
const maxDepth = 12;
const firstEntries = 60;
const moreEntries = 400;
const maxString = 600;
/** Values this deep are open at first. */
const openDepth = 2;

/** A value that nobody knows more about. */
export const Json = memo(function Json({ value, openKey }: JsonProps) {
  return (
    <div className={styles.json}>
      <Value value={value} depth={0} openKey={openKey} />
    </div>
  );
});

interface ValueProps {
  value: unknown;
  depth: number;
  name?: string;
  openKey?: string;
}

function entriesOf(value: object): [string | undefined, unknown][] {
  if (Array.isArray(value)) return value.map((entry) => [undefined, entry]);
  return Object.entries(value);
}

function Name({ name }: { name?: string }) {
  if (name === undefined) return null;
  return (
    <>
      <span className="tok-constant">{visible(name)}</span>
      <span className="tok-punctuation">: </span>
    </>
  );
}

function Value({ value, depth, name, openKey }: ValueProps) {
  if (typeof value === "object" && value !== null) {
    const entries = entriesOf(value);
    if (entries.length > 0) {
      return <Branch value={value} entries={entries} depth={depth} name={name} openKey={openKey} />;
    }
  }
  return (
    <div className={styles.row}>
      <Name name={name} />
      <Leaf value={value} />
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === "string") return <Text value={value} />;
  if (Array.isArray(value)) return <span className="tok-punctuation">[]</span>;
  if (typeof value === "object" && value !== null) return <span className="tok-punctuation">{"{}"}</span>;
  return <span className="tok-keyword">{String(value)}</span>;
}

function Text({ value }: { value: string }) {
  const [whole, setWhole] = useState(false);
  const shown = whole ? value.slice(0, 100_000) : value.slice(0, maxString);
  const left = value.length - shown.length;
  // Text of several lines is read as such; anything else as it would be written.
  const lines = shown.includes("\n");
  return (
    <>
      <span className={lines ? `tok-string ${styles.lines}` : "tok-string"}>
        {lines ? visible(shown) : `"${visible(shown)}${left ? "" : '"'}`}
      </span>
      {left > 0 && !whole && (
        <button type="button" className={styles.more} onClick={() => setWhole(true)}>
          … {spaced(left)} more characters
        </button>
      )}
    </>
  );
}

interface BranchProps extends ValueProps {
  value: object;
  entries: [string | undefined, unknown][];
}

function Branch({ value, entries, depth, name, openKey }: BranchProps) {
  const [open, setOpen] = useToggle(openKey, depth < openDepth && entries.length <= firstEntries);
  const [limit, setLimit] = useState(firstEntries);
  const array = Array.isArray(value);
  const says = array ? countOf(entries.length, "entry", "entries") : countOf(entries.length, "field");
  if (depth >= maxDepth) {
    return (
      <div className={styles.row}>
        <Name name={name} />
        <span className={styles.count}>{says}</span>
      </div>
    );
  }
  const left = entries.length - limit;
  return (
    <div>
      <button type="button" className={styles.branch} aria-expanded={open} onClick={() => setOpen(!open)}>
        <ChevronRight size={12} aria-hidden className={open ? styles.down : styles.right} />
        <Name name={name} />
        <span className="tok-punctuation">{array ? "[" : "{"}</span>
        {!open && <span className="tok-punctuation">…{array ? "]" : "}"}</span>}
        <span className={styles.count}>{says}</span>
      </button>
      {open && (
        <div className={styles.inner}>
          {entries.slice(0, limit).map(([key, entry], n) => (
            <Value
              key={n}
              name={key ?? String(n)}
              value={entry}
              depth={depth + 1}
              openKey={openKey && `${openKey}/${n}`}
            />
          ))}
          {left > 0 && (
            <button type="button" className={styles.more} onClick={() => setLimit(limit + moreEntries)}>
              … {spaced(left)} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}
