import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Diff } from "../../src/api/types";
import { compareLines } from "../../src/content/diff-compare";
import { countDiff, type DiffRow, readDiff } from "../../src/content/diff-lines";
import { parsePatch } from "../../src/content/diff-patch";
import { splitRows } from "../../src/content/diff-rows";
import { pieces, wordMarks } from "../../src/content/diff-words";

const diff = (parts: Partial<Diff>): Diff => ({
  path: "a.ts",
  oldText: null,
  newText: null,
  scope: "file",
  ...parts,
});

const signs = { same: " ", add: "+", del: "-" };

/** "12:13 +text", a gap as "@12 heading". */
function rows(of: readonly DiffRow[]): string[] {
  return of.map((row) =>
    row.kind === "gap"
      ? `@${row.count ?? "?"}${row.heading ? ` ${row.heading}` : ""}`
      : `${row.old ?? ""}:${row.new ?? ""} ${signs[row.kind]}${row.text}${row.bare ? " (bare)" : ""}`,
  );
}

const shown = (parts: Partial<Diff>) => rows(readDiff(diff(parts)).rows);
const remarks = (parts: Partial<Diff>) => readDiff(diff(parts)).remarks;
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `${from + n}`);

describe("two texts", () => {
  // Comparing ends after a while; how fast this machine is decides nothing here.
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("are compared line by line, with numbers", () => {
    expect(shown({ oldText: "a\nb\nc\n", newText: "a\nB\nc\nd\n" })).toEqual([
      "1:1  a",
      "2: -b",
      ":2 +B",
      "3:3  c",
      ":4 +d",
    ]);
  });

  it("fold what did not change, and can show it", () => {
    const before = numbers(1, 60);
    const after = [...before];
    after[29] = "x";
    const file = readDiff(diff({ oldText: `${before.join("\n")}\n`, newText: `${after.join("\n")}\n` }));
    expect(rows(file.rows)).toEqual([
      "@26",
      ...[27, 28, 29].map((n) => `${n}:${n}  ${n}`),
      "30: -30",
      ":30 +x",
      ...[31, 32, 33].map((n) => `${n}:${n}  ${n}`),
      "@27",
    ]);
    const gap = file.rows[0]!;
    expect(gap.kind === "gap" && rows(gap.open!())).toEqual(numbers(1, 26).map((n) => `${n}:${n}  ${n}`));
  });

  it("have no numbers when they are a part of a file", () => {
    expect(shown({ scope: "hunk", oldText: "a\nb", newText: "a\nc" })).toEqual([":  a", ": -b", ": +c"]);
  });

  it("of which one is not there are all added or all removed", () => {
    expect(shown({ newText: "a\nb\n" })).toEqual([":1 +a", ":2 +b"]);
    expect(shown({ oldText: "a\nb\n" })).toEqual(["1: -a", "2: -b"]);
    expect(shown({ oldText: "", newText: "a" })).toEqual([":1 +a (bare)"]);
  });

  it("that differ in their last newline say so", () => {
    expect(shown({ oldText: "a\nb\n", newText: "a\nb" })).toEqual(["1:1  a", "2: -b", ":2 +b (bare)"]);
    expect(shown({ oldText: "a\nb", newText: "a\nb\n" })).toEqual(["1:1  a", "2: -b (bare)", ":2 +b"]);
    expect(shown({ scope: "hunk", oldText: "a\nb", newText: "a\nc\n" })).toEqual([":  a", ": -b", ": +c"]);
  });

  it("that differ in their line endings say so, and show only the other changes", () => {
    const parts = { oldText: "a\r\nb\r\n", newText: "a\nc\n" };
    expect(shown(parts)).toEqual(["1:1  a", "2: -b", ":2 +c"]);
    expect(remarks(parts)).toEqual(["Line endings changed from CRLF to LF"]);
    expect(remarks({ oldText: "a\nb\n", newText: "a\r\nb\r\n" })).toEqual([
      "Line endings changed from LF to CRLF",
    ]);
    expect(shown({ oldText: "a\r\nb\r\n", newText: "a\r\nc\r\n" })).toEqual(["1:1  a", "2: -b", ":2 +c"]);
  });

  it("that are the same, not text or not known get words", () => {
    expect(remarks({ oldText: "a\n", newText: "a\n" })).toEqual(["No changes"]);
    expect(remarks({ oldText: "a\0", newText: "b" })).toEqual(["Binary file"]);
    expect(remarks({})).toEqual(["No text of this change"]);
  });

  it("that are too different are shown as removed and added, quickly", () => {
    const before = numbers(1, 30_000).map((n) => `old ${n}`);
    const after = numbers(1, 30_000).map((n) => `new ${n}`);
    const { runs, coarse } = compareLines(["same", ...before, "end"], ["same", ...after, "end"]);
    expect(coarse).toBe(true);
    expect(runs).toEqual([
      { kind: "same", old: 0, new: 0, count: 1 },
      { kind: "del", old: 1, new: 1, count: 30_000 },
      { kind: "add", old: 30_001, new: 1, count: 30_000 },
      { kind: "same", old: 30_001, new: 30_001, count: 1 },
    ]);
    const some = compareLines(before.slice(0, 6000), after.slice(0, 6000));
    expect(some.coarse).toBe(true);
  }, 30_000);

  it("are counted however long they are", () => {
    const before = numbers(0, 9999).map((n) => `line ${n}`);
    const after = before.map((line, n) => (n % 3 ? line : `new ${n}`));
    const { runs, coarse } = compareLines(before, after);
    const sum = (kind: string) => runs.reduce((sum, run) => sum + (run.kind === kind ? run.count : 0), 0);
    expect(coarse).toBe(false);
    expect([sum("add"), sum("del"), sum("same")]).toEqual([3334, 3334, 6666]);
    expect(countDiff(diff({ oldText: before.join("\n"), newText: after.join("\n") }))).toMatchObject({
      additions: 3334,
      deletions: 3334,
    });
  }, 30_000);

  it("make the new text of the old one", () => {
    let seed = 7;
    const random = (n: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return seed % n;
    };
    for (let n = 0; n < 200; n++) {
      const before = Array.from({ length: random(30) }, () => `${random(6)}`);
      const after = before.flatMap((line) => (random(5) === 0 ? [] : random(5) === 0 ? [line, "x"] : [line]));
      const made = compareLines(before, after).runs.flatMap((run) =>
        run.kind === "del"
          ? []
          : run.kind === "same"
            ? before.slice(run.old, run.old + run.count)
            : after.slice(run.new, run.new + run.count),
      );
      expect(made).toEqual(after);
    }
  });
});

const unified = `diff --git a/src/a.ts b/src/a.ts
index 1..2 100644
--- a/src/a.ts
+++ b/src/a.ts
@@ -10,3 +10,4 @@ function f() {
 a
-b
--- not a header
+B
+++ nor this
+c
@@ -40 +41 @@
-x
\\ No newline at end of file
+y
\\ No newline at end of file
`;

describe("patches", () => {
  it("in unified form", () => {
    expect(shown({ path: "src/a.ts", patch: unified })).toEqual([
      "@9 function f() {",
      "10:10  a",
      "11: -b",
      "12: --- not a header",
      ":11 +B",
      ":12 +++ nor this",
      ":13 +c",
      "@27",
      "40: -x (bare)",
      ":41 +y (bare)",
    ]);
  });

  it("without their file names", () => {
    expect(shown({ patch: "@@ -1,2 +1,2 @@\n a\n-b\n+c\n" })).toEqual(["1:1  a", "2: -b", ":2 +c"]);
  });

  it("with nothing but signs", () => {
    expect(shown({ patch: " a\n-b\n+c\n" })).toEqual([":  a", ": -b", ": +c"]);
  });

  it("that begin with Begin Patch", () => {
    const patch = `*** Begin Patch
*** Add File: new.ts
+one
+two
*** Update File: src/old.ts
*** Move to: src/moved.ts
@@ class A
 a
-b
+c

*** End of File
*** Delete File: gone.ts
*** End Patch`;
    const files = parsePatch(patch);
    expect(files.map((file) => [file.action, file.from, file.to])).toEqual([
      ["add", "new.ts", "new.ts"],
      ["move", "src/old.ts", "src/moved.ts"],
      ["delete", "gone.ts", "gone.ts"],
    ]);
    expect(shown({ path: "new.ts", patch })).toEqual([": +one", ": +two"]);
    const moved = readDiff(diff({ path: "/home/x/src/moved.ts", patch }));
    expect(rows(moved.rows)).toEqual(["@? class A", ":  a", ": -b", ": +c", ":  "]);
    expect(moved.movedFrom).toBe("src/old.ts");
  });

  it("of new, removed, moved and binary files", () => {
    expect(parsePatch("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n")[0]).toMatchObject({
      action: "add",
      to: "x",
    });
    expect(parsePatch("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")[0]).toMatchObject({ action: "delete" });
    const moved = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n";
    expect(remarks({ path: "y", patch: moved })).toEqual(["Moved, not changed"]);
    expect(remarks({ path: "x", patch: "diff --git a/x b/x\nBinary files a/x and b/x differ\n" })).toEqual([
      "Binary file",
    ]);
  });

  it("with CRLF", () => {
    const parts = { patch: "--- a/a.ts\r\n+++ b/a.ts\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n" };
    expect(shown(parts)).toEqual(["1:1  a", "2: -b", ":2 +c"]);
    expect(remarks(parts)).toEqual(["CRLF line endings"]);
  });

  it("that are none give way to the texts", () => {
    expect(shown({ patch: "nonsense", oldText: "a\n", newText: "b\n" })).toEqual(["1: -a", ":1 +b"]);
  });
});

describe("hunks", () => {
  it("are taken as they are", () => {
    const hunks = [
      {
        oldStart: 5,
        oldLines: 2,
        newStart: 5,
        newLines: 2,
        lines: [" a", "-b", "+c", "\\ No newline at end of file"],
      },
    ];
    expect(shown({ hunks, oldText: "other", newText: "texts" })).toEqual([
      "@4",
      "5:5  a",
      "6: -b",
      ":6 +c (bare)",
    ]);
  });
});

describe("counting", () => {
  it("takes what was told", () => {
    expect(countDiff(diff({ additions: 7, deletions: 2, newText: "a" }))).toEqual({
      additions: 7,
      deletions: 2,
    });
  });

  it.each<[string, Partial<Diff>, number, number]>([
    ["new", { newText: "a\nb\n" }, 2, 0],
    ["new without a newline", { newText: "a\nb" }, 2, 0],
    ["removed", { oldText: "a\n" }, 0, 1],
    ["empty", { newText: "" }, 0, 0],
    ["texts", { oldText: "a\nb\n", newText: "a\nc\nd\n" }, 2, 1],
    ["patch", { path: "src/a.ts", patch: unified }, 4, 3],
  ])("%s", (_name, parts, additions, deletions) => {
    expect(countDiff(diff(parts))).toEqual({ additions, deletions });
  });

  it("reads a diff once", () => {
    const one = diff({ oldText: "a", newText: "b" });
    expect(readDiff(one)).toBe(readDiff(one));
  });
});

describe("changes within lines", () => {
  it("mark the words that differ", () => {
    const { rows: all } = readDiff(diff({ oldText: "const a = 1;\n", newText: "const b = 1;\n" }));
    const marks = wordMarks(all);
    const texts = all.flatMap((row) =>
      row.kind === "gap" ? [] : (marks.get(row) ?? []).map(([from, to]) => row.text.slice(from, to)),
    );
    expect(texts).toEqual(["a", "b"]);
  });

  it("do not mark lines that have nothing in common", () => {
    const { rows: all } = readDiff(
      diff({ oldText: "return null;\n", newText: "throw new Error(message)\n" }),
    );
    expect(wordMarks(all).size).toBe(0);
  });

  it("cut colours where marks begin and end", () => {
    const tokens = [
      { text: "const ", kind: "keyword" },
      { text: "ab = 1", kind: "" },
    ];
    expect(pieces("const ab = 1", tokens, [[4, 8]])).toEqual([
      { text: "cons", kind: "keyword", marked: false },
      { text: "t ", kind: "keyword", marked: true },
      { text: "ab", kind: "", marked: true },
      { text: " = 1", kind: "", marked: false },
    ]);
  });

  it("never show the text of colours that belong to another line", () => {
    expect(pieces("abc", [{ text: "xyzw", kind: "keyword" }])).toEqual([
      { text: "abc", kind: "", marked: false },
    ]);
  });
});

it("side by side, changed lines stand beside each other", () => {
  const { rows: all } = readDiff(diff({ oldText: "a\nb\nc\n", newText: "a\nB\n" }));
  const found = splitRows(all).map((row) => (row.kind === "gap" ? "gap" : [row.left?.text, row.right?.text]));
  expect(found).toEqual([
    ["a", "a"],
    ["b", "B"],
    ["c", undefined],
  ]);
});
