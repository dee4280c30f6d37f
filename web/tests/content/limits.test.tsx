import { cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { plainText } from "../../src/content/ansi";
import { lexBlocks } from "../../src/content/lexer";
import { Markdown } from "../../src/content/markdown";
import { Terminal } from "../../src/content/terminal";

afterEach(cleanup);

const fill = (text: string, length = 200_000) => text.repeat(Math.ceil(length / text.length));

// Each of these took marked from seconds to minutes, or ended its stack.
const inputs: Record<string, string> = {
  brackets: "[".repeat(10_000),
  "links that do not end": "[a](".repeat(10_000),
  pictures: "![".repeat(10_000),
  exclamations: "!".repeat(50_000),
  stars: "*".repeat(10_000),
  "open marks": "*a **b ".repeat(10_000),
  "words with bars": "a_".repeat(50_000),
  "marks in words": "a**b".repeat(30_000),
  "quotes in quotes": ">".repeat(10_000),
  "quotes in quotes with spaces": "> ".repeat(10_000),
  "numbers in numbers": "1. ".repeat(10_000),
  ticks: Array.from({ length: 600 }, (_, n) => "`".repeat(n)).join(" "),
  tags: "<a ".repeat(20_000),
  comments: "<!--".repeat(20_000),
  "lists in lists": Array.from({ length: 400 }, (_, n) => `${"  ".repeat(n)}- a`).join("\n"),
  tasks: fill("- [ ] item\n"),
  "quotes that go on": fill("> a\nb\n"),
  "lists in quotes that go on": fill("> - a\nb\n"),
  "quotes in quotes that go on": fill("> - a\n> > b\nc\n"),
  "a wide table": `${"|a".repeat(500)}|\n${"|-".repeat(500)}|\n${"|x\n".repeat(3000)}`,
  definitions: `${Array.from({ length: 5000 }, (_, n) => `[a${n}]: b`).join("\n")}\n\n${"[a1] x\n\n".repeat(200)}`,
  paragraphs: fill("a\n\n"),
  rules: fill("---\n"),
  items: fill("- a\n"),
};

describe("markdown that was made to take long", () => {
  it.each(Object.keys(inputs))(
    "%s",
    (name) => {
      const text = inputs[name]!;
      const { container } = render(<Markdown text={text} streaming={false} />);
      expect(container.firstElementChild!.children.length).toBeGreaterThan(0);
      cleanup();
      const { rerender } = render(<Markdown text={text.slice(0, -3)} streaming />);
      rerender(<Markdown text={text} streaming />);
    },
    60_000,
  );

  it("shows a megabyte as it is", () => {
    const text = fill("Some **words** of a line.\n", 1_000_000);
    const { container } = render(<Markdown text={text} streaming={false} />);
    expect(container.querySelector("strong")).toBeNull();
    const shown = [...container.firstElementChild!.children].map((piece) => piece.textContent).join("\n");
    expect(shown).toBe(text.trimEnd());
  }, 30_000);

  it("does not cut a character in two", () => {
    const text = `x${"😀".repeat(200_000)}`;
    const { container } = render(<Markdown text={text} streaming={false} />);
    expect([...container.firstElementChild!.children].map((piece) => piece.textContent).join("")).toBe(text);
  }, 30_000);

  it("keeps what is deep as text", () => {
    const { container } = render(<Markdown text={`${"> ".repeat(100)}end`} streaming={false} />);
    expect(container.querySelectorAll("blockquote").length).toBeLessThan(40);
    expect(container.textContent).toContain("end");
  });

  it("still reads what people write", () => {
    const text = `${"A paragraph with `some_code_name`, **bold** and a [link](https://e.com).\n\n".repeat(1000)}`;
    const { tokens } = lexBlocks(text)!;
    expect(tokens.filter((token) => token.type === "paragraph")).toHaveLength(1000);
    expect(JSON.stringify(tokens.at(-2))).toContain('"strong"');
  });
});

describe("output that was made to take long", () => {
  const esc = "\x1b[";
  it.each([
    ["five megabytes", `${esc}32mok${esc}0m some words of a line\n`.repeat(160_000)],
    ["one long line", "x".repeat(2_000_000)],
    ["one line written over and over", "progress 10%\r".repeat(200_000)],
    ["steps to the right", `a${esc}1000C`.repeat(20_000)],
    ["lines erased backwards", `a${esc}1K`.repeat(50_000)],
    ["escapes only", `${esc}31m`.repeat(300_000)],
    ["strings that do not end", "\x1b]8;;".repeat(100_000)],
    [
      "thousands of colours",
      Array.from({ length: 20_000 }, (_, n) => `${esc}38;2;${n % 256};${n % 199};9mx`).join(""),
    ],
  ])(
    "%s",
    (_name, text) => {
      const { container } = render(<Terminal text={text} />);
      expect(container.querySelector("pre")).not.toBeNull();
      expect(plainText(text)).not.toContain("\x1b");
    },
    60_000,
  );
});
