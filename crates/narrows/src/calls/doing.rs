//! What agents are doing: which calls were heard of.

use super::Calls;
use crate::sanitize::Clean;
use crate::tool::{ToolKind, ToolStatus};

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
            let call = &self.calls.get(&id)?.known;
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
            Some(Doing { id: id.as_str().to_owned(), words, may_write, ended })
        };
        ids.into_iter().filter_map(doing).collect()
    }
}
