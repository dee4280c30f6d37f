import { expect, test } from "vitest";
import { searchResults } from "../../src/items/search-results";
import { webResults } from "../../src/items/web-results";

const flat = (text: string, tool = "grep", path?: string) =>
  searchResults(text, tool, path)?.groups.map((group) => [
    group.path,
    ...group.hits.map((hit) => `${hit.line ?? ""}${hit.beside ? "-" : ":"}${hit.text}`),
  ]);

test("hits as ripgrep writes them, with lines beside them", () => {
  expect(flat("src/a.ts:3:const a = 1;\nsrc/a.ts-4-next\n--\nsrc/b.ts:12:b: c:d\n")).toEqual([
    ["src/a.ts", "3:const a = 1;", "4-next"],
    ["src/b.ts", "12:b: c:d"],
  ]);
  expect(flat("C:\\x\\a.ts:3:hit")).toEqual([["C:\\x\\a.ts", "3:hit"]]);
});

test("hits below the name of their file", () => {
  const text =
    "Found 2 matches\nnotes.md:\n  Line 3: teh fox\n\nsrc/many.txt:\n  Line 1: foo 1\n  Line 2: foo 2";
  expect(flat(text)).toEqual([
    ["notes.md", "3:teh fox"],
    ["src/many.txt", "1:foo 1", "2:foo 2"],
  ]);
  expect(searchResults(text, "grep")?.notes).toEqual(["Found 2 matches"]);
});

test("lines of the one file that was searched", () => {
  expect(flat("3:first\n4-beside", "grep", "a.txt")).toEqual([["a.txt", "3:first", "4-beside"]]);
});

test("paths, and counts", () => {
  expect(flat("files/a b.json\nfiles/data.json\nMakefile", "glob")).toEqual([
    ["files/a b.json"],
    ["files/data.json"],
    ["Makefile"],
  ]);
  expect(flat("src/a.ts:3\nsrc/b.ts:1")).toEqual([
    ["src/a.ts", ":3 matches"],
    ["src/b.ts", ":1 match"],
  ]);
  expect(searchResults("No files found", "glob")).toEqual({ groups: [], notes: ["No files found"], hits: 0 });
});

test("another form is left as it is", () => {
  expect(
    searchResults("total 8\ndrwxr-xr-x  2 me  me  4096 src\n-rw-r--r--  1 me  me  12 a.txt", "list"),
  ).toBe(undefined);
  expect(searchResults("The quick fox jumps; over it.\nAnd then: something, else!\nYes? No.", "grep")).toBe(
    undefined,
  );
});

test("pages as different agents list them", () => {
  expect(webResults("1. https://example.com/sse\n2. https://example.org/e")?.results).toEqual([
    { url: "https://example.com/sse", snippet: undefined },
    { url: "https://example.org/e", snippet: undefined },
  ]);
  expect(
    webResults(
      'Web search results for query: "x"\n\nLinks: [{"title":"T","url":"https://e.org"}]\n\nSo it is.',
    ),
  ).toEqual({
    results: [{ url: "https://e.org", title: "T", snippet: undefined }],
    rest: 'Web search results for query: "x"\n\n\n\nSo it is.',
  });
  expect(
    webResults("Title: A\nURL: https://a.org/x\nText: Words\nmore\n\nTitle: B\nURL: https://b.org")?.results,
  ).toEqual([
    { url: "https://a.org/x", title: "A", snippet: "Words\nmore" },
    { url: "https://b.org", title: "B", snippet: undefined },
  ]);
  expect(webResults("- [Name](https://a.org) - about it\n  and more")?.results).toEqual([
    { url: "https://a.org", title: "Name", snippet: "about it and more" },
  ]);
  expect(webResults('[{"url":"javascript:alert(1)","title":"x"},{"url":"https://a.org"}]')?.results).toEqual([
    { url: "https://a.org", title: undefined, snippet: undefined },
  ]);
  expect(webResults("Nothing was found.")).toBe(undefined);
});
