//! Reports which calls were updated, for a view of what an agent is doing right now.

use super::ToolCallTracker;
use crate::model::tool::{ToolKind, ToolStatus};
use crate::sanitize::Clean;

/// An updated call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallActivity {
    /// Id of the call.
    pub id: String,
    /// Its command and its file, or its arguments as JSON.
    pub words: String,
    /// Whether it may change files.
    pub may_write: bool,
    /// Whether it has ended.
    pub ended: bool,
}

impl ToolCallTracker {
    /// Takes the calls that were updated since the last call of this function: at most
    /// [`MAX_UPDATED_CALLS`](super::MAX_UPDATED_CALLS), oldest first.
    pub(crate) fn take_updated(&mut self) -> Vec<CallActivity> {
        let ids = std::mem::take(&mut self.updated);
        ids.into_iter().map(|id| self.activity_of(&id)).collect()
    }

    fn activity_of(&mut self, id: &Clean) -> CallActivity {
        let Some(state) = self.calls.get_mut(id) else {
            // Evicted: it ended, and many calls after it.
            let (id, words) = (id.as_str().to_owned(), String::new());
            return CallActivity { id, words, may_write: true, ended: true };
        };
        state.is_updated = false;
        let call = &state.call;
        let subjects = [call.command.as_ref(), call.file_path.as_ref()];
        let subjects: Vec<&str> = subjects.into_iter().flatten().map(Clean::as_str).collect();
        let mut words = subjects.join(" ");
        if words.trim().is_empty() {
            words = call.input.as_ref().map_or(String::new(), |input| input.json().to_owned());
        }
        let may_write = !matches!(
            call.kind,
            ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Think
        );
        let ended = call.status.is_some_and(ToolStatus::is_final);
        CallActivity { id: id.as_str().to_owned(), words, may_write, ended }
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::MAX_ENDED_CALLS;
    use crate::{Config, Format, Packets, Pipeline};

    /// The ACP packets of one call.
    fn call(n: usize, ends: bool) -> String {
        let update = |kind: &str, more: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}","toolCallId":"c{n}",{more}}}}}}}"#
            ) + "\n"
        };
        let command = format!(r#""kind":"execute","rawInput":{{"command":"make part-{n}"}}"#);
        let mut packets = update("tool_call", &command);
        if ends {
            packets += &update("tool_call_update", r#""status":"completed""#);
        }
        packets
    }

    #[test]
    fn take_updated_after_many_calls_returns_the_newest() {
        let mut pipeline = Pipeline::new(Config { format: Format::Acp, ..Config::default() });
        let mut packets = Packets::new(1 << 20);
        let mut steps = Vec::new();
        let mut read = |pipeline: &mut Pipeline, text: &str| {
            packets.push(text.as_bytes(), |framed| pipeline.push(framed, &mut steps));
        };
        let many = 3 * MAX_ENDED_CALLS;
        let all: String = (0..many).map(|n| call(n, true)).collect();
        read(&mut pipeline, &(all + &call(many, false)));
        let updated = pipeline.heard();
        let last = updated.last().expect("a call");
        assert_eq!((last.id.as_str(), last.ended), (format!("c{many}").as_str(), false));
        let before = &updated[updated.len() - 2];
        assert_eq!(before.words.trim(), format!("make part-{}", many - 1));
        assert!(before.ended && before.may_write);
        assert!(pipeline.heard().is_empty());
        // A later update reports the call again, once.
        let end = call(many, true);
        read(&mut pipeline, &end);
        let updated = pipeline.heard();
        assert_eq!(updated.len(), 1);
        assert!(updated[0].ended, "{updated:?}");
    }
}
