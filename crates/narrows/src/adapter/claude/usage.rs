//! Token usage and cost.

use super::ClaudeParser;
use super::record::ClaudeRecord;
use crate::adapter::output::AdapterOutput;
use crate::frame::packets::Packet;
use crate::json::{Index, Json, Kind};
use crate::model::event::{Body, Event, MessageUsage, Usage, UsageUpdate};
use crate::model::id::EventId;
use crate::model::session::SessionInfo;
use crate::sanitize::Raw;
use std::collections::VecDeque;

/// The number of messages whose request id is tracked.
const MAX_REQUESTS: usize = 16;

/// The usage that was emitted last: every block of a message repeats it.
#[derive(Debug, Default)]
pub(super) struct UsageTracker {
    message: String,
    request: Option<String>,
    model: Option<String>,
    /// The request ids of the last messages.
    requests: VecDeque<(String, String)>,
    /// The JSON text of the usage.
    raw: String,
    usage: Usage,
    pub(super) cost: Option<f64>,
}

impl UsageTracker {
    /// Restores the state from the session before a restart.
    pub(super) fn restore(&mut self, info: &SessionInfo) {
        for answer in info.ledger.recent_answers() {
            self.message = answer.message_id.to_string();
            self.request = answer.request_id.as_ref().map(ToString::to_string);
            self.model = answer.model.as_ref().map(ToString::to_string);
            self.usage = answer.usage.clone();
            if let Some(request) = &self.request {
                self.requests.push_back((self.message.clone(), request.clone()));
            }
        }
        self.cost = info.cost_usd;
    }
}

impl ClaudeParser {
    /// Counts the usage of an orphan subagent, whose records are not shown.
    pub(super) fn orphan(&mut self, r: &ClaudeRecord<'_>, out: &mut AdapterOutput) {
        let before = out.events.len();
        if let Some(message) = r.message.id.and_then(Json::str)
            && r.kind.as_deref() == Some("assistant")
            && !r.message.is_synthetic()
        {
            let usage = r.message.usage.filter(|u| u.kind() == Kind::Object);
            let agent = r.agent.and_then(Json::str).unwrap_or_default();
            self.message_usage(
                &message,
                (r.request, r.message.model),
                usage,
                Some(&Raw::new(agent)),
                out,
            );
        }
        if out.events.len() == before {
            out.ignore();
        }
    }

    /// Emits the usage of one message, with its request id and model if the record has them.
    pub(super) fn message_usage(
        &mut self,
        message: &str,
        (request, model): (Option<Json<'_>>, Option<Json<'_>>),
        usage: Option<Json<'_>>,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        let Some(json) = usage else { return };
        let last = &mut self.usage;
        let is_same = last.message == message;
        // Every block repeats it.
        if is_same && last.raw == json.raw() {
            return;
        }
        json.raw().clone_into(&mut last.raw);
        let session_model = self.info.model.as_ref().map(Raw::peek);
        let model = model.and_then(Json::owned);
        let model = model.filter(|m| !m.starts_with('<') && session_model != Some(m));
        let model = model.or_else(|| last.model.clone().filter(|_| is_same));
        let mut usage = parse_usage(json);
        if is_same {
            usage = merge_usage(&usage, &last.usage);
        }
        // Streamed chunks have no request id: it is that of the complete block.
        let known = last.requests.iter().rev().find(|(m, _)| m == message).map(|(_, r)| r.clone());
        let request = request.and_then(Json::owned);
        if let Some(request) = request.as_ref().filter(|r| known.as_ref() != Some(r)) {
            last.requests.push_back((message.to_owned(), request.clone()));
            if last.requests.len() > MAX_REQUESTS {
                last.requests.pop_front();
            }
        }
        let request = request.or(known);
        if is_same && last.usage == usage && last.request == request {
            return;
        }
        message.clone_into(&mut last.message);
        last.request.clone_from(&request);
        last.model.clone_from(&model);
        last.usage = usage.clone();
        let context = [usage.input_tokens, usage.cached_read_tokens, usage.cached_write_tokens];
        let used = context.iter().flatten().sum();
        let answer = MessageUsage {
            message_id: Raw::new(message),
            request_id: request.map(Raw::new),
            model: model.map(Raw::new),
            usage,
        };
        let gauge =
            UsageUpdate { used: Some(used), answer: Some(answer), ..UsageUpdate::default() };
        out.push_in(parent.cloned(), Body::Usage(Box::new(gauge)));
    }

    /// Emits the total cost of the session, which session files record.
    pub(super) fn cost_state(&mut self, object: Json<'_>, out: &mut AdapterOutput) {
        let cost = object.get("totalCostUSD").and_then(Json::f64);
        if cost.is_none() || cost == self.usage.cost {
            out.ignore();
            return;
        }
        self.usage.cost = cost;
        out.push(Body::Usage(Box::new(UsageUpdate { cost_usd: cost, ..UsageUpdate::default() })));
    }
}

/// Returns the usage in a record of a session file as an event.
pub(crate) fn recorded_usage(packet: &Packet<'_>) -> Option<Event<Raw>> {
    let mut index = Index::default();
    let doc = index.read(std::str::from_utf8(packet.bytes).ok()?.trim()).ok()?;
    let r = ClaudeRecord::read(doc.root());
    let usage = r.message.usage.filter(|u| u.kind() == Kind::Object)?;
    let message_id = Raw::new(r.message.id.and_then(Json::owned)?);
    if !r.is_history || r.kind.as_deref() != Some("assistant") || r.message.is_synthetic() {
        return None;
    }
    let text = |json: Option<Json<'_>>| json.and_then(Json::owned).map(Raw::new);
    let (request_id, model) = (text(r.request), text(r.message.model));
    let answer = MessageUsage { message_id, request_id, model, usage: parse_usage(usage) };
    let gauge = UsageUpdate { answer: Some(answer), ..UsageUpdate::default() };
    Some(Event {
        id: EventId::default(),
        began: EventId::default(),
        time: r.time,
        parent: (packet.parent.is_some() || r.is_sidechain).then(|| Raw::new("")),
        body: Body::Usage(Box::new(gauge)),
    })
}

/// Fills the counts that are missing in `now` from those of `before`.
fn merge_usage(now: &Usage, before: &Usage) -> Usage {
    Usage {
        input_tokens: now.input_tokens.or(before.input_tokens),
        output_tokens: now.output_tokens.or(before.output_tokens),
        total_tokens: now.total_tokens.or(before.total_tokens),
        cached_read_tokens: now.cached_read_tokens.or(before.cached_read_tokens),
        cached_write_tokens: now.cached_write_tokens.or(before.cached_write_tokens),
        cached_write_5m_tokens: now.cached_write_5m_tokens.or(before.cached_write_5m_tokens),
        cached_write_1h_tokens: now.cached_write_1h_tokens.or(before.cached_write_1h_tokens),
        thought_tokens: now.thought_tokens.or(before.thought_tokens),
    }
}

/// Parses token counts; writes to the 5-minute and the 1-hour cache are also counted separately.
pub(super) fn parse_usage(usage: Json<'_>) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Json::u64);
    let cache_write = |name: &str| usage.path(&["cache_creation", name]).and_then(Json::u64);
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        total_tokens: None,
        cached_read_tokens: count("cache_read_input_tokens"),
        cached_write_tokens: count("cache_creation_input_tokens"),
        cached_write_5m_tokens: cache_write("ephemeral_5m_input_tokens"),
        cached_write_1h_tokens: cache_write("ephemeral_1h_input_tokens"),
        thought_tokens: usage
            .path(&["output_tokens_details", "thinking_tokens"])
            .and_then(Json::u64),
    }
}
