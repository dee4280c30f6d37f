import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Guard } from "../../src/ui/guard";

afterEach(cleanup);

function Row({ text }: { text: string }) {
  if (text === "broken") throw new Error("it is odd");
  return <p>{text}</p>;
}

test("what cannot be shown leaves the rest, and is tried again when it changes", () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const page = (first: string) => (
    <>
      <Guard of={first}>
        <Row text={first} />
      </Guard>
      <Guard of="other">
        <Row text="other" />
      </Guard>
    </>
  );
  const { rerender } = render(page("broken"));
  expect(screen.getByRole("alert").textContent).toContain("it is odd");
  expect(screen.getByText("other")).toBeTruthy();
  rerender(page("mended"));
  expect(screen.getByText("mended")).toBeTruthy();
  expect(screen.queryByRole("alert")).toBeNull();
});
