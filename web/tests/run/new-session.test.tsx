import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AgentInfo } from "../../src/api/types";
import { NewSession } from "../../src/ui/new-session";
import { refused, served } from "./fixtures";

beforeEach(() => localStorage.clear());
afterEach(cleanup);

const agents: AgentInfo[] = [
  {
    name: "gone",
    title: "Gone",
    protocol: "acp",
    installed: false,
    problem: "`gone` is not installed",
  },
  { name: "one", title: "One", protocol: "acp", installed: true },
  { name: "two", title: "Two", protocol: "claude", installed: true },
];
const show = () => {
  const started = vi.fn();
  render(<NewSession agents={agents} onStarted={started} onClose={() => {}} />);
  return started;
};
const radio = (name: RegExp) => screen.getByRole("radio", { name, hidden: true }) as HTMLInputElement;
const write = (label: string, value: string) =>
  fireEvent.change(screen.getByLabelText(label, { exact: false }), { target: { value } });
const start = () => fireEvent.click(screen.getByText("Start"));

test("an agent is started where it is told, with the first message", async () => {
  const asked = served(({ path }) => ({ status: 201, body: { id: path === "/api/runs" ? "new" : "1" } }));
  const started = show();
  expect(radio(/Gone/).disabled).toBe(true);
  expect(screen.getByText("`gone` is not installed")).toBeTruthy();
  expect(radio(/One/).checked).toBe(true);
  fireEvent.click(radio(/Two/));
  write("Folder", " /srv/app ");
  write("First message", "Begin");
  start();
  await waitFor(() => expect(started).toHaveBeenCalledWith("new"));
  expect(asked.map(({ path, body }) => [path, body])).toEqual([
    ["/api/runs", { agent: "two", cwd: "/srv/app" }],
    ["/api/sessions/new/send-message", { content: "Begin" }],
  ]);
  cleanup();
  show();
  expect(radio(/Two/).checked).toBe(true);
  expect((screen.getByLabelText("Folder", { exact: false }) as HTMLInputElement).value).toBe("/srv/app");
});

test("what the server says against it is shown, and no session is made twice", async () => {
  let refuse = true;
  const asked = served(({ path }) => {
    if (path === "/api/runs") return { status: 201, body: { id: "new" } };
    return refuse ? refused(503, "BUSY", "try again later") : { status: 202, body: { id: "1" } };
  });
  const started = show();
  write("First message", "Begin");
  start();
  await waitFor(() => expect(screen.getByText("try again later")).toBeTruthy());
  expect(started).not.toHaveBeenCalled();
  refuse = false;
  start();
  await waitFor(() => expect(started).toHaveBeenCalledWith("new"));
  expect(asked.filter(({ path }) => path === "/api/runs")).toHaveLength(1);
  expect(asked[2]?.headers["idempotency-key"]).toBe(asked[1]?.headers["idempotency-key"]);
});

test("a browser that keeps nothing starts one all the same", async () => {
  vi.stubGlobal("localStorage", {
    getItem: () => {
      throw new Error("no");
    },
    setItem: () => {
      throw new Error("no");
    },
    clear: () => {},
  });
  served(() => ({ status: 201, body: { id: "new" } }));
  const started = show();
  start();
  await waitFor(() => expect(started).toHaveBeenCalledWith("new"));
});

test("a session that the agent keeps by itself is gone on with", async () => {
  const kept = { id: "ses_1", title: "Mend the pier", project: "harbor" };
  const asked = served(({ path }) => {
    if (path === "/api/agents/one/sessions") return { status: 200, body: { sessions: [kept] } };
    return { status: 201, body: { id: "taken" } };
  });
  const started = show();
  fireEvent.click(screen.getByText("Go on with a session of this agent…"));
  const choice = (await screen.findByLabelText("Session")) as HTMLSelectElement;
  expect([...choice.options].map((option) => option.text)).toEqual(["A new one", "Mend the pier · harbor"]);
  fireEvent.change(choice, { target: { value: "ses_1" } });
  // It works where its agent says.
  expect(screen.queryByLabelText("Folder", { exact: false })).toBeNull();
  start();
  await waitFor(() => expect(started).toHaveBeenCalledWith("taken"));
  expect(asked.at(-1)?.body).toEqual({ agent: "one", nativeId: "ses_1" });
  cleanup();
  // An agent that lists none says why.
  served(() => refused(409, "NOT_SUPPORTED", "`one` cannot list sessions"));
  show();
  fireEvent.click(screen.getByText("Go on with a session of this agent…"));
  expect((await screen.findByRole("alert", { hidden: true })).textContent).toContain("cannot list");
  fireEvent.click(radio(/Two/));
  expect(screen.queryByText("Go on with a session of this agent…")).toBeNull();
});
