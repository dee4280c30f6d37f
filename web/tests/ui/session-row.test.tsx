import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { Session } from "../../src/api/types";
import { SessionRow } from "../../src/ui/session-row";

afterEach(cleanup);

const session = (more: Partial<Session>) =>
  ({
    id: "s",
    items: 3,
    updatedAt: 0,
    heardAt: 0,
    waiting: 0,
    live: false,
    prompt: "Original session",
    info: { agent: "Claude Code", status: "idle" },
    ...more,
  }) as Session;

test("a fork looks like one", () => {
  const show = (of: Session) => render(<SessionRow session={of} chosen={false} onChoose={() => {}} />);
  show(session({ fork: true }));
  // Beside its name: a fork has that of its trunk.
  expect(screen.getByRole("link", { name: /^Original session\s*fork/ })).toBeTruthy();
  expect(screen.getByText("fork").title).toBe("It began as a copy of another session");
  cleanup();
  show(session({ fork: false }));
  expect(screen.getByRole("link").textContent).not.toContain("fork");
});
