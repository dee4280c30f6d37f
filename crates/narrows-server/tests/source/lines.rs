//! Lines as Claude Code writes them.

use serde_json::{Value, json};

/// The folder in which the made-up sessions work.
pub(crate) const CWD: &str = "/home/ada/my-app";

/// A session's id.
pub(crate) fn session_id(n: u32) -> String {
    format!("{n:08x}-1111-4222-8333-444444444444")
}

fn uuid(of: &str, n: u32) -> String {
    let tag: u32 = of.bytes().fold(7, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(b)));
    format!("{n:08x}-aaaa-4bbb-8ccc-{tag:08x}0000")
}

/// A session that is made line by line. Odd records are prompts, even ones answers.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) session: String,
    pub(crate) cwd: String,
    /// Part of the records' ids: other talks have other ones.
    pub(crate) of: &'static str,
    /// Records were written now, rather than in the past.
    pub(crate) is_now: bool,
}

impl Talk {
    pub(crate) fn new(n: u32) -> Talk {
        Talk { session: session_id(n), cwd: CWD.to_owned(), of: "a", is_now: false }
    }

    pub(crate) fn named(&self, of: &'static str) -> Talk {
        Talk { of, ..self.clone() }
    }

    pub(crate) fn in_folder(&self, cwd: &str) -> Talk {
        Talk { cwd: cwd.to_owned(), ..self.clone() }
    }

    fn record(&self, n: u32) -> Value {
        let began = if self.is_now { narrows_store::now() } else { 1_772_359_200_000 };
        let time = narrows::time::Time::from_millis(began + i64::from(n) * 1000);
        json!({
            "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": self.cwd,
            "sessionId": self.session, "version": "2.1.325", "gitBranch": "main",
            "uuid": uuid(self.of, n),
            "timestamp": time,
        })
    }

    /// What the record `n` says.
    pub(crate) fn text(&self, n: u32) -> String {
        format!("{} number {n} ä€😀", self.of)
    }

    fn with(&self, n: u32, more: &Value) -> String {
        let mut record = self.record(n);
        if let (Some(record), Some(more)) = (record.as_object_mut(), more.as_object()) {
            record.extend(more.clone());
        }
        record.to_string() + "\n"
    }

    pub(crate) fn prompt(&self, n: u32, text: &str) -> String {
        self.with(n, &json!({"type": "user", "message": {"role": "user", "content": text}}))
    }

    pub(crate) fn answer(&self, n: u32, blocks: &Value) -> String {
        let of = self.of;
        self.with(
            n,
            &json!({"type": "assistant", "requestId": format!("req_{of}{n}"), "message": {
                "id": format!("msg_{of}{n}"), "type": "message", "role": "assistant",
                "model": "claude-test-1", "content": blocks, "stop_reason": null,
                "usage": {"input_tokens": 10, "output_tokens": 5},
            }}),
        )
    }

    pub(crate) fn call(&self, n: u32, id: &str, name: &str, input: &Value) -> String {
        self.answer(n, &json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
    }

    pub(crate) fn result(&self, n: u32, id: &str, text: &str, value: &Value) -> String {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        let message = json!({"role": "user", "content": [block]});
        self.with(n, &json!({"type": "user", "message": message, "toolUseResult": value}))
    }

    /// The record `n`.
    pub(crate) fn line(&self, n: u32) -> String {
        let text = self.text(n);
        if n % 2 == 1 {
            return self.prompt(n, &text);
        }
        self.answer(n, &json!([{"type": "text", "text": text}]))
    }

    /// Some records.
    pub(crate) fn lines(&self, of: impl IntoIterator<Item = u32>) -> String {
        of.into_iter().map(|n| self.line(n)).collect()
    }

    /// What some records say.
    pub(crate) fn texts(&self, of: impl IntoIterator<Item = u32>) -> Vec<String> {
        of.into_iter().map(|n| self.text(n)).collect()
    }

    /// A line of a subagent of this session.
    pub(crate) fn side(&self, n: u32, agent: &str, text: &str) -> String {
        let more = json!({
            "isSidechain": true, "agentId": agent, "uuid": uuid(agent, n), "type": "assistant",
            "message": {"id": format!("msg_{agent}{n}"), "type": "message", "role": "assistant",
                "model": "claude-test-1", "content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": 1, "output_tokens": 1}},
        });
        self.with(n, &more)
    }
}
