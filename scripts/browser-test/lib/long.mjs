// Packets of a session as long as one likes, as an agent of the protocol sends them.

const WORDS = "the cursor of a stream tells where to go on so that nothing is lost and nothing comes twice".split(" ");
const at = (list, n) => list[n % list.length];
const words = (n, count) => Array.from({ length: count }, (_, i) => at(WORDS, n * 7 + i * 3)).join(" ");
const update = (update) => JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "long", update } });

/// One turn of the session: a prompt, then thoughts, texts and calls. Each line of it is an event.
function* turn(n) {
  const text = (kind, text) => update({ sessionUpdate: kind, content: { type: "text", text } });
  yield text("user_message_chunk", `Turn ${n}: ${words(n, 12)}?`);
  yield text("agent_thought_chunk", words(n, 60));
  for (let step = 0; step < 8; step++) {
    const id = `call-${n}-${step}`;
    const kind = at(["read", "execute", "edit", "search"], n + step);
    const path = `src/part-${n % 40}/file-${step}.ts`;
    const input = {
      read: { filePath: path },
      execute: { command: `npm test -- part-${n} --grep "${words(step, 4)}"`, description: words(n, 4) },
      edit: { filePath: path, oldString: `const a = ${n};`, newString: `const a = ${n + 1};` },
      search: { pattern: `part-${n}` },
    }[kind];
    const title = { read: "read", execute: "bash", edit: "edit", search: "grep" }[kind];
    yield update({ sessionUpdate: "tool_call", toolCallId: id, title, kind, status: "pending", rawInput: input });
    // Now and then a long output.
    const lines = step === 3 && n % 9 === 0 ? 400 : 3 + ((n + step) % 20);
    const output = Array.from({ length: lines }, (_, i) => `${path}:${i + 1}: ${words(n + i, 9)}`).join("\n");
    const content =
      kind === "edit"
        ? [{ type: "diff", path, oldText: `const a = ${n};\n`, newText: `const a = ${n + 1};\nconst b = 1;\n` }]
        : [{ type: "content", content: { type: "text", text: output } }];
    const status = (n + step) % 31 === 0 ? "failed" : "completed";
    yield update({ sessionUpdate: "tool_call_update", toolCallId: id, status, content });
  }
  yield text("agent_message_chunk", `Turn ${n} is done. **${words(n, 5)}** and \`${at(WORDS, n)}\`:\n\n`);
  yield text("agent_message_chunk", `- ${words(n, 9)}\n- ${words(n + 1, 7)}\n\n\`\`\`ts\nconst n = ${n};\n\`\`\`\n`);
}

/// The packets of so many turns, which give eleven items each.
export function* long(turns, first = 1) {
  for (let n = first; n < first + turns; n++) yield* turn(n);
}

export const ITEMS_PER_TURN = 11;
