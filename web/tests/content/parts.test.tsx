import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Diff } from "../../src/api/types";
import { Code } from "../../src/content/code";
import { CopyButton } from "../../src/content/copy";
import { DiffView } from "../../src/content/diff";
import { setDiffStyle } from "../../src/content/diff-style";
import { Images, sizeOf } from "../../src/content/images";
import { Json } from "../../src/content/json";
import { LongText } from "../../src/content/long-text";
import { OpenState, type SessionAccess, SessionProvider } from "../../src/state/context";

const written: string[] = [];

beforeEach(() => {
  written.length = 0;
  Object.defineProperty(navigator, "clipboard", {
    configurable: true,
    value: { writeText: async (text: string) => void written.push(text) },
  });
});

afterEach(cleanup);

const lines = (n: number) => Array.from({ length: n }, (_, at) => `line ${at + 1}`).join("\n");

function access(open = new OpenState()): SessionAccess {
  return { open, blob: (hash: string) => `/blob/${hash}` } as unknown as SessionAccess;
}

describe("copying", () => {
  it("puts the text on the clipboard and says so", async () => {
    render(<CopyButton text={() => "words"} label="Copy it" />);
    fireEvent.click(screen.getByRole("button", { name: "Copy it" }));
    await waitFor(() => expect(screen.getByRole("status").textContent).toBe("Copied"));
    expect(written).toEqual(["words"]);
  });

  it("says when it could not", async () => {
    Object.defineProperty(navigator, "clipboard", {
      configurable: true,
      value: { writeText: () => Promise.reject(new Error("no")) },
    });
    render(<CopyButton text="x" />);
    fireEvent.click(screen.getByRole("button", { name: "Copy" }));
    await waitFor(() => expect(screen.getByRole("status").textContent).toBe("Could not copy"));
  });
});

describe("code", () => {
  const numbers = () =>
    [...document.querySelectorAll("[data-n]")].map((line) => Number(line.getAttribute("data-n")));

  it("numbers its lines from where they are", () => {
    render(<Code text={"a\nb\n"} numbers start={41} />);
    expect(numbers()).toEqual([41, 42]);
  });

  it("folds, and remembers in the session that it was opened", () => {
    const open = new OpenState();
    const page = () =>
      render(
        <SessionProvider value={access(open)}>
          <Code text={lines(1234)} numbers collapse openKey="a" />
        </SessionProvider>,
      );
    page();
    expect(numbers()).toEqual([
      ...Array.from({ length: 20 }, (_, n) => n + 1),
      ...Array.from({ length: 8 }, (_, n) => n + 1227),
    ]);
    fireEvent.click(screen.getByRole("button", { name: /Show all \(1\u202f234 lines\)/ }));
    expect(numbers()).toHaveLength(1234);
    cleanup();
    page();
    expect(numbers()).toHaveLength(1234);
  });

  it("shows very much in steps", () => {
    render(<Code text={lines(12_000)} numbers collapse />);
    fireEvent.click(screen.getByRole("button", { name: /Show 5\u202f000 more/ }));
    expect(numbers()).toHaveLength(5008);
  }, 30_000);

  it("does not fold forty lines, and without asking only very many", () => {
    render(<Code text={lines(40)} numbers collapse />);
    expect(numbers()).toHaveLength(40);
    cleanup();
    render(<Code text={lines(300)} numbers />);
    expect(numbers()).toHaveLength(300);
    cleanup();
    render(<Code text={lines(500)} numbers />);
    expect(numbers()).toHaveLength(220);
  });

  it("wraps on request and copies what it was given", async () => {
    render(<Code text={"a\r\nb"} path="x/y.zzz" />);
    const wrap = screen.getByRole("button", { name: "Wrap lines" });
    expect(wrap.getAttribute("aria-pressed")).toBe("false");
    fireEvent.click(wrap);
    expect(wrap.getAttribute("aria-pressed")).toBe("true");
    fireEvent.click(screen.getByRole("button", { name: "Copy code" }));
    await waitFor(() => expect(written).toEqual(["a\r\nb"]));
    expect(screen.getByRole("figure", { name: "Code: x/y.zzz" })).toBeTruthy();
  });
});

describe("a diff", () => {
  const one: Diff = {
    path: "src/a.zzz",
    oldText: "a\nb\n",
    newText: "a\nc\n",
    scope: "file",
    action: "update",
  };
  const fresh: Diff = { path: "new.zzz", oldText: null, newText: lines(300), scope: "file", action: "add" };

  it("shows signs, numbers and counts", () => {
    const { container } = render(<DiffView diffs={[one]} />);
    const shown = [...container.querySelectorAll("tr")].map((row) =>
      [...row.querySelectorAll("td")].map((cell) => cell.getAttribute("data-n") ?? cell.textContent),
    );
    expect(shown).toEqual([
      ["1", "1", " ", "a"],
      ["2", "", "−", "b"],
      ["", "2", "+", "c"],
    ]);
    expect(container.textContent).toContain("1 added, 1 removed");
    expect(screen.queryByRole("button", { name: "Side by side" })).toBeNull();
  });

  it("lists several files and folds long ones", () => {
    const { container } = render(<DiffView diffs={[one, fresh]} />);
    expect(container.textContent).toContain("2 files");
    expect(screen.getByRole("button", { name: "Go to new.zzz" })).toBeTruthy();
    expect(container.textContent).toContain("New file");
    expect(container.querySelectorAll("tr")).toHaveLength(3 + 200);
    fireEvent.click(screen.getByRole("button", { name: /Show all \(300 lines\)/ }));
    expect(container.querySelectorAll("tr")).toHaveLength(3 + 300);
  });

  it("closes and jumps to a closed file", () => {
    const { container } = render(<DiffView diffs={[one, fresh]} />);
    const head = container.querySelectorAll<HTMLButtonElement>("section button[aria-expanded=true]")[0]!;
    fireEvent.click(head);
    expect(head.getAttribute("aria-expanded")).toBe("false");
    Element.prototype.scrollIntoView = vi.fn();
    fireEvent.click(screen.getByRole("button", { name: "Go to src/a.zzz" }));
    expect(head.getAttribute("aria-expanded")).toBe("true");
    expect(Element.prototype.scrollIntoView).toHaveBeenCalled();
  });

  it("shows two columns where there is room, and remembers it", () => {
    const width = vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(900);
    const { container } = render(<DiffView diffs={[one]} />);
    fireEvent.click(screen.getByRole("button", { name: "Side by side" }));
    expect(localStorage.getItem("narrows.diff")).toBe("split");
    expect([...container.querySelectorAll("tr")].map((row) => row.textContent)).toEqual([" a a", "−b+c"]);
    setDiffStyle("unified");
    width.mockRestore();
  });

  it("opens what did not change", () => {
    const { container } = render(
      <DiffView diffs={[{ ...one, oldText: `${lines(50)}\nx\n`, newText: `${lines(50)}\ny\n` }]} />,
    );
    expect(container.querySelectorAll("tr")).toHaveLength(1 + 3 + 2);
    fireEvent.click(screen.getByRole("button", { name: "47 unchanged lines" }));
    expect(container.querySelectorAll("tr")).toHaveLength(52);
  });

  it("says what cannot be shown", () => {
    const { container } = render(<DiffView diffs={[{ ...one, oldText: "\0", newText: "\0\0" }]} />);
    expect(container.textContent).toContain("Binary file");
  });
});

describe("images", () => {
  const images = [
    { blob: "a", mimeType: "image/png", size: 1234 },
    { blob: "b", mimeType: "image/jpeg", size: 2_345_678 },
  ];
  const page = () =>
    render(
      <SessionProvider value={access()}>
        <Images images={images} />
      </SessionProvider>,
    );

  it("have words, and open large", () => {
    page();
    const small = screen.getByRole("img", { name: "Image 1 of 2, png, 1.2 kB" });
    expect(small.getAttribute("src")).toBe("/blob/a");
    fireEvent.click(small.closest("button")!);
    const dialog = document.querySelector("dialog")!;
    expect(dialog.open).toBe(true);
    const picture = screen.getAllByRole("button", { name: "Actual size" }).at(-1)!;
    fireEvent.keyDown(dialog, { key: "+" });
    expect(picture.getAttribute("aria-pressed")).toBe("true");
    fireEvent.keyDown(dialog, { key: "ArrowRight" });
    expect(dialog.getAttribute("aria-label")).toBe("Image 2 of 2, jpeg, 2.3 MB");
    fireEvent.click(screen.getByRole("button", { name: "Close" }));
    expect(document.querySelector("dialog")).toBeNull();
  });

  it("that cannot be shown are words", () => {
    const { container } = page();
    fireEvent.error(container.querySelectorAll("img")[1]!);
    expect(container.textContent).toContain("Image 2 of 2, jpeg, 2.3 MB: cannot be shown");
  });

  it("have sizes", () => {
    expect([12, 1000, 99_900, 12_345_678].map(sizeOf)).toEqual(["12 B", "1.0 kB", "100 kB", "12 MB"]);
  });
});

describe("json", () => {
  it("shows values and folds what is deep", () => {
    const { container } = render(<Json value={{ a: 1, b: ["x", null], c: { d: { e: true } } }} />);
    expect(container.textContent).toContain('"x"');
    expect(container.textContent).toContain("null");
    expect(container.textContent).not.toContain("true");
    fireEvent.click(screen.getByRole("button", { name: /^d/, expanded: false }));
    expect(container.textContent).toContain("true");
  });

  it("is limited in width and depth", () => {
    let deep: unknown = "bottom";
    for (let n = 0; n < 5000; n++) deep = [deep];
    const { container } = render(
      <Json value={{ many: Array.from({ length: 100_000 }, (_, n) => n), deep }} />,
    );
    fireEvent.click(screen.getByRole("button", { name: /many/ }));
    expect(container.textContent).toContain("99\u202f940 more");
    for (let n = 0; n < 30; n++) {
      for (const button of screen.queryAllByRole("button", { expanded: false })) fireEvent.click(button);
    }
    expect(container.textContent).not.toContain("bottom");
  }, 30_000);

  it("cuts long strings until asked", () => {
    const { container } = render(<Json value={"z".repeat(1000)} />);
    expect(container.textContent).toContain("400 more characters");
    fireEvent.click(screen.getByRole("button", { name: /more characters/ }));
    expect(container.textContent).toBe(`"${"z".repeat(1000)}"`);
  });
});

it("long text folds and opens", () => {
  const { container } = render(<LongText text={lines(100)} />);
  expect(container.textContent).toContain("line 20");
  expect(container.textContent).not.toContain("line 50");
  fireEvent.click(screen.getByRole("button", { name: /Show all \(100 lines\)/ }));
  expect(container.textContent).toContain("line 50");
});
