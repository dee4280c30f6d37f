//! What agents are doing: which calls were heard of.

use super::Calls;
use crate::model::tool::{ToolKind, ToolStatus};
use crate::sanitize::Clean;

/// What a call is about, for whoever wants to know what an agent is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// The call.
    pub id: String,
    /// Its command and its file, or its arguments.
    pub words: String,
    /// Whether it may change files.
    pub may_write: bool,
    /// Whether it has ended.
    pub ended: bool,
}

impl Calls {
    /// The calls that something was heard of since this was asked last.
    pub(crate) fn heard(&mut self) -> Vec<Doing> {
        let ids = std::mem::take(&mut self.heard);
        let doing = |id: Clean| {
            let Some(state) = self.calls.get_mut(&id) else {
                // It is known no more because it ended, and many after it.
                let (id, words) = (id.as_str().to_owned(), String::new());
                return Doing { id, words, may_write: true, ended: true };
            };
            state.heard = false;
            let call = &state.known;
            let words = [call.command.as_ref(), call.file_path.as_ref()];
            let mut words =
                words.into_iter().flatten().map(Clean::as_str).collect::<Vec<_>>().join(" ");
            if words.trim().is_empty() {
                words = call.input.as_ref().map_or(String::new(), |input| input.json().to_owned());
            }
            let may_write = !matches!(
                call.kind,
                ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Think
            );
            let ended = call.status.is_some_and(ToolStatus::is_final);
            Doing { id: id.as_str().to_owned(), words, may_write, ended }
        };
        ids.into_iter().map(doing).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::ENDED_CALLS;
    use crate::{Config, Format, Packets, Pipeline};

    /// One call from its beginning to its end, as an agent tells it.
    fn call(n: usize, ends: bool) -> String {
        let update = |kind: &str, more: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}","toolCallId":"c{n}",{more}}}}}}}"#
            ) + "\n"
        };
        let command = format!(r#""kind":"execute","rawInput":{{"command":"make part-{n}"}}"#);
        let mut told = update("tool_call", &command);
        if ends {
            told += &update("tool_call_update", r#""status":"completed""#);
        }
        told
    }

    #[test]
    fn the_last_calls_are_heard_of_however_many_there_were() {
        let mut pipeline = Pipeline::new(Config { format: Format::Acp, ..Config::default() });
        let mut packets = Packets::new(1 << 20);
        let mut steps = Vec::new();
        let mut read = |pipeline: &mut Pipeline, text: &str| {
            packets.push(text.as_bytes(), |given| pipeline.push(given, &mut steps));
        };
        let many = 3 * ENDED_CALLS;
        let all: String = (0..many).map(|n| call(n, true)).collect();
        read(&mut pipeline, &(all + &call(many, false)));
        let heard = pipeline.heard();
        let last = heard.last().expect("the last one");
        assert_eq!((last.id.as_str(), last.ended), (format!("c{many}").as_str(), false));
        let before = &heard[heard.len() - 2];
        assert_eq!(before.words.trim(), format!("make part-{}", many - 1));
        assert!(before.ended && before.may_write);
        assert!(pipeline.heard().is_empty());
        // News of it are heard again, once.
        let end = call(many, true);
        read(&mut pipeline, &end);
        let heard = pipeline.heard();
        assert_eq!(heard.len(), 1);
        assert!(heard[0].ended, "{heard:?}");
    }
}
