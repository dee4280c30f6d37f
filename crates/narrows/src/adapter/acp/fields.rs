//! The fields of one object, each name variant listed once.

use crate::json::{Json, Kind};

/// What a message may hold. Absent and null are the same.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Fields<'a> {
    // The wrapping.
    pub(super) msg: Option<Json<'a>>,
    pub(super) dir: Option<Json<'a>>,
    pub(super) time: Option<Json<'a>>,
    pub(super) stored: Option<Json<'a>>,
    // JSON-RPC.
    pub(super) id: Option<Json<'a>>,
    pub(super) method: Option<Json<'a>>,
    pub(super) params: Option<Json<'a>>,
    pub(super) result: Option<Json<'a>>,
    pub(super) error: Option<Json<'a>>,
    pub(super) update: Option<Json<'a>>,
    // The discriminators.
    pub(super) kind: Option<Json<'a>>,
    pub(super) session_update: Option<Json<'a>>,
    // What is common to chunks and calls.
    pub(super) content: Option<Json<'a>>,
    pub(super) meta: Option<Json<'a>>,
    pub(super) message_id: Option<Json<'a>>,
    // Calls.
    pub(super) call_id: Option<Json<'a>>,
    pub(super) tool_name: Option<Json<'a>>,
    pub(super) name: Option<Json<'a>>,
    pub(super) title: Option<Json<'a>>,
    pub(super) tool_kind: Option<Json<'a>>,
    pub(super) status: Option<Json<'a>>,
    pub(super) input: Option<Json<'a>>,
    pub(super) output: Option<Json<'a>>,
    pub(super) locations: Option<Json<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads an object. The last of two equal keys wins, but an empty value never hides a full one:
    /// some back ends send `raw_input: {}` beside `rawInput`.
    pub(super) fn read(object: Json<'a>) -> Self {
        let mut f = Fields::default();
        for (key, value) in object.fields() {
            let slot = match &*key {
                "type" => &mut f.kind,
                "sessionUpdate" | "session_update" => &mut f.session_update,
                "content" => &mut f.content,
                "toolCallId" | "tool_call_id" => &mut f.call_id,
                "title" => &mut f.title,
                "kind" => &mut f.tool_kind,
                "status" => &mut f.status,
                "rawInput" | "raw_input" => &mut f.input,
                "rawOutput" | "raw_output" => &mut f.output,
                "locations" => &mut f.locations,
                "_meta" => &mut f.meta,
                "messageId" | "message_id" => &mut f.message_id,
                "toolName" | "tool_name" => &mut f.tool_name,
                "name" => &mut f.name,
                "msg" => &mut f.msg,
                "dir" => &mut f.dir,
                "ts" | "timestamp" => &mut f.time,
                "message_metadata" | "messageMetadata" => {
                    if value.kind() == Kind::Object {
                        f.stored = Some(value);
                    }
                    continue;
                }
                "id" => &mut f.id,
                "method" => &mut f.method,
                "params" => &mut f.params,
                "result" => &mut f.result,
                "error" => &mut f.error,
                "update" => &mut f.update,
                _ => continue,
            };
            let hides = value.is_empty() && slot.is_some();
            if !value.is_null() && !hides {
                *slot = Some(value);
            }
        }
        f
    }
}
