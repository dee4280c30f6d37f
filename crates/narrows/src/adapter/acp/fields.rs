//! Reads the fields of one object; every spelling of a name is listed here.

use crate::json::{Json, Kind};

/// The known fields of a message. Absent and null are the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageFields<'a> {
    object: Json<'a>,
    /// The index node of each field's value, 0 when it is absent.
    nodes: [u32; FieldSlot::Count as usize],
}

#[derive(Clone, Copy)]
enum FieldSlot {
    Msg,
    Dir,
    Run,
    Request,
    Time,
    Stored,
    Id,
    Method,
    Params,
    Result,
    Error,
    Update,
    Kind,
    SessionUpdate,
    Content,
    Meta,
    MessageId,
    CallId,
    ToolName,
    Name,
    Title,
    ToolKind,
    Status,
    Input,
    Output,
    Locations,
    Count,
}

impl<'a> MessageFields<'a> {
    /// Reads an object. The last of two equal keys wins, but an empty value never hides another one:
    /// some back ends send `raw_input: {}` next to `rawInput`.
    pub(super) fn read(object: Json<'a>) -> Self {
        let mut f = MessageFields { object, nodes: [0; FieldSlot::Count as usize] };
        for (key, value) in object.fields() {
            // Matches the length first, which distinguishes most keys without comparing them.
            let slot = match key.len() {
                2 => match key {
                    "ts" => FieldSlot::Time,
                    "id" => FieldSlot::Id,
                    _ => continue,
                },
                3 => match key {
                    "msg" => FieldSlot::Msg,
                    "dir" => FieldSlot::Dir,
                    "run" => FieldSlot::Run,
                    _ => continue,
                },
                4 => match key {
                    "type" => FieldSlot::Kind,
                    "kind" => FieldSlot::ToolKind,
                    "name" => FieldSlot::Name,
                    _ => continue,
                },
                5 => match key {
                    "title" => FieldSlot::Title,
                    "_meta" => FieldSlot::Meta,
                    "error" => FieldSlot::Error,
                    _ => continue,
                },
                6 => match key {
                    "status" => FieldSlot::Status,
                    "method" => FieldSlot::Method,
                    "params" => FieldSlot::Params,
                    "result" => FieldSlot::Result,
                    "update" => FieldSlot::Update,
                    _ => continue,
                },
                7 => match key {
                    "content" => FieldSlot::Content,
                    "request" => FieldSlot::Request,
                    _ => continue,
                },
                8 => match key {
                    "rawInput" => FieldSlot::Input,
                    "toolName" => FieldSlot::ToolName,
                    _ => continue,
                },
                9 => match key {
                    "raw_input" => FieldSlot::Input,
                    "rawOutput" => FieldSlot::Output,
                    "locations" => FieldSlot::Locations,
                    "messageId" => FieldSlot::MessageId,
                    "tool_name" => FieldSlot::ToolName,
                    "timestamp" => FieldSlot::Time,
                    _ => continue,
                },
                10 => match key {
                    "toolCallId" => FieldSlot::CallId,
                    "raw_output" => FieldSlot::Output,
                    "message_id" => FieldSlot::MessageId,
                    _ => continue,
                },
                12 => match key {
                    "tool_call_id" => FieldSlot::CallId,
                    _ => continue,
                },
                13 => match key {
                    "sessionUpdate" => FieldSlot::SessionUpdate,
                    _ => continue,
                },
                14 => match key {
                    "session_update" => FieldSlot::SessionUpdate,
                    _ => continue,
                },
                15 => match key {
                    "messageMetadata" => FieldSlot::Stored,
                    _ => continue,
                },
                16 => match key {
                    "message_metadata" => FieldSlot::Stored,
                    _ => continue,
                },
                _ => continue,
            };
            let node = &mut f.nodes[slot as usize];
            let would_hide = value.is_empty() && *node != 0;
            if !value.is_null() && !would_hide {
                *node = value.node_index();
            }
        }
        f
    }

    fn slot(&self, slot: FieldSlot) -> Option<Json<'a>> {
        let node = self.nodes[slot as usize];
        (node != 0).then(|| self.object.with_node(node))
    }

    pub(super) fn msg(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Msg)
    }

    pub(super) fn dir(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Dir)
    }

    /// The unique name of a request whose JSON-RPC id was used before, if the recorder assigns one.
    pub(super) fn request(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Request)
    }

    pub(super) fn run(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Run)
    }

    pub(super) fn time(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Time)
    }

    pub(super) fn stored(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Stored).filter(|s| s.kind() == Kind::Object)
    }

    pub(super) fn id(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Id)
    }

    pub(super) fn method(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Method)
    }

    pub(super) fn params(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Params)
    }

    pub(super) fn result(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Result)
    }

    pub(super) fn error(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Error)
    }

    pub(super) fn update(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Update)
    }

    pub(super) fn kind(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Kind)
    }

    pub(super) fn session_update(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::SessionUpdate)
    }

    pub(super) fn content(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Content)
    }

    pub(super) fn meta(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Meta)
    }

    pub(super) fn message_id(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::MessageId)
    }

    pub(super) fn call_id(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::CallId)
    }

    pub(super) fn tool_name(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::ToolName)
    }

    pub(super) fn name(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Name)
    }

    pub(super) fn title(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Title)
    }

    pub(super) fn tool_kind(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::ToolKind)
    }

    pub(super) fn status(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Status)
    }

    pub(super) fn input(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Input)
    }

    pub(super) fn output(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Output)
    }

    pub(super) fn locations(&self) -> Option<Json<'a>> {
        self.slot(FieldSlot::Locations)
    }
}
