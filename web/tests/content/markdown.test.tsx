import { cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { Markdown } from "../../src/content/markdown";
import { sample } from "./sample";

afterEach(cleanup);

function show(text: string, streaming = false): HTMLElement {
  return render(<Markdown text={text} streaming={streaming} />).container.firstElementChild as HTMLElement;
}

/** The elements with their text, without names of classes and attributes. */
function shape(element: Element): string {
  const parts = [...element.childNodes].map((node) =>
    node.nodeType === 3 ? node.textContent : shape(node as Element),
  );
  const name = element.tagName.toLowerCase();
  return `<${name}>${parts.join("")}</${name}>`;
}

function inner(text: string): string {
  return [...show(text).childNodes]
    .map((node) => (node.nodeType === 3 ? node.textContent : shape(node as Element)))
    .join("");
}

describe("markdown", () => {
  it.each([
    ["plain", "one\ntwo", "<p>one\ntwo</p>"],
    ["marks", "**b** *i* ~~s~~ `c`", "<p><strong>b</strong> <em>i</em> <del>s</del> <code>c</code></p>"],
    ["nested marks", "***x** y*", "<p><em><strong>x</strong> y</em></p>"],
    [
      "headings stay below those of the page",
      "# a\n\n## b\n\n#### c\n\n###### d",
      "<h3>a</h3><h4>b</h4><h6>c</h6><h6>d</h6>",
    ],
    ["hard breaks", "a  \nb\\\nc", "<p>a<br></br>b<br></br>c</p>"],
    ["escapes", "\\*a\\*", "<p>*a*</p>"],
    ["rule", "a\n\n---\n\nb", "<p>a</p><hr></hr><p>b</p>"],
    ["list", "- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"],
    ["loose list", "- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"],
    ["numbered list", "1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"],
    ["quote", "> a\n> b", "<blockquote><p>a\nb</p></blockquote>"],
    ["entities", "&lt;a&gt; &amp; &copy; &#65;&#x42; &nosuch;", "<p><a> & © AB &nosuch;</p>"],
    ["entities in code are literal", "`&lt;`", "<p><code>&lt;</code></p>"],
    ["alert", "> [!NOTE]\n> a **b**", "<div><p>Note</p><p>a <strong>b</strong></p></div>"],
    ["alert without text", "> [!TIP]", "<div><p>Tip</p></div>"],
    ["no alert", "> [!FOO]\n> a", "<blockquote><p>[!FOO]\na</p></blockquote>"],
    ["footnotes are text", "a[^1]\n\n[^1]: b", "<p>a[^1]</p><p>[^1]: b</p>"],
    ["math is text", "$a_b$ and $$c$$", "<p>$a_b$ and $$c$$</p>"],
  ])("%s", (_name, text, expected) => {
    expect(inner(text)).toBe(expected);
  });

  it("shows code blocks with their language, in any fence", () => {
    const page = show("```ts\nlet a = 1;\n```\n\n~~~mermaid\ngraph TD\n~~~\n\n    indented &amp;");
    const figures = [...page.querySelectorAll("figure")];
    expect(figures.map((figure) => figure.getAttribute("aria-label"))).toEqual([
      "Code: ts",
      "Code: mermaid",
      "Code",
    ]);
    expect(figures.map((figure) => figure.querySelector("pre")!.textContent)).toEqual([
      "let a = 1;\n",
      "graph TD\n",
      "indented &amp;\n",
    ]);
  });

  it("shows tables with their alignment, in a box of their own", () => {
    const page = show("| a | b | c |\n|:--|--:|:-:|\n| 1 | `2` | **3** |\n| x\\|y |");
    const box = page.querySelector("section")!;
    expect(box.getAttribute("aria-label")).toBe("Table");
    expect([...box.querySelectorAll("th")].map((cell) => cell.textContent)).toEqual(["a", "b", "c"]);
    expect([...box.querySelectorAll("td")].map((cell) => cell.textContent)).toEqual([
      "1",
      "2",
      "3",
      "x|y",
      "",
      "",
    ]);
    expect(
      [...box.querySelectorAll("th")].map((cell) => /left|right|center/.exec(cell.className)?.[0]),
    ).toEqual(["left", "right", "center"]);
  });

  it("shows tasks as boxes with labels that nobody can tick", () => {
    const page = show("- [ ] open **one**\n- [x] done\n\n  more");
    const boxes = [...page.querySelectorAll<HTMLInputElement>("input[type=checkbox]")];
    expect(boxes.map((box) => [box.disabled, box.checked, box.getAttribute("aria-label")])).toEqual([
      [true, false, "open **one**"],
      [true, true, "done"],
    ]);
    expect(page.textContent).not.toContain("[ ]");
    expect(page.textContent).not.toContain("[x]");
  });

  it("shows html as text", () => {
    const page = show("a <b>x</b>\n\n<div>\ny\n</div>");
    expect([...page.querySelectorAll("p")].map((one) => one.textContent)).toEqual([
      "a <b>x</b>",
      "<div>\ny\n</div>",
    ]);
    expect(page.querySelector("b, div")).toBeNull();
  });

  it("numbers a list as it was numbered", () => {
    expect(show("7. a\n8. b").querySelector("ol")!.getAttribute("start")).toBe("7");
  });

  it("resolves references, wherever they are defined", () => {
    const link = show("[a][x] and [x]\n\n[x]: https://example.com/p").querySelectorAll("a");
    expect([...link].map((one) => one.getAttribute("href"))).toEqual([
      "https://example.com/p",
      "https://example.com/p",
    ]);
  });

  it("decodes addresses once", () => {
    const page = show("[a](https://e.com/?x=1&amp;y=2) https://e.com/?x=1&amp;y=2 <https://e.com/?a&lt;b>");
    expect([...page.querySelectorAll("a")].map((one) => one.getAttribute("href"))).toEqual([
      "https://e.com/?x=1&y=2",
      "https://e.com/?x=1&amp;y=2",
      "https://e.com/?a&lt;b",
    ]);
  });

  it("makes a picture a link that says so", () => {
    const page = show("![a *b*](https://img.example/x.png) ![](https://img.example/y.png) ![z](x.png)");
    expect(page.querySelector("img")).toBeNull();
    expect(page.textContent).toBe("image: a b\u00a0img.example image\u00a0img.example image: z");
  });

  it("reads texts of other systems", () => {
    expect(inner("a\r\n\r\n- b\r\n- c")).toBe("<p>a</p><ul><li>b</li><li>c</li></ul>");
  });
});

describe("markdown while it is written", () => {
  const steps = [1, 5, 23];
  it.each(steps)(
    "shows any beginning, and in the end the same as the whole (steps of %i)",
    (step) => {
      const whole = show(sample).innerHTML;
      cleanup();
      const { container, rerender } = render(<Markdown text="" streaming />);
      for (let end = 0; end < sample.length; end += step) {
        rerender(<Markdown text={sample.slice(0, end)} streaming />);
      }
      rerender(<Markdown text={sample} streaming />);
      rerender(<Markdown text={sample} streaming={false} />);
      expect((container.firstElementChild as HTMLElement).innerHTML).toBe(whole);
    },
    60_000,
  );

  it("does not touch what is finished", () => {
    const { container, rerender } = render(<Markdown text={"one\n\ntwo\n\nthr"} streaming />);
    const before = [...container.querySelectorAll("p")];
    rerender(<Markdown text={"one\n\ntwo\n\nthree\n\nfour"} streaming />);
    const after = [...container.querySelectorAll("p")];
    expect(after.slice(0, 3)).toEqual(before);
    expect(after.map((one) => one.textContent)).toEqual(["one", "two", "three", "four"]);
  });

  it.each([
    ["a **bo", "strong", "bo"],
    ["a `co", "code", "co"],
    ["| a | b", "th", "a"],
    ["| a | b |\n|-", "th", "a"],
    ["| a | b |\n|---|---|\n| 1", "td", "1"],
    ["```ts\nlet x", "pre", "let x\n"],
    ["- one\n- tw", "li:last-child", "tw"],
  ])("%j looks like what it will be", (text, selector, shown) => {
    expect(show(text, true).querySelector(selector)!.textContent).toBe(shown);
  });

  it("shows no half link and no placeholder", () => {
    expect(show("see [the docs](https://exam", true).textContent).toBe("see the docs");
    cleanup();
    expect(show("see ![pic](https://exam", true).textContent).toBe("see image: pic");
  });
});
