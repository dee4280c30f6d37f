// The first page: log in, list sessions, follow one.
const state = document.getElementById("state");
const list = document.getElementById("sessions");
const items = document.getElementById("items");
let stream;

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
  return item.content ?? item.text ?? item.message ?? "";
};

function show(id) {
  stream?.close();
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
    if (change.change === "remove") return row.remove();
    if (change.change === "append") item[change.field] = (item[change.field] ?? "") + change.text;
    if (change.toolCall) item.toolCall = { ...item.toolCall, ...change.toolCall };
    if ("content" in change) item.content = change.content;
    draw(item);
  };
  stream = new EventSource(`/api/sessions/${encodeURIComponent(id)}/events?view=items`);
  stream.onmessage = (frame) => JSON.parse(frame.data).changes.forEach(apply);
  stream.addEventListener("reset", () => show(id));
}

function follow() {
  const rows = new Map();
  const sessions = new EventSource("/api/sessions/stream");
  sessions.onopen = () => (state.textContent = "live");
  sessions.onerror = () => (state.textContent = "not connected: open the address that `narrows serve` prints");
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
    rows.set(session.id, row);
    list.prepend(row);
  };
}

await login();
follow();
