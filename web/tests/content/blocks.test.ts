import type { Token } from "marked";
import { describe, expect, it } from "vitest";
import { BlockReader } from "../../src/content/blocks";
import { lexBlocks } from "../../src/content/lexer";
import { mend } from "../../src/content/mend";
import { sample } from "./sample";

/** What the blocks of a text are, without what a reader of the whole would know more: references. */
function outline(tokens: readonly Token[]): string[] {
  return tokens
    .filter((token) => token.type !== "space")
    .map((token) => `${token.type}:${token.raw.trimEnd()}`);
}

function finished(reader: BlockReader): readonly Token[] {
  return (reader as unknown as { finished: Token[] }).finished;
}

const texts: Record<string, string> = {
  sample,
  lists: "1. a\n\n2. b\n\n   c\n\n2\n\n- x\n\n\n- y\n  z\n\n para\n\n    code\n\n* a\n* b\n+ c\n",
  setext: "a\nb\n===\nc\n---\nd\n-\n- e\n",
  tables: "a | b\n- | -\n1 | 2\nno | pipe\n\n| x |\n|--|\n| y |\n> q\n",
  html: "<div>\na\n\nb\n<!-- c\n\nd -->\ne\n<br>\nf\n\n<pre>\n\nx</pre>\ny\n",
  fences: "~~~\na\n\n```\nb\n~~~\nc\n````md\n```\nx\n```\n````\n```",
  quotes: "> a\nb\n> - c\nd\n\n> e\n> > f\ng\n\n> ```\n> x\ny\n",
  definitions: "a\n[x]: y\n\n[z]: http://z\n[z] and [x]\n",
  code: "a\n    b\n\n    c\n\n\n    d\ne\n",
};

describe("a text that grows", () => {
  for (const [name, text] of Object.entries(texts)) {
    it(`keeps only blocks that are the blocks of the whole: ${name}`, () => {
      const whole = outline(lexBlocks(text)!.tokens);
      for (const step of [1, 3, 7]) {
        const reader = new BlockReader();
        for (let end = 0; end <= text.length; end += step) {
          reader.read(text.slice(0, end));
          const kept = outline(finished(reader));
          expect(kept).toEqual(whole.slice(0, kept.length));
        }
      }
    });
  }

  it("reads each finished block only once", () => {
    const reader = new BlockReader();
    let text = "";
    for (let n = 0; n < 50; n++) {
      text += `paragraph ${n}\n\n`;
      reader.read(text);
      expect(finished(reader).length).toBeGreaterThanOrEqual(Math.max(0, 2 * n - 1));
    }
    const { tokens } = reader.read(`${text}more`);
    expect(finished(reader)[0]).toBe(tokens![0]);
  });

  it("begins again when the text is another one", () => {
    const reader = new BlockReader();
    reader.read("one\n\ntwo\n\nthree");
    expect(outline(reader.read("other\n\ntext").tokens!)).toEqual(["paragraph:other", "paragraph:text"]);
  });

  it("goes on as plain text once it was too much", () => {
    const reader = new BlockReader();
    const long = "x\n".repeat(200_000);
    expect(reader.read(long).tokens).toBeNull();
    expect(reader.read(`${long}y`).tokens).toBeNull();
    expect(reader.read("y").tokens).not.toBeNull();
  });
});

describe("the end of a text that grows", () => {
  it.each([
    ["a **b", "a **b**"],
    ["a `b", "a `b`"],
    ["see [the do", "see the do"],
    ["see [the docs](https://exa", "see the docs"],
    ["- a\n- *b", "- a\n- *b*"],
    ["| a | b", "| a | b |\n| --- | --- |"],
    ["| a | b |\n", "| a | b |\n| --- | --- |"],
    ["| a | b |\n|:-", "| a | b |\n| :--- | --- |"],
    ["a | b\n-", "a | b\n| --- | --- |"],
    ["range 20~25 of", "range 20~25 of"],
  ])("%j is closed", (source, closed) => {
    expect(mend(source, "paragraph")).toBe(closed);
  });

  it.each(["code", "html", "hr"])("leaves %s alone", (type) => {
    expect(mend("**a", type)).toBe("**a");
  });

  it("looks only at the end of a long block", () => {
    const long = "word ".repeat(5000);
    expect(mend(`${long}**a`, "paragraph").length).toBeLessThan(long.length + 10);
    expect(mend(`${"line\n".repeat(5000)}**a`, "paragraph").endsWith("**a**")).toBe(true);
  });
});
