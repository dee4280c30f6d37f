//! Whether an agent that loads a session has replayed it to the end.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Requests after which a replay is taken for over.
const MAX_ASKED: u32 = 100_000;

/// A session that is loaded, and what the agent says of it meanwhile: the log has that already, but
/// for a session that was begun elsewhere.
///
/// Some agents answer `session/load` first and replay then (Gemini CLI). Whatever they are asked now
/// is answered between two updates, or after the last one: when none came before the answer, the
/// replay is over. That nobody knows the method is an answer, too.
#[derive(Debug, Default)]
pub(super) struct Replay {
    on: bool,
    /// What is said is kept.
    kept: bool,
    /// The answer to `session/load`.
    loaded: Option<Value>,
    /// Whether something came since the agent was last asked.
    heard: bool,
    asked: u32,
}

impl Replay {
    pub(super) const METHOD: &str = "_narrows/is_quiet";

    pub(super) fn begin(&mut self, kept: bool) {
        *self = Replay { on: true, kept, ..Replay::default() };
    }

    pub(super) fn end(&mut self) {
        *self = Replay::default();
    }

    /// Whether what comes is not kept.
    pub(super) fn is_dropped(&self) -> bool {
        self.on && !self.kept
    }

    /// Takes an update; whether it is to be kept.
    pub(super) fn passes(&mut self, params: Option<&RawValue>) -> bool {
        let passes = !self.on || self.loaded.is_some() && !is_said(params);
        self.heard |= !passes;
        passes || self.kept
    }

    /// The agent has loaded the session of this id.
    pub(super) fn loaded(&mut self, result: Value, native: Option<String>) {
        let mut result = if result.is_object() { result } else { json!({}) };
        if let (Some(native), Some(map)) = (native, result.as_object_mut()) {
            map.entry("sessionId").or_insert(native.into());
        }
        self.loaded = Some(result);
        self.heard = false;
    }

    /// The agent has answered; what it said of the session when nothing more comes.
    pub(super) fn is_over(&mut self) -> Option<Value> {
        self.asked += 1;
        if std::mem::take(&mut self.heard) && self.asked < MAX_ASKED {
            return None;
        }
        let loaded = self.loaded.take().unwrap_or_default();
        self.end();
        Some(loaded)
    }
}

/// Whether an update is part of the conversation.
pub(super) fn is_said(params: Option<&RawValue>) -> bool {
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
    use super::super::super::driver::{Effect, Opening};
    use super::super::Acp;
    use serde_json::{Value, json};

    /// What is asked of the agent, by method and id.
    fn asked(effects: &[Effect]) -> Vec<(String, u64)> {
        let line = |effect: &Effect| match effect {
            Effect::Send(line) | Effect::Tell(line) => serde_json::from_str::<Value>(line).ok(),
            _ => None,
        };
        let of = |m: Value| Some((m["method"].as_str()?.to_owned(), m["id"].as_u64()?));
        effects.iter().filter_map(line).filter_map(of).collect()
    }

    fn loading() -> (Acp, u64) {
        let mut acp = Acp::new(Opening {
            run: "r2".to_owned(),
            cwd: "/work".to_owned(),
            native: Some("ses_1".to_owned()),
            resume: true,
            ..Opening::default()
        });
        let id = asked(&acp.start())[0].1;
        let can = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
        let heard = acp.hear(json!({"id": id, "result": can}).to_string().as_bytes());
        let [(method, id)] = &asked(&heard.effects)[..] else { panic!("one request") };
        assert_eq!(method, "session/load");
        (acp, *id)
    }

    fn update(acp: &mut Acp, kind: &str) -> bool {
        let update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": "old"}});
        let params = json!({"sessionId": "ses_1", "update": update});
        acp.hear(json!({"method": "session/update", "params": params}).to_string().as_bytes()).log
    }

    #[test]
    fn what_is_replayed_after_the_answer_is_not_kept_either() {
        let (mut acp, id) = loading();
        assert!(!update(&mut acp, "user_message_chunk"));
        let heard = acp.hear(json!({"id": id, "result": {}}).to_string().as_bytes());
        assert!(heard.log, "the answer itself is kept");
        assert!(!heard.effects.contains(&Effect::Ready));
        let id = asked(&heard.effects)[0].1;
        for kind in ["agent_message_chunk", "tool_call", "tool_call_update", "plan"] {
            assert!(!update(&mut acp, kind), "{kind}");
        }
        assert!(update(&mut acp, "available_commands_update"));

        let error = json!({"code": -32601, "message": "Method not found"});
        let heard = acp.hear(json!({"id": id, "error": error}).to_string().as_bytes());
        assert!(!heard.log && !heard.effects.contains(&Effect::Ready), "something came meanwhile");
        let id = asked(&heard.effects)[0].1;
        let heard = acp.hear(json!({"id": id, "error": error}).to_string().as_bytes());
        assert!(!heard.log && heard.effects.contains(&Effect::Ready));
        assert!(heard.effects.contains(&Effect::Native("ses_1".to_owned())));
        assert!(update(&mut acp, "agent_message_chunk"), "what is new is kept");
    }

    #[test]
    fn an_agent_may_load_without_a_word() {
        let (mut acp, id) = loading();
        let heard = acp.hear(json!({"id": id, "result": null}).to_string().as_bytes());
        let id = asked(&heard.effects)[0].1;
        let heard = acp.hear(json!({"id": id, "result": {}}).to_string().as_bytes());
        assert!(heard.effects.contains(&Effect::Ready));
    }
}
