import { cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { Code } from "../../src/content/code";
import { readAddress, SafeLink } from "../../src/content/link";
import { Markdown } from "../../src/content/markdown";
import { Terminal } from "../../src/content/terminal";
import { visible, visibleProse } from "../../src/content/visible";

afterEach(cleanup);

const attacks = [
  "<script>alert(1)</script>",
  "<ScRiPt src=//evil.example/x.js></sCrIpT>",
  "<img src=x onerror=alert(1)>",
  "<svg/onload=alert(1)><circle style='x'/></svg>",
  "<svg><script>alert(1)</script></svg>",
  "<iframe src='javascript:alert(1)'></iframe>",
  "<a href='javascript:alert(1)' onclick='alert(1)'>x</a>",
  "<div style='position:fixed;inset:0'>x</div>",
  "<style>*{display:none}</style>",
  "<base href='https://evil.example/'>",
  "<form action='https://evil.example/'><input name=a></form>",
  "<math><mi xlink:href='javascript:alert(1)'>x</mi></math>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](&#x6a;avascript:alert(1))",
  "[x](&#106;&#97;vascript&colon;alert(1))",
  "[x](java&Tab;script:alert(1))",
  "[x](java&NewLine;script:alert(1))",
  "[x](<java\tscript:alert(1)>)",
  "[x](\u0001javascript:alert(1))",
  "[x](<\u00a0javascript:alert(1)>)",
  "[x](vbscript:msgbox(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](data:text/html;base64,PHNjcmlwdD4=)",
  "[x](file:///etc/passwd)",
  "[x](blob:https://example.com/1)",
  // Put together, so that no address with a password stands in the sources.
  `[x](https://user:${"secret"}@evil.example/)`,
  "[x](https://google.com@evil.example/)",
  "[x](//evil.example/p)",
  "[x](\\\\evil.example\\p)",
  "[x](javascript&#58;alert(1) 'title')",
  "[x][r]\n\n[r]: javascript:alert(1)",
  "<javascript:alert(1)>",
  "<data:text/html,x>",
  "![x](javascript:alert(1))",
  "![x](https://track.example/p.gif)",
  "![x](data:image/svg+xml,<svg onload=alert(1)>)",
  "[![x](https://track.example/p.gif)](javascript:alert(1))",
  "`<img src=x onerror=alert(1)>`",
  "```html\n<img src=x onerror=alert(1)>\n```",
  "| <img src=x onerror=alert(1)> |\n|---|\n| [x](javascript:alert(1)) |",
  "> <script>alert(1)</script>\n\n- <img src=x onerror=alert(1)>",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  '[x](https://ok.example/" onclick="alert(1))',
  "# <img src=x onerror=alert(1)>",
];

function check(root: Element): void {
  const forbidden = "script,img,iframe,object,embed,style,link,base,form,meta,math,video,audio,template";
  expect(root.querySelector(forbidden)).toBeNull();
  // The only drawings are the icons of buttons.
  for (const svg of root.querySelectorAll("svg")) expect(svg.closest("button")).not.toBeNull();
  for (const element of root.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      expect(name).not.toMatch(/^on|^style$|^srcdoc$|^formaction$|^xlink/i);
      if (name === "href") expect(value).toMatch(/^(https?:\/\/|mailto:)[^@]*$/);
      if (name === "src") expect.fail(`a src: ${value}`);
    }
  }
  for (const link of root.querySelectorAll("a")) {
    expect(link.getAttribute("target")).toBe("_blank");
    expect(link.getAttribute("rel")).toBe("noopener noreferrer nofollow");
  }
}

describe("hostile markdown", () => {
  it.each(attacks)("%j makes nothing that could do anything", (attack) => {
    check(render(<Markdown text={attack} streaming={false} />).container);
    cleanup();
    const { container, rerender } = render(<Markdown text="" streaming />);
    for (let end = 0; end <= attack.length; end++) {
      rerender(<Markdown text={attack.slice(0, end)} streaming />);
      check(container);
    }
  });

  it("shows what was refused", () => {
    const page = render(<Markdown text="[click](javascript:alert(1))" streaming={false} />).container;
    expect(page.textContent).toBe("click (javascript:alert(1))");
  });
});

describe("links", () => {
  const shown = (href: string, label?: string) =>
    render(<SafeLink href={href}>{label}</SafeLink>).container.textContent;

  it.each([
    ["https://react.dev/learn", "docs", "docs\u00a0react.dev"],
    ["https://react.dev/learn", "https://react.dev/learn", "https://react.dev/learn"],
    ["https://react.dev/", "react.dev", "react.dev"],
    ["https://evil.example/", "https://google.com", "https://google.com\u00a0evil.example"],
    ["https://evil.example:8443/", "google.com", "google.com\u00a0evil.example:8443"],
    ["https://\u0430pple.com/", "apple.com", "apple.com\u00a0xn--pple-43d.com"],
    ["https://react.dev/learn", undefined, "https://react.dev/learn"],
    ["mailto:a@b.example", "write", "write\u00a0a@b.example"],
    ["mailto:a@b.example", "a@b.example", "a@b.example"],
    ["src/app.ts", "app", "app (src/app.ts)"],
    ["src/app.ts", "src/app.ts", "src/app.ts"],
    [
      `https://a:${"b"}@c.example/`,
      "x",
      `x (https://a:${"b"}@c.example/) (not a link: address with a user name)`,
    ],
    ["x\u202ey", "z", "z (x⟨U+202E⟩y)"],
  ])("%s labelled %s", (href, label, text) => {
    expect(shown(href, label)).toBe(text);
  });

  it("gives addresses as browsers read them", () => {
    expect(readAddress("HTTPS://Example.COM/a b")).toEqual({
      safe: true,
      href: "https://example.com/a%20b",
      where: "example.com",
    });
    expect(readAddress("\tjava\nscript:alert(1)").safe).toBe(false);
  });
});

describe("characters that are not seen", () => {
  it.each([
    ["a\u202eb\u202c", "a⟨U+202E⟩b⟨U+202C⟩"],
    ["a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"],
    ["a\u200bb", "a⟨U+200B⟩b"],
    ["a\ufeffb", "a⟨U+FEFF⟩b"],
    ["a\u{e0041}b", "a⟨U+E0041⟩b"],
    ["a\u00adb", "a⟨U+00AD⟩b"],
    ["a\u0000b\u001bc\u007f", "a␀b␛c␡"],
    ["tab\tand\nline", "tab\tand\nline"],
    ["a\u200db", "a⟨U+200D⟩b"],
    ["👩\u200d💻 ❤\ufe0f\u200d🔥", "👩\u200d💻 ❤\ufe0f\u200d🔥"],
    ["çà — “ok” 日本", "çà — “ok” 日本"],
  ])("%j", (text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  it("leaves the marks of scripts in prose", () => {
    expect(visibleProse("می\u200cخواهم \u200e\u202e")).toBe("می\u200cخواهم \u200e⟨U+202E⟩");
  });

  it("are seen in code, terminals and inline code", () => {
    expect(
      render(<Code text={"if (a\u202e) {"} lang="c" />).container.querySelector("pre")!.textContent,
    ).toContain("⟨U+202E⟩");
    expect(render(<Terminal text={"rm \u2066x"} />).container.querySelector("pre")!.textContent).toContain(
      "⟨U+2066⟩",
    );
    expect(render(<Markdown text={"`a\u200bb`"} />).container.querySelector("p")!.textContent).toBe(
      "a⟨U+200B⟩b",
    );
  });
});
