import { act, cleanup, render, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { Code } from "../../src/content/code";
import { Pause, ready, tokenise } from "../../src/content/engine";
import { type TokenLine, useTokens } from "../../src/content/highlight";
import { languageOf } from "../../src/content/languages";

afterEach(cleanup);

async function coloured(text: string, lang: string): Promise<[string, string][]> {
  const { container } = render(<Code text={text} lang={lang} />);
  await waitFor(() => expect(container.querySelector("[class^=tok-]")).not.toBeNull(), { timeout: 30_000 });
  const found = [...container.querySelectorAll("[class^=tok-]")];
  return found.map((one) => [one.className.slice(4), one.textContent!.trim()]);
}

describe("colours", () => {
  it.each<[string, string, [string, string][]]>([
    [
      "ts",
      'const a: number = f("x"); // why',
      [
        ["keyword", "const"],
        ["constant", "number"],
        ["function", "f"],
        ["string", '"x"'],
        ["comment", "// why"],
      ],
    ],
    [
      "rust",
      "fn main() { let x = 1; }",
      [
        ["keyword", "fn"],
        ["function", "main"],
        ["constant", "1"],
      ],
    ],
    [
      "python",
      "def f(a):\n    return 'x' # c",
      [
        ["keyword", "def"],
        ["function", "f"],
        ["parameter", "a"],
        ["string", "'x'"],
        ["comment", "# c"],
      ],
    ],
    [
      "json",
      '{"a": true}',
      [
        ["constant", '"a"'],
        ["constant", "true"],
      ],
    ],
    [
      "sh",
      'echo "$x" # c',
      [
        ["function", "echo"],
        ["comment", "# c"],
      ],
    ],
    [
      "diff",
      "-a\n+b",
      [
        ["deleted", "-a"],
        ["inserted", "+b"],
      ],
    ],
  ])(
    "of %s",
    async (lang, text, expected) => {
      expect(await coloured(text, lang)).toEqual(expect.arrayContaining(expected));
    },
    60_000,
  );

  it("leave the text as it is", async () => {
    const text = "let a = `x`;\r\n\tif (a) {\n\n}\n";
    const { container } = render(<Code text={text} lang="js" />);
    const before = container.querySelector("pre")!.textContent;
    await waitFor(() => expect(container.querySelector("[class^=tok-]")).not.toBeNull(), { timeout: 30_000 });
    expect(container.querySelector("pre")!.textContent).toBe(before);
    expect(before).toBe("let a = `x`;\n\tif (a) {\n\n}\n");
  }, 60_000);

  function Show({ text, lang, seen }: { text: string; lang: string; seen: (TokenLine[] | null)[] }) {
    seen.push(useTokens(text, lang));
    return null;
  }

  it("are there at once for a text that was shown before", async () => {
    const seen: (TokenLine[] | null)[] = [];
    const text = "let once = 1;";
    render(<Show text={text} lang="ts" seen={seen} />);
    expect(seen[0]).toBeNull();
    await waitFor(() => expect(seen.at(-1)).not.toBeNull(), { timeout: 30_000 });
    cleanup();
    const again: (TokenLine[] | null)[] = [];
    render(<Show text={text} lang="ts" seen={again} />);
    expect(again[0]).toEqual(seen.at(-1));
  }, 60_000);

  it("of a text that grows are those of the whole, and never go away", async () => {
    const text = "/* a\nb\nc */ const x = 1;\nlet y = `a\nb` + 2;\nreturn x;";
    const seen: (TokenLine[] | null)[] = [];
    const { rerender } = render(<Show text={text.slice(0, 3)} lang="ts" seen={seen} />);
    for (let end = 4; end <= text.length; end += 3) {
      rerender(<Show text={text.slice(0, end)} lang="ts" seen={seen} />);
      await act(() => new Promise((resolve) => setTimeout(resolve, 5)));
    }
    rerender(<Show text={text} lang="ts" seen={seen} />);
    const name = await ready("typescript");
    const whole = tokenise(text, name).lines;
    await waitFor(() => expect(seen.at(-1)).toEqual(whole), { timeout: 30_000 });
    const first = seen.findIndex((lines) => lines !== null);
    expect(seen.slice(first).every((lines) => lines !== null)).toBe(true);
  }, 60_000);

  it("are left out for long texts and unknown languages", () => {
    const seen: (TokenLine[] | null)[] = [];
    render(<Show text={"x".repeat(300_001)} lang="ts" seen={seen} />);
    render(<Show text="x" lang="nosuch" seen={seen} />);
    expect(seen).toEqual([null, null]);
  });

  it("pause when the time is over, and go on", async () => {
    const name = await ready("lua");
    let pauses = 0;
    for (;;) {
      try {
        const { lines } = tokenise("local x = function() return 'a' end", name, undefined, 0);
        expect(lines[0]![0]).toEqual({ text: "local ", kind: "keyword" });
        break;
      } catch (error) {
        expect(error).toBeInstanceOf(Pause);
        pauses++;
      }
    }
    expect(pauses).toBeGreaterThan(1);
  }, 60_000);
});

describe("languages", () => {
  it.each([
    ["ts", undefined, "typescript"],
    ["TSX", undefined, "tsx"],
    ["rust,ignore", undefined, "rust"],
    ["js {1,3}", undefined, "javascript"],
    ["12:40:src/app.py", undefined, "python"],
    [undefined, "src/a/b.tsx", "tsx"],
    [undefined, "C:\\x\\y.CS", "csharp"],
    [undefined, "Dockerfile", "docker"],
    [undefined, "deploy/Dockerfile.dev", "docker"],
    [undefined, "Makefile", "make"],
    [undefined, ".env.local", "ini"],
    [undefined, "tsconfig.json", "jsonc"],
    [undefined, "Cargo.lock", "toml"],
    ["nosuch", "a.go", "go"],
    ["", undefined, null],
    [undefined, "README", null],
    ["constructor", "a.toString", null],
  ])("%s %s", (lang, path, expected) => {
    expect(languageOf(lang, path)).toBe(expected);
  });

  it.each([
    ...[
      "bash",
      "c",
      "cpp",
      "csharp",
      "css",
      "docker",
      "go",
      "html",
      "java",
      "jsonc",
      "jsx",
      "kotlin",
      "make",
    ],
    ...["markdown", "php", "ruby", "scss", "sql", "svelte", "swift", "toml", "vue", "xml", "yaml"],
  ])(
    "%s is there",
    async (language) => {
      expect(await ready(language)).toBeTypeOf("string");
    },
    30_000,
  );
});
