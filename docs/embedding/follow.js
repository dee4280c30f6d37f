const { narrows, session, token } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
let [cursor, items] = ["", new Map()]; // items are in the order in which they came
function apply({ change, id, item, field, text, toolCall, ...fields }) {
  const known = field === "rawOutput" ? items.get(id)?.toolCall : items.get(id);
  if (change === "put") items.set(item.id, item);
  if (change === "remove") items.delete(id);
  if (change === "append" && known) known[field] = (known[field] ?? "") + text;
  if (change === "set" && known) Object.assign(known, fields, toolCall && { toolCall: { ...known.toolCall, ...toolCall } });
}
const words = ({ toolCall: call, content, text, message, type }) =>
  call ? `${call.description} [${call.status}]\n${call.rawOutput ?? ""}` : (content ?? text ?? message ?? type);
const row = (item) => Object.assign(document.createElement("li"), { textContent: words(item) });
const parse = (frame) => Object.fromEntries(frame.split("\n").map((line) => line.split(/: ?(.*)/s)));
async function follow() {
  const headers = { authorization: `Bearer ${token}`, ...(cursor && { "last-event-id": cursor }) };
  const response = await fetch(`${narrows}/api/sessions/${session}/events?view=items`, { headers });
  if (!response.ok) return [401, 403, 404].includes(response.status); // no use in trying again
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", read; !(read = await reader.read()).done; ) {
    const frames = (rest + read.value).split("\n\n");
    rest = frames.pop();
    for (const { event, id, data } of frames.map(parse)) {
      if (event === "reset") return items.clear(), (cursor = ""), reader.cancel(); // another log: from its start
      if (data && !event) JSON.parse(data).changes.forEach(apply);
      cursor = id ?? cursor;
    }
    document.getElementById("items").replaceChildren(...[...items.values()].map(row));
  }
}
while (!(await follow().catch(() => false))) await new Promise((again) => setTimeout(again, 500));
