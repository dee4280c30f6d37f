import fs from "node:fs";
import path from "node:path";
import type { Change, Item } from "../src/api/types";

const root = path.resolve(import.meta.dirname, "../..");
const fixtures = path.join(root, "crates/narrows/tests/fixtures");
const made = path.join(root, "target/tmp");

export interface Case {
  name: string;
  items: Item[];
  /** The changes of each event. */
  changes(): Change[][];
  events(): Record<string, unknown>[];
  /** The view `packets`. */
  packets(): Record<string, unknown>[];
}

/** Every recorded session: what a person sees at the end, and how it came about. */
export function cases(): Case[] {
  const found: Case[] = [];
  for (const format of fs.readdirSync(fixtures)) {
    for (const name of fs.readdirSync(path.join(fixtures, format))) {
      const folder = path.join(fixtures, format, name);
      const items = JSON.parse(fs.readFileSync(path.join(folder, "items.json"), "utf8"));
      found.push({
        name: `${format}/${name}`,
        items,
        changes: () => madeOf("changes", `${format}/${name}`),
        events: () => lines(path.join(folder, "events.jsonl")),
        packets: () => madeOf("packets", `${format}/${name}`),
      });
    }
  }
  return found;
}

/** What the core's own test has made of a case. */
function madeOf<T>(what: string, name: string): T[] {
  const file = path.join(made, what, `${name}.jsonl`);
  if (!fs.existsSync(file)) {
    throw new Error(`no ${file}: \`cargo test -p narrows --test golden\` makes it (\`make web-test\` does)`);
  }
  return lines(file);
}

function lines<T>(file: string): T[] {
  const lines = fs.readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}
