//! Detects the end of a replay when an agent loads a session.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Probes after which a replay counts as finished.
const MAX_PROBES: u32 = 100_000;

/// Filters the updates of a session that is being loaded: the log has them already, except for a session
/// that was begun elsewhere.
///
/// Some agents answer `session/load` before they replay (Gemini CLI). A probe sent then is answered between
/// two updates or after the last one: if no update came before the response, the replay is over. A "method
/// not found" error is a response, too.
#[derive(Debug, Default)]
pub(super) struct ReplayFilter {
    is_active: bool,
    /// Replayed updates are logged.
    is_kept: bool,
    /// The response to `session/load`.
    loaded: Option<Value>,
    /// Whether an update came since the last probe.
    has_update: bool,
    probes: u32,
}

impl ReplayFilter {
    pub(super) const METHOD: &str = "_narrows/is_quiet";

    pub(super) fn begin(&mut self, is_kept: bool) {
        *self = ReplayFilter { is_active: true, is_kept, ..ReplayFilter::default() };
    }

    pub(super) fn end(&mut self) {
        *self = ReplayFilter::default();
    }

    /// Whether incoming lines are not logged.
    pub(super) fn drops_updates(&self) -> bool {
        self.is_active && !self.is_kept
    }

    /// Processes an update; returns whether to log it.
    pub(super) fn should_log(&mut self, params: Option<&RawValue>) -> bool {
        let should_log = !self.is_active || self.loaded.is_some() && !is_conversation(params);
        self.has_update |= !should_log;
        should_log || self.is_kept
    }

    /// Notes the response to `session/load` with the session id.
    pub(super) fn loaded(&mut self, result: Value, native: Option<String>) {
        let mut result = if result.is_object() { result } else { json!({}) };
        if let (Some(native), Some(map)) = (native, result.as_object_mut()) {
            map.entry("sessionId").or_insert(native.into());
        }
        self.loaded = Some(result);
        self.has_update = false;
    }

    /// Handles the response to a probe; returns the load response once nothing more comes.
    pub(super) fn finish_if_quiet(&mut self) -> Option<Value> {
        self.probes += 1;
        if std::mem::take(&mut self.has_update) && self.probes < MAX_PROBES {
            return None;
        }
        let loaded = self.loaded.take().unwrap_or_default();
        self.end();
        Some(loaded)
    }
}

/// Returns whether an update is part of the conversation.
pub(super) fn is_conversation(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        update: Update<'a>,
    }
    #[derive(Deserialize)]
    struct Update<'a> {
        #[serde(borrow, rename = "sessionUpdate")]
        kind: Cow<'a, str>,
    }
    let params = params.and_then(|p| serde_json::from_str::<Params<'_>>(p.get()).ok());
    params
        .is_none_or(|p| !p.update.kind.ends_with("_update") || p.update.kind == "tool_call_update")
}

#[cfg(test)]
mod tests {
    use super::super::Acp;
    use crate::run::driver::{Effect, SessionStart};
    use serde_json::{Value, json};

    /// The requests to the agent: method and id.
    fn requests(effects: &[Effect]) -> Vec<(String, u64)> {
        let line = |effect: &Effect| match effect {
            Effect::Send(line) | Effect::SendUnlogged(line) => {
                serde_json::from_str::<Value>(line).ok()
            }
            _ => None,
        };
        let of = |m: Value| Some((m["method"].as_str()?.to_owned(), m["id"].as_u64()?));
        effects.iter().filter_map(line).filter_map(of).collect()
    }

    fn loading() -> (Acp, u64) {
        let mut acp = Acp::new(SessionStart {
            run: "r2".to_owned(),
            cwd: "/work".to_owned(),
            native: Some("ses_1".to_owned()),
            resume: true,
            ..SessionStart::default()
        });
        let id = requests(&acp.start())[0].1;
        let can = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
        let output = acp.on_line(json!({"id": id, "result": can}).to_string().as_bytes());
        let [(method, id)] = &requests(&output.effects)[..] else { panic!("one request") };
        assert_eq!(method, "session/load");
        (acp, *id)
    }

    fn update(acp: &mut Acp, kind: &str) -> bool {
        let update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": "old"}});
        let params = json!({"sessionId": "ses_1", "update": update});
        acp.on_line(json!({"method": "session/update", "params": params}).to_string().as_bytes())
            .log
    }

    #[test]
    fn replay_after_load_response_is_not_logged() {
        let (mut acp, id) = loading();
        assert!(!update(&mut acp, "user_message_chunk"));
        let output = acp.on_line(json!({"id": id, "result": {}}).to_string().as_bytes());
        assert!(output.log, "the response is logged");
        assert!(!output.effects.contains(&Effect::Ready));
        let id = requests(&output.effects)[0].1;
        for kind in ["agent_message_chunk", "tool_call", "tool_call_update", "plan"] {
            assert!(!update(&mut acp, kind), "{kind}");
        }
        assert!(update(&mut acp, "available_commands_update"));

        let error = json!({"code": -32601, "message": "Method not found"});
        let output = acp.on_line(json!({"id": id, "error": error}).to_string().as_bytes());
        assert!(
            !output.log && !output.effects.contains(&Effect::Ready),
            "an update came meanwhile"
        );
        let id = requests(&output.effects)[0].1;
        let output = acp.on_line(json!({"id": id, "error": error}).to_string().as_bytes());
        assert!(!output.log && output.effects.contains(&Effect::Ready));
        assert!(output.effects.contains(&Effect::AgentSessionId("ses_1".to_owned())));
        assert!(update(&mut acp, "agent_message_chunk"), "new updates are logged");
    }

    #[test]
    fn load_without_replay_is_ready() {
        let (mut acp, id) = loading();
        let output = acp.on_line(json!({"id": id, "result": null}).to_string().as_bytes());
        let id = requests(&output.effects)[0].1;
        let output = acp.on_line(json!({"id": id, "result": {}}).to_string().as_bytes());
        assert!(output.effects.contains(&Effect::Ready));
    }
}
