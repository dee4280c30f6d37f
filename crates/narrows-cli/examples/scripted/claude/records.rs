//! Records as Claude Code prints them.

use super::super::scripted::{uuid, wire};
use serde_json::{Value, json};

/// Who speaks: what stands in every record.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    pub(crate) session: String,
    pub(crate) model: String,
    /// Whether pieces are told, too.
    pub(crate) partial: bool,
}

pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// A block of an answer.
#[derive(Debug)]
pub(crate) enum Block<'a> {
    Text(&'a [String]),
    Thinking(&'a [String]),
    Tool { id: &'a str, name: &'a str, input: &'a Value },
}

impl Speaker {
    /// Tells a record, with who tells it and when.
    pub(crate) fn tell(&self, mut record: Value) -> Value {
        record["session_id"] = json!(self.session);
        if record["uuid"].is_null() {
            record["uuid"] = json!(uuid());
        }
        wire::send(&record);
        record
    }

    fn event(&self, message: &str, event: &Value) {
        if self.partial {
            self.tell(json!({"type": "stream_event", "event": event,
                "parent_tool_use_id": null, "api_message_id": message}));
        }
    }

    pub(crate) fn status(&self, status: &Value, mode: Option<&str>) {
        let mut record = json!({"type": "system", "subtype": "status", "status": status});
        if let Some(mode) = mode {
            record["permissionMode"] = json!(mode);
        }
        self.tell(record);
    }

    /// One message of the model, which has one block, as it streams. The record is given back.
    /// Less is told when it is `cut`.
    pub(crate) fn message(&self, block: &Block<'_>, cut: &dyn Fn() -> bool) -> Value {
        let id = format!("msg_{}", uuid().replace('-', ""));
        let message = |content: Value| {
            json!({"id": id, "type": "message", "role": "assistant", "model": self.model, "content": content,
                "stop_reason": null, "stop_sequence": null, "usage": usage(1)})
        };
        self.event(&id, &json!({"type": "message_start", "message": message(json!([]))}));
        let (start, deltas, reason) = match block {
            Block::Text(pieces) => {
                let deltas: Vec<Value> =
                    pieces.iter().map(|p| json!({"type": "text_delta", "text": p})).collect();
                (json!({"type": "text", "text": ""}), deltas, "end_turn")
            }
            Block::Thinking(pieces) => {
                let deltas =
                    pieces.iter().map(|p| json!({"type": "thinking_delta", "thinking": p}));
                (
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    deltas.collect(),
                    "end_turn",
                )
            }
            Block::Tool { id, name, input } => {
                let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
                (
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    vec![delta],
                    "tool_use",
                )
            }
        };
        self.event(
            &id,
            &json!({"type": "content_block_start", "index": 0, "content_block": start}),
        );
        let (mut told, mut aborted) = (0, false);
        for delta in &deltas {
            if cut() {
                aborted = true;
                break;
            }
            told += 1;
            self.event(&id, &json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        let content = match block {
            Block::Text(pieces) => json!({"type": "text", "text": pieces[..told].concat()}),
            Block::Thinking(pieces) => {
                json!({"type": "thinking", "thinking": pieces[..told].concat(), "signature": "c2NyaXB0ZWQ="})
            }
            Block::Tool { id, name, input } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        };
        let mut whole = message(json!([content]));
        whole["context_management"] = Value::Null;
        let mut record = json!({"type": "assistant", "message": whole, "parent_tool_use_id": null,
            "timestamp": now(), "request_id": format!("req_{}", uuid().replace('-', ""))});
        if aborted {
            record["aborted"] = json!(true);
        }
        let record = self.tell(record);
        self.event(&id, &json!({"type": "content_block_stop", "index": 0}));
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        self.event(
            &id,
            &json!({"type": "message_delta", "delta": delta, "usage": usage(told as u64 + 1)}),
        );
        self.event(&id, &json!({"type": "message_stop"}));
        record
    }

    /// The program says in the model's place that something failed.
    pub(crate) fn failure(&self, words: &str, error: Option<&str>) -> Value {
        let content = json!([{"type": "text", "text": words}]);
        let message = json!({"id": uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
            "content": content, "stop_reason": "stop_sequence", "stop_sequence": ""});
        let mut record =
            json!({"type": "assistant", "message": message, "parent_tool_use_id": null});
        if let Some(error) = error {
            record["error"] = json!(error);
        }
        self.tell(record)
    }

    /// The result of a call.
    pub(crate) fn result(
        &self,
        id: &str,
        content: &str,
        is_error: bool,
        raw: &Value,
        meta: Value,
    ) -> Value {
        let mut block = json!({"tool_use_id": id, "type": "tool_result", "content": content});
        if is_error {
            block["is_error"] = json!(true);
        }
        let mut meta = meta;
        meta["id"] = json!(id);
        self.tell(json!({"type": "user", "message": {"role": "user", "content": [block]},
            "parent_tool_use_id": null, "timestamp": now(), "tool_use_result": raw, "tool_result_meta": [meta]}))
    }
}

pub(crate) fn usage(output: u64) -> Value {
    json!({"input_tokens": 13, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 4100,
        "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output, "service_tier": "standard"})
}
