import { cleanup, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { SessionList } from "../../src/state/list";
import { ForkOf } from "../../src/ui/fork-of";
import { SearchResults } from "../../src/ui/search-results";
import { refused, served } from "../run/fixtures";

afterEach(cleanup);

test("a fork leads to the session that it is a copy of", async () => {
  served(() => ({ status: 200, body: { id: "trunk", prompt: "Mend the pier", info: {} } }));
  render(<ForkOf of="trunk" />);
  const link = await screen.findByRole("link", { name: "Mend the pier" });
  expect(link.getAttribute("href")).toBe("/s/trunk");
  expect(link.parentElement?.textContent).toBe("fork of Mend the pier");
  cleanup();
  // One that is gone, or that this reader may not see.
  served(() => refused(404, "NOT_FOUND", "no such session"));
  render(<ForkOf of="trunk" />);
  await waitFor(() => expect(screen.getByText("fork of another session")).toBeTruthy());
  expect(screen.queryByRole("link")).toBeNull();
});

test("the hits in a fork are told from those in its trunk", async () => {
  const hit = (sessionId: string, fork: boolean) => ({
    ...{ sessionId, fork, title: "Mend the pier", itemId: "text-1", type: "text", order: 1 },
    ...{ field: "content", parts: [{ text: "pier", hit: true }] },
  });
  served(() => ({ status: 200, body: { hits: [hit("copy", true), hit("trunk", false)], next: null } }));
  const list = { get: () => undefined } as unknown as SessionList;
  render(<SearchResults query="pier" filter={{}} list={list} onChoose={() => {}} />);
  const heads = await screen.findAllByRole("heading");
  expect(heads.map((head) => head.textContent)).toEqual(["Mend the pierfork", "Mend the pier"]);
});
