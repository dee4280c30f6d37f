// The first page: log in, list sessions, follow one.
const state = document.getElementById("state");
const list = document.getElementById("sessions");
const items = document.getElementById("items");
const rows = new Map();
let stream;
let selected;

async function login() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return;
  history.replaceState(null, "", location.pathname);
  await fetch("/api/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ticket }),
  });
}

const text = (item) => {
  const call = item.toolCall;
  if (call) return [call.title, call.description, call.status].filter(Boolean).join(" · ");
  if (item.todoList) return item.todoList.todos.map((todo) => `${todo.status} · ${todo.content}`).join("\n");
  return item.content ?? item.text ?? item.message ?? item.title ?? "";
};

function show(id) {
  stream?.close();
  selected = id;
  for (const [one, row] of rows) row.setAttribute("aria-current", one === id);
  items.replaceChildren();
  const known = new Map();
  const draw = (item) => {
    const [row] = known.get(item.id) ?? [items.appendChild(document.createElement("li"))];
    const kind = document.createElement("b");
    kind.textContent = item.type;
    row.replaceChildren(kind, text(item));
    known.set(item.id, [row, item]);
  };
  const apply = (change) => {
    if (change.change === "put") return draw(change.item);
    const [row, item] = known.get(change.id) ?? [];
    if (!item) return;
    if (change.change === "remove") return row.remove(), known.delete(change.id);
    const target = change.field === "rawOutput" ? item.toolCall : item;
    if (change.change === "append") target[change.field] = (target[change.field] ?? "") + change.text;
    if (change.toolCall) item.toolCall = { ...item.toolCall, ...change.toolCall };
    if (change.todoList) item.todoList = change.todoList;
    if ("content" in change) item.content = change.content;
    draw(item);
  };
  stream = new EventSource(`/api/sessions/${encodeURIComponent(id)}/events?view=items`);
  stream.onmessage = (frame) => JSON.parse(frame.data).changes.forEach(apply);
  stream.addEventListener("reset", () => show(id));
}

function follow() {
  const sessions = new EventSource("/api/sessions/stream");
  sessions.onopen = () => (state.textContent = "live");
  sessions.onerror = () => {
    const refused = sessions.readyState === EventSource.CLOSED;
    state.textContent = refused ? "not connected: open the address that `narrows open` prints" : "cut off, trying again";
  };
  sessions.onmessage = (frame) => {
    const told = JSON.parse(frame.data);
    if (told.type === "removed") return rows.get(told.sessionId)?.remove();
    const { session } = told;
    const row = rows.get(session.id) ?? document.createElement("li");
    const button = document.createElement("button");
    button.textContent = session.info.title ?? session.label ?? session.id;
    const about = document.createElement("small");
    about.textContent = [session.info.agent, `${session.items} items`].filter(Boolean).join(" · ");
    button.append(about);
    button.onclick = () => show(session.id);
    row.replaceChildren(button);
    row.setAttribute("aria-current", session.id === selected);
    rows.set(session.id, row);
    list.prepend(row);
  };
}

await login();
follow();
