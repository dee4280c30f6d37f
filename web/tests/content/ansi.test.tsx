import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { ansiLine, plainText, type Style } from "../../src/content/ansi";
import { contrast, lookOf, readable } from "../../src/content/ansi-colours";
import { AnsiIndex } from "../../src/content/ansi-index";
import { Terminal } from "../../src/content/terminal";

afterEach(cleanup);

const e = "\x1b[";

function spans(line: string): [string, Style][] {
  return ansiLine(line).spans.map(({ text, style }) => [
    text,
    Object.fromEntries(Object.entries(style).filter(([, value]) => value !== undefined)),
  ]);
}

describe("colours of a line", () => {
  it.each<[string, string, [string, Style][]]>([
    ["none", "plain", [["plain", {}]]],
    [
      "sixteen",
      `${e}31mred${e}39m ${e}92mgreen${e}0m.`,
      [
        ["red", { fg: 1 }],
        [" ", {}],
        ["green", { fg: 10 }],
        [".", {}],
      ],
    ],
    [
      "grounds",
      `${e}44;97mx${e}49my`,
      [
        ["x", { bg: 4, fg: 15 }],
        ["y", { fg: 15 }],
      ],
    ],
    [
      "256",
      `${e}38;5;208mo${e}48;5;3mb${e}38;5;244mg`,
      [
        ["o", { fg: "#ff8700" }],
        ["b", { fg: "#ff8700", bg: 3 }],
        ["g", { fg: "#808080", bg: 3 }],
      ],
    ],
    [
      "true colour",
      `${e}38;2;1;2;255mx${e}38:2::255:0:0my`,
      [
        ["x", { fg: "#0102ff" }],
        ["y", { fg: "#ff0000" }],
      ],
    ],
    [
      "looks",
      `${e}1;3;4;9mx${e}22;23;24;29my`,
      [
        ["x", { bold: true, italic: true, underline: true, strike: true }],
        ["y", {}],
      ],
    ],
    [
      "dim and inverse",
      `${e}2;7mx${e}27my`,
      [
        ["x", { dim: true, inverse: true }],
        ["y", { dim: true }],
      ],
    ],
    [
      "an empty one ends all",
      `${e}31mx${e}my`,
      [
        ["x", { fg: 1 }],
        ["y", {}],
      ],
    ],
    ["unknown numbers", `${e}31;999mx`, [["x", { fg: 1 }]]],
    ["cut colours", `${e}38;5mx`, [["x", {}]]],
  ])("%s", (_name, line, expected) => {
    expect(spans(line)).toEqual(expected);
  });

  it("gives each style a look that can be read", () => {
    for (let n = 0; n < 256; n++) {
      const found = ansiLine(`${e}38;5;${n}mx`).spans[0]!;
      const look = lookOf(found.style);
      if (look.style?.color) expect(contrast(look.style.color, "#17191c")).toBeGreaterThanOrEqual(4.5);
      else expect(look.names).toEqual([`c${n}`]);
      const ground = lookOf(ansiLine(`${e}48;5;${n};38;5;${n}mx`).spans[0]!.style);
      expect(contrast(ground.style!.color!, ground.style!.backgroundColor!)).toBeGreaterThanOrEqual(4.4);
    }
    expect(readable("#000000", "#17191c")).not.toBe("#000000");
    expect(lookOf({ inverse: true }).style!.backgroundColor).toBe("#dfe1e5");
  });
});

describe("what is left of escapes", () => {
  it.each([
    ["10%\r50%\r100%", "100%"],
    ["abcdef\rxy", "xycdef"],
    ["abcdef\r\x1b[Kxy", "xy"],
    ["abc\x1b[2K\rxy", "xy"],
    ["abc\b\bX", "aXc"],
    ["\b\bx", "x"],
    ["a\x1b[3Cb", "a   b"],
    ["abc\x1b[1GX", "Xbc"],
    ["windows\r", "windows"],
    ["a\r\r", "a"],
    ["\x1b]0;title\x07text", "text"],
    ["\x1b]8;;https://e.com\x1b\\link\x1b]8;;\x1b\\", "link"],
    ["\x1b[?25l\x1b[2J\x1b[Htext\x1b[?25h", "text"],
    ["\x1b(Btext\x1b=", "text"],
    ["bell\x07 null\x00", "bell null"],
    ["cut \x1b[3", "cut "],
    ["cut \x1b", "cut "],
    ["\x9b31mred", "red"],
    ["tab\tstays", "tab\tstays"],
    ["😀\rx", "x"],
  ])("%j", (text, shown) => {
    expect(plainText(text)).toBe(shown);
  });

  it("keeps lines apart", () => {
    expect(plainText("a\r\nb\rc\n\x1b[31md")).toBe("a\nc\nd");
  });
});

describe("the index of lines", () => {
  it("knows the style that each line begins with", () => {
    const index = new AnsiIndex();
    index.read(`a${e}31mb\nc${e}0md\ne`);
    expect(index.length).toBe(3);
    expect([0, 1, 2].map((n) => index.line(n))).toEqual([
      { text: `a${e}31mb`, style: {} },
      { text: `c${e}0md`, style: { fg: 1 } },
      { text: "e", style: {} },
    ]);
  });

  it("is the same whether the text came at once or bit by bit", () => {
    const text = `one${e}31m\ntwo\n${e}1mthree\n\nfour${e}0m\nfive`;
    const whole = new AnsiIndex();
    whole.read(text);
    const grown = new AnsiIndex();
    for (let end = 0; end <= text.length; end++) grown.read(text.slice(0, end));
    expect(grown.length).toBe(whole.length);
    for (let n = 0; n < whole.length; n++) expect(grown.line(n)).toEqual(whole.line(n));
    grown.read("other\n");
    expect(grown.length).toBe(1);
    expect(grown.line(0).text).toBe("other");
  });
});

describe("a terminal", () => {
  const lines = Array.from({ length: 100 }, (_, n) => `line ${n}`);
  const shown = () => document.querySelector("pre")!.textContent!;

  it("shows colours as classes", () => {
    const { container } = render(<Terminal text={`${e}1;31mred${e}0m`} />);
    const span = container.querySelector("pre span span")!;
    expect(span.textContent).toBe("red");
    expect(span.className).toMatch(/bold.*c1/);
  });

  it("folds long output and opens it", () => {
    render(<Terminal text={lines.join("\n")} />);
    expect(shown()).toContain("line 0\n");
    expect(shown()).toContain("line 99\n");
    expect(shown()).not.toContain("line 50\n");
    fireEvent.click(screen.getByRole("button", { name: /Show all \(100 lines\)/ }));
    expect(shown()).toContain("line 50\n");
    fireEvent.click(screen.getByRole("button", { name: "Show less" }));
    expect(shown()).not.toContain("line 50\n");
  });

  it("shows the last lines while it runs", () => {
    const { rerender } = render(<Terminal text={lines.slice(0, 50).join("\n")} tail />);
    expect(shown()).not.toContain("line 37\n");
    expect(shown()).toContain("line 38\n");
    rerender(<Terminal text={lines.join("\n")} tail />);
    expect(shown()).not.toContain("line 38\n");
    expect(shown()).toContain("line 99\n");
  });

  it("shows the same whether it was followed or not", () => {
    const text = `${lines.join("\n")}\n${e}32mdone${e}0m\n`;
    const { container, rerender } = render(<Terminal text="" tail />);
    for (let end = 0; end < text.length; end += 40) rerender(<Terminal text={text.slice(0, end)} tail />);
    rerender(<Terminal text={text} />);
    const followed = container.innerHTML;
    cleanup();
    expect(render(<Terminal text={text} />).container.innerHTML).toBe(followed);
  });

  it("says when there is nothing", () => {
    render(<Terminal text="" />);
    expect(shown()).toBe("No output");
  });

  it("cuts a very long line until it is asked for", () => {
    render(<Terminal text={"x".repeat(5000)} />);
    expect(shown()).toContain("3\u202f000 more characters");
    fireEvent.click(screen.getByRole("button", { name: "Show whole lines" }));
    expect(shown()).toContain("x".repeat(5000));
  });
});
