//! Sessions made up to look like recorded ones: same shapes, same sizes, same paths everywhere.

use serde_json::{Value, json};

/// The session root that appears in the packets.
pub(crate) const ROOT: &str = "/workspace/sessions/9c7662c1-785f-4f1c-b9e0-9021ddbf2893";

/// A small deterministic generator of numbers (xorshift).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len() as u64) as usize]
    }
}

const WORDS: &[&str] = &[
    "the ",
    "a ",
    "file ",
    "function ",
    "returns ",
    "now ",
    "we ",
    "should ",
    "check ",
    "`main` ",
    "and ",
    "then ",
    "tests ",
    "pass. ",
    "Let me ",
    "look ",
    "at ",
    "naïve ",
    "café ",
    "error ",
    "in ",
    "of ",
    "module ",
    "types ",
    "first.\n",
    "Next, ",
    "update ",
    "because ",
    "it ",
    "is ",
];
const FILES: &[&str] = &[
    "src/main.rs",
    "src/lib.rs",
    "outputs/web/page.tsx",
    "files/data.json",
    "README.md",
    "tests/api_test.py",
    "pkg/server/handler.go",
    "docs/guide.md",
];
/// What tools print: real code and prose, line by line.
const TEXTS: &[&str] = &[
    include_str!("../../src/fold/mod.rs"),
    include_str!("../../src/tool_calls/mod.rs"),
    include_str!("../../src/json/node.rs"),
    include_str!("../../../../CONTRIBUTING.md"),
];

/// Streams packets until `bytes` are made. `big` is the share of calls with big results, in percent.
pub(crate) struct Session {
    dice: Dice,
    call: u64,
    message: u64,
    big: u64,
}

impl Session {
    pub(crate) fn new(seed: u64, big: u64) -> Self {
        Session { dice: Dice::new(seed), call: 0, message: 0, big }
    }

    /// At least `bytes` bytes of packets, one a line.
    pub(crate) fn make(&mut self, bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + (1 << 20));
        while out.len() < bytes {
            self.turn(&mut out);
        }
        out
    }

    fn turn(&mut self, out: &mut Vec<u8>) {
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "Go on."}]});
        line(
            out,
            &json!({"jsonrpc": "2.0", "id": self.message, "method": "session/prompt", "params": prompt}),
        );
        for _ in 0..3 {
            self.text("agent_thought_chunk", 40, out);
            self.text("agent_message_chunk", 80, out);
            self.tool(out);
        }
        let answer = json!({"stopReason": "end_turn"});
        line(out, &json!({"jsonrpc": "2.0", "id": self.message, "result": answer}));
    }

    /// One text in `pieces` chunks.
    fn text(&mut self, kind: &str, pieces: u64, out: &mut Vec<u8>) {
        self.message += 1;
        let id = format!("msg_{:026}", self.message);
        for _ in 0..pieces {
            let mut text = self.dice.pick(WORDS).to_owned();
            if self.dice.roll(40) == 0 {
                text = format!("{ROOT}/{} ", self.dice.pick(FILES));
            }
            update(
                out,
                &json!({"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": text}}),
            );
        }
    }

    /// What tools print: code, and now and then a log, colours, JSON, an address, a secret.
    pub(crate) fn mixed(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 4096);
        while text.len() < bytes {
            match self.dice.roll(10) {
                0 => (0..8).for_each(|_| {
                    text.extend(["\u{1b}[32mok\u{1b}[0m  ", self.dice.pick(FILES), " (3 ms)\n"]);
                }),
                1 => text.extend([ROOT, "/", self.dice.pick(FILES), ":12: warning: unused\n"]),
                2 => text.push_str("{\"level\":\"info\",\"msg\":\"GET /api/items?page=2\",\"id\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}\n"),
                3 => text.push_str("https://registry.example/pkg/-/pkg-1.2.3.tgz sha512-4sHb1UPbq0YdHR3Vbnvq\n"),
                4 if self.dice.roll(20) == 0 => {
                    text.push_str("export API_KEY=8f3a9c2e7b1d4f6a0c5e\n");
                }
                _ => text.push_str(&self.code(1500)),
            }
        }
        text
    }

    /// Lines of code, with paths of the session among them.
    pub(crate) fn code(&mut self, bytes: usize) -> String {
        self.lines(bytes, true)
    }

    /// A file of code, which knows nothing of where it lies.
    pub(crate) fn file(&mut self, bytes: usize) -> String {
        self.lines(bytes, false)
    }

    fn lines(&mut self, bytes: usize, paths: bool) -> String {
        let mut text = String::with_capacity(bytes + 64);
        loop {
            for line in self.dice.pick(TEXTS).lines() {
                if paths && self.dice.roll(50) == 0 {
                    text.extend([ROOT, "/", self.dice.pick(FILES), ":12: note\n"]);
                }
                text.push_str(line);
                text.push('\n');
                if text.len() >= bytes {
                    return text;
                }
            }
        }
    }

    fn tool(&mut self, out: &mut Vec<u8>) {
        self.call += 1;
        let id = format!("toolu_{:024}", self.call);
        let path = format!("{ROOT}/{}", self.dice.pick(FILES));
        let size = match self.dice.roll(100) {
            // Agents cut what a tool prints: at 30 kB, 51 kB or 74 kB, by agent.
            n if n < self.big => 20_000 + self.dice.roll(55_000) as usize,
            n if n < 50 => 300,
            n if n < 85 => 3_000,
            _ => 12_000,
        };
        let text = self.code(size);
        let (title, kind, input, output): (&str, &str, Value, Value) = match self.dice.roll(6) {
            0 | 1 => (
                "bash",
                "execute",
                json!({"command": format!("cd {ROOT} && ls"), "description": "List files"}),
                json!({"output": text, "metadata": {"output": text, "exit": 0, "truncated": false}}),
            ),
            2 | 3 => {
                let numbered = text.lines().enumerate();
                let numbered = numbered.map(|(i, line)| format!("{:05}| {line}\n", i + 1));
                let body = format!("<file>\n{}</file>", numbered.collect::<String>());
                (
                    "read",
                    "read",
                    json!({"filePath": path}),
                    json!({"output": body, "metadata": {"preview": "…", "truncated": false}}),
                )
            }
            // What a model writes by itself is seldom long.
            4 => (
                "write",
                "edit",
                json!({"filePath": path, "content": self.code(size.min(6_000))}),
                json!({"output": "Wrote file successfully.", "metadata": {"exists": false, "filepath": path}}),
            ),
            _ => (
                "grep",
                "search",
                json!({"pattern": "handler", "path": ROOT}),
                json!({"output": text, "metadata": {"matches": 3, "truncated": false}}),
            ),
        };
        let shown = output["output"].clone();
        update(
            out,
            &json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending", "locations": [], "rawInput": {}}),
        );
        update(
            out,
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress", "kind": kind, "title": title, "locations": [{"path": path}], "rawInput": input}),
        );
        update(
            out,
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "title": path, "content": [{"type": "content", "content": {"type": "text", "text": shown}}], "rawOutput": output}),
        );
    }
}

fn update(out: &mut Vec<u8>, update: &Value) {
    line(
        out,
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "ses_e1f4aa968ffeAntBEY5hjjxcJF", "update": update}}),
    );
}

fn line(out: &mut Vec<u8>, packet: &Value) {
    serde_json::to_writer(&mut *out, packet).expect("a packet is JSON");
    out.push(b'\n');
}
