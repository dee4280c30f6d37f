//! Merges of tool call updates into the state of a call.
//!
//! Light fields are part of every event of a call; heavy ones only when they change and in the event
//! that ends the call.

use super::ToolCall;
use crate::sanitize::Clean;

/// The set of fields that an event changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangedFields(u32);

/// Generates the code for all fields that merge alike: a new value replaces the old one.
macro_rules! merged_fields {
    (light $($light:ident)*; heavy $($heavy:ident)*) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types, reason = "the names of the fields")]
        enum FieldBit { $($light,)* $($heavy,)* tool, output, bit_count }

        impl ToolCall<Clean> {
            /// Merges an update and returns the changed fields. Leaves the output and the identity
            /// of the tool alone.
            pub(crate) fn merge(&mut self, update: ToolCall<Clean>) -> ChangedFields {
                let mut changed = 0;
                $(if update.$light.is_some() && self.$light != update.$light {
                    self.$light = update.$light;
                    changed |= 1 << FieldBit::$light as u32;
                })*
                $(if update.$heavy.is_some() && self.$heavy != update.$heavy {
                    self.$heavy = update.$heavy;
                    changed |= 1 << FieldBit::$heavy as u32;
                })*
                ChangedFields(changed)
            }

            /// Copies every light field and the heavy ones in `changed`.
            pub(crate) fn light_and(&self, changed: ChangedFields) -> ToolCall<Clean> {
                let mut out = self.identity();
                $(out.$light.clone_from(&self.$light);)*
                $(if changed.has(FieldBit::$heavy) { out.$heavy.clone_from(&self.$heavy); })*
                out
            }

            /// Copies the fields in `changed` alone.
            pub(crate) fn diff_of(&self, changed: ChangedFields) -> ToolCall<Clean> {
                let mut out = self.identity();
                $(if changed.has(FieldBit::$light) { out.$light.clone_from(&self.$light); })*
                $(if changed.has(FieldBit::$heavy) { out.$heavy.clone_from(&self.$heavy); })*
                out
            }

            /// Drops the heavy fields and the output.
            pub(crate) fn drop_heavy(&mut self) {
                $(self.$heavy = None;)*
                self.output = None;
            }
        }
    };
}

merged_fields! {
    light status name raw_kind agent_title title description said command file_path pattern
        subagent_type child_session_id exit_code is_new_file truncated count duration_ms permission;
    heavy input error old_content new_content diffs todos task_output plan images locations diagnostics
}

const _: () = assert!((FieldBit::bit_count as u32) < 32);

impl ToolCall<Clean> {
    /// Copies what the call is about to do: the fields that a permission decision needs.
    pub(crate) fn for_permission(&self) -> ToolCall<Clean> {
        let mut out = self.light_and(ChangedFields::default());
        out.plan.clone_from(&self.plan);
        out.input.clone_from(&self.input);
        out.diffs.clone_from(&self.diffs);
        out
    }

    fn identity(&self) -> ToolCall<Clean> {
        ToolCall {
            tool_name: self.tool_name,
            kind: self.kind,
            is_todo: self.is_todo,
            ..ToolCall::default()
        }
    }
}

impl ChangedFields {
    fn has(self, bit: FieldBit) -> bool {
        self.0 & (1 << bit as u32) != 0
    }

    /// Whether no field changed.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn mark_tool(&mut self) {
        self.0 |= 1 << FieldBit::tool as u32;
    }

    pub(crate) fn mark_output(&mut self) {
        self.0 |= 1 << FieldBit::output as u32;
    }

    pub(crate) fn without_output(self) -> ChangedFields {
        ChangedFields(self.0 & !(1 << FieldBit::output as u32))
    }

    pub(crate) fn has_output(self) -> bool {
        self.has(FieldBit::output)
    }

    pub(crate) fn union(self, other: ChangedFields) -> ChangedFields {
        ChangedFields(self.0 | other.0)
    }
}
