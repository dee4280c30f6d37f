//! The session header: agent, directory, version, model, mode, title.

use super::ClaudeParser;
use super::record::ClaudeRecord;
use crate::adapter::output::AdapterOutput;
use crate::json::Json;
use crate::model::event::{Body, SessionUpdate};
use crate::sanitize::Raw;

impl ClaudeParser {
    /// Emits the fields of the session that a record contains besides its content.
    pub(super) fn read_context(
        &mut self,
        r: &ClaudeRecord<'_>,
        in_subagent: bool,
        out: &mut AdapterOutput,
    ) {
        if in_subagent || r.kind.as_deref() == Some("stream_event") {
            // A subagent works in the directory of the session; its records may come first.
            if self.info.cwd.is_none() {
                out.add_working_dirs(r.cwd.and_then(Json::str).map(Raw::new));
            }
            return;
        }
        let known = &self.info;
        // Nearly every record repeats the known values.
        let changed = |known: &Option<Raw>, json: Option<Json<'_>>| {
            let text = json.and_then(Json::str)?;
            let is_same = known.as_ref().is_some_and(|k| k.peek() == text);
            (!is_same && !text.is_empty()).then(|| Raw::new(text))
        };
        let model = r.message.model.filter(|m| !m.raw().starts_with('<'));
        let update = SessionUpdate {
            agent: known.agent.is_none().then(|| Raw::new("Claude Code")),
            // The first directory is the session's: the agent may change directories in it.
            cwd: changed(&known.cwd, r.cwd).filter(|_| known.cwd.is_none()),
            version: changed(&known.version, r.version),
            native_id: changed(&known.native_id, r.session),
            mode: changed(&known.mode, r.mode),
            model: changed(&known.model, model),
            ..SessionUpdate::default()
        };
        if update != SessionUpdate::default() {
            self.update_info(update, out);
        }
    }

    /// Whether the program's version is below 2.1.
    pub(super) fn is_before_2_1(&self) -> bool {
        let version = self.info.version.as_ref().map(Raw::peek).unwrap_or_default();
        version.starts_with("2.0.") || version.starts_with("1.") || version.starts_with("0.")
    }

    /// Emits the fields of `update` that differ from the known ones.
    pub(super) fn update_info(&mut self, mut update: SessionUpdate<Raw>, out: &mut AdapterOutput) {
        let known = &mut self.info;
        let mut has_changed = false;
        let pairs = [
            (&mut known.agent, &mut update.agent),
            (&mut known.cwd, &mut update.cwd),
            (&mut known.version, &mut update.version),
            (&mut known.native_id, &mut update.native_id),
            (&mut known.mode, &mut update.mode),
            (&mut known.model, &mut update.model),
            (&mut known.title, &mut update.title),
            (&mut known.status, &mut update.status),
        ];
        for (known, new) in pairs {
            if new.is_some() && known != new {
                known.clone_from(new);
                has_changed = true;
            } else {
                *new = None;
            }
        }
        if update.commands.is_some() && known.commands != update.commands {
            known.commands.clone_from(&update.commands);
            has_changed = true;
        } else {
            update.commands = None;
        }
        if has_changed {
            out.push(Body::SessionInfo(Box::new(update)));
        }
    }
}
