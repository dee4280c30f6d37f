//! Reads the fields of one object; every spelling of a name is listed here.

use crate::json::{Json, Kind};

/// The known fields of a message. Absent and null are the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    object: Json<'a>,
    /// The index node of each field's value, 0 when it is absent.
    nodes: [u32; Slot::Count as usize],
}

#[derive(Clone, Copy)]
enum Slot {
    Msg,
    Dir,
    Run,
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

impl<'a> Fields<'a> {
    /// Reads an object. The last of two equal keys wins, but an empty value never hides another one:
    /// some back ends send `raw_input: {}` next to `rawInput`.
    pub(super) fn read(object: Json<'a>) -> Self {
        let mut f = Fields { object, nodes: [0; Slot::Count as usize] };
        for (key, value) in object.fields() {
            // Matches the length first, which distinguishes most keys without comparing them.
            let slot = match key.len() {
                2 => match key {
                    "ts" => Slot::Time,
                    "id" => Slot::Id,
                    _ => continue,
                },
                3 => match key {
                    "msg" => Slot::Msg,
                    "dir" => Slot::Dir,
                    "run" => Slot::Run,
                    _ => continue,
                },
                4 => match key {
                    "type" => Slot::Kind,
                    "kind" => Slot::ToolKind,
                    "name" => Slot::Name,
                    _ => continue,
                },
                5 => match key {
                    "title" => Slot::Title,
                    "_meta" => Slot::Meta,
                    "error" => Slot::Error,
                    _ => continue,
                },
                6 => match key {
                    "status" => Slot::Status,
                    "method" => Slot::Method,
                    "params" => Slot::Params,
                    "result" => Slot::Result,
                    "update" => Slot::Update,
                    _ => continue,
                },
                7 => match key {
                    "content" => Slot::Content,
                    _ => continue,
                },
                8 => match key {
                    "rawInput" => Slot::Input,
                    "toolName" => Slot::ToolName,
                    _ => continue,
                },
                9 => match key {
                    "raw_input" => Slot::Input,
                    "rawOutput" => Slot::Output,
                    "locations" => Slot::Locations,
                    "messageId" => Slot::MessageId,
                    "tool_name" => Slot::ToolName,
                    "timestamp" => Slot::Time,
                    _ => continue,
                },
                10 => match key {
                    "toolCallId" => Slot::CallId,
                    "raw_output" => Slot::Output,
                    "message_id" => Slot::MessageId,
                    _ => continue,
                },
                12 => match key {
                    "tool_call_id" => Slot::CallId,
                    _ => continue,
                },
                13 => match key {
                    "sessionUpdate" => Slot::SessionUpdate,
                    _ => continue,
                },
                14 => match key {
                    "session_update" => Slot::SessionUpdate,
                    _ => continue,
                },
                15 => match key {
                    "messageMetadata" => Slot::Stored,
                    _ => continue,
                },
                16 => match key {
                    "message_metadata" => Slot::Stored,
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

    fn slot(&self, slot: Slot) -> Option<Json<'a>> {
        let node = self.nodes[slot as usize];
        (node != 0).then(|| self.object.with_node(node))
    }

    pub(super) fn msg(&self) -> Option<Json<'a>> {
        self.slot(Slot::Msg)
    }

    pub(super) fn dir(&self) -> Option<Json<'a>> {
        self.slot(Slot::Dir)
    }

    pub(super) fn run(&self) -> Option<Json<'a>> {
        self.slot(Slot::Run)
    }

    pub(super) fn time(&self) -> Option<Json<'a>> {
        self.slot(Slot::Time)
    }

    pub(super) fn stored(&self) -> Option<Json<'a>> {
        self.slot(Slot::Stored).filter(|s| s.kind() == Kind::Object)
    }

    pub(super) fn id(&self) -> Option<Json<'a>> {
        self.slot(Slot::Id)
    }

    pub(super) fn method(&self) -> Option<Json<'a>> {
        self.slot(Slot::Method)
    }

    pub(super) fn params(&self) -> Option<Json<'a>> {
        self.slot(Slot::Params)
    }

    pub(super) fn result(&self) -> Option<Json<'a>> {
        self.slot(Slot::Result)
    }

    pub(super) fn error(&self) -> Option<Json<'a>> {
        self.slot(Slot::Error)
    }

    pub(super) fn update(&self) -> Option<Json<'a>> {
        self.slot(Slot::Update)
    }

    pub(super) fn kind(&self) -> Option<Json<'a>> {
        self.slot(Slot::Kind)
    }

    pub(super) fn session_update(&self) -> Option<Json<'a>> {
        self.slot(Slot::SessionUpdate)
    }

    pub(super) fn content(&self) -> Option<Json<'a>> {
        self.slot(Slot::Content)
    }

    pub(super) fn meta(&self) -> Option<Json<'a>> {
        self.slot(Slot::Meta)
    }

    pub(super) fn message_id(&self) -> Option<Json<'a>> {
        self.slot(Slot::MessageId)
    }

    pub(super) fn call_id(&self) -> Option<Json<'a>> {
        self.slot(Slot::CallId)
    }

    pub(super) fn tool_name(&self) -> Option<Json<'a>> {
        self.slot(Slot::ToolName)
    }

    pub(super) fn name(&self) -> Option<Json<'a>> {
        self.slot(Slot::Name)
    }

    pub(super) fn title(&self) -> Option<Json<'a>> {
        self.slot(Slot::Title)
    }

    pub(super) fn tool_kind(&self) -> Option<Json<'a>> {
        self.slot(Slot::ToolKind)
    }

    pub(super) fn status(&self) -> Option<Json<'a>> {
        self.slot(Slot::Status)
    }

    pub(super) fn input(&self) -> Option<Json<'a>> {
        self.slot(Slot::Input)
    }

    pub(super) fn output(&self) -> Option<Json<'a>> {
        self.slot(Slot::Output)
    }

    pub(super) fn locations(&self) -> Option<Json<'a>> {
        self.slot(Slot::Locations)
    }
}
