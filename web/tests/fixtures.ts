import fs from "node:fs";
import path from "node:path";
import type { Change, Item } from "../src/api/types";

const root = path.resolve(import.meta.dirname, "../..");
const fixtures = path.join(root, "crates/narrows/tests/fixtures");
const made = path.join(root, "target/tmp/changes");

export interface Case {
  name: string;
  items: Item[];
  /** The changes of each event. */
  changes(): Change[][];
}

/** Every recorded session: what a person sees at the end, and how it came about. */
export function cases(): Case[] {
  const found: Case[] = [];
  for (const format of fs.readdirSync(fixtures)) {
    for (const name of fs.readdirSync(path.join(fixtures, format))) {
      const items = JSON.parse(fs.readFileSync(path.join(fixtures, format, name, "items.json"), "utf8"));
      found.push({ name: `${format}/${name}`, items, changes: () => changesOf(`${format}/${name}`) });
    }
  }
  return found;
}

function changesOf(name: string): Change[][] {
  const file = path.join(made, `${name}.jsonl`);
  if (!fs.existsSync(file)) {
    throw new Error(`no ${file}: \`cargo test -p narrows --test golden\` makes it (\`make web-test\` does)`);
  }
  const lines = fs.readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}
