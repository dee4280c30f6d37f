//! The ends of turns, and what they used.

use super::attachment::turns_over;
use super::cut::is_failed;
use super::record::Record;
use super::{Claude, unknown};
use crate::adapter::{Yield, stops};
use crate::event::{AnswerUsage, Body, Event, Gauge, Response, Usage};
use crate::id::EventId;
use crate::json::{Index, Json, Kind};
use crate::packet::Packet;
use crate::sanitize::Raw;
use crate::session::SessionInfo;
use std::collections::VecDeque;

/// Messages whose request is remembered.
const MAX_REQUESTS: usize = 16;

/// The usage that was told last: an answer repeats its own with every block.
#[derive(Debug, Default)]
pub(super) struct LastUsage {
    message: String,
    request: Option<String>,
    model: Option<String>,
    /// The requests of the last few messages.
    requests: VecDeque<(String, String)>,
    /// As it was written.
    raw: String,
    usage: Usage,
    cost: Option<f64>,
}

impl LastUsage {
    /// What was told before the reader began.
    pub(super) fn recall(&mut self, info: &SessionInfo) {
        for answer in info.ledger.recent() {
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

impl Claude {
    /// A record of a subagent that nobody asked for: it is not seen, but what it used was paid for.
    pub(super) fn unasked(&mut self, r: &Record<'_>, out: &mut Yield) {
        let before = out.events.len();
        if let Some(message) = r.message.id.and_then(Json::str)
            && r.kind.as_deref() == Some("assistant")
            && !r.message.is_synthetic()
        {
            let usage = r.message.usage.filter(|u| u.kind() == Kind::Object);
            let agent = r.agent.and_then(Json::str).unwrap_or_default();
            self.used(&message, (r.request, r.message.model), usage, Some(&Raw::new(agent)), out);
        }
        out.quiet += u64::from(out.events.len() == before);
    }

    /// What one answer of the model used; where it is told, which request and model gave it.
    pub(super) fn used(
        &mut self,
        message: &str,
        (request, model): (Option<Json<'_>>, Option<Json<'_>>),
        usage: Option<Json<'_>>,
        parent: Option<&Raw>,
        out: &mut Yield,
    ) {
        let Some(given) = usage else { return };
        let last = &mut self.usage;
        let same = last.message == message;
        // Every block repeats it.
        if same && last.raw == given.raw() {
            return;
        }
        given.raw().clone_into(&mut last.raw);
        let session = self.info.model.as_ref().map(Raw::peek);
        let model = model.and_then(Json::owned);
        let model = model.filter(|m| !m.starts_with('<') && session != Some(m));
        let model = model.or_else(|| last.model.clone().filter(|_| same));
        let mut usage = tokens(given);
        if same {
            usage = filled(&usage, &last.usage);
        }
        // The pieces of a message do not tell the request: it is that of the whole block.
        let known = last.requests.iter().rev().find(|(m, _)| m == message).map(|(_, r)| r.clone());
        let request = request.and_then(Json::owned);
        if let Some(request) = request.as_ref().filter(|r| known.as_ref() != Some(r)) {
            last.requests.push_back((message.to_owned(), request.clone()));
            if last.requests.len() > MAX_REQUESTS {
                last.requests.pop_front();
            }
        }
        let request = request.or(known);
        if same && last.usage == usage && last.request == request {
            return;
        }
        message.clone_into(&mut last.message);
        last.request.clone_from(&request);
        last.model.clone_from(&model);
        last.usage = usage.clone();
        let context = [usage.input_tokens, usage.cached_read_tokens, usage.cached_write_tokens];
        let used = context.iter().flatten().sum();
        let answer = AnswerUsage {
            message_id: Raw::new(message),
            request_id: request.map(Raw::new),
            model: model.map(Raw::new),
            usage,
        };
        let gauge = Gauge { used: Some(used), answer: Some(answer), ..Gauge::default() };
        out.push_in(parent.cloned(), Body::Usage(Box::new(gauge)));
    }

    /// What the session cost so far, as it is kept.
    pub(super) fn cost(&mut self, object: Json<'_>, out: &mut Yield) {
        let cost = object.get("totalCostUSD").and_then(Json::f64);
        if cost.is_none() || cost == self.usage.cost {
            out.quiet += 1;
            return;
        }
        self.usage.cost = cost;
        out.push(Body::Usage(Box::new(Gauge { cost_usd: cost, ..Gauge::default() })));
    }

    /// No result is kept: the last answer of a turn says that it is the last. One that was cut off or
    /// refused need not be: the program may ask for more.
    pub(super) fn kept_end(&mut self, message: &str, reason: Option<Json<'_>>, out: &mut Yield) {
        let reason = reason.and_then(Json::str);
        let Some(reason) = reason.filter(|r| matches!(&**r, "end_turn" | "stop_sequence")) else {
            return;
        };
        if self.over.as_deref() != Some(message) {
            self.over = Some(message.into());
            out.push(Body::PromptResponse(Box::new(Response {
                stop_reason: Some(Raw::new(reason)),
                ..Response::default()
            })));
        }
    }

    /// A turn that the program ended.
    pub(super) fn kept_stop(&mut self, reason: &'static str, out: &mut Yield) {
        self.over = Some("".into());
        let stop_reason = Some(Raw::new(reason));
        out.push(Body::PromptResponse(Box::new(Response { stop_reason, ..Response::default() })));
    }

    /// Something of the turn comes that is not of this message.
    pub(super) fn turn_goes_on(&mut self, message: Option<&str>, parent: Option<&Raw>) {
        if parent.is_none() {
            self.over.take_if(|over| message != Some(over));
        }
    }

    /// The end of a turn.
    pub(super) fn end(&mut self, r: &Record<'_>, object: Json<'_>, out: &mut Yield) {
        let Some(subtype) = r.subtype.as_deref() else {
            return unknown("result", object, out);
        };
        self.no_summary(out);
        let text = |name: &str| object.text(name);
        let terminal = text("terminal_reason").unwrap_or_default();
        let stop = text("stop_reason");
        let aborted = terminal.starts_with("aborted");
        let fails = is_failed(object);
        let told = || {
            let errors = object.get("errors").into_iter().flat_map(Json::items);
            errors.filter_map(Json::str).collect::<Vec<_>>().join("\n")
        };
        let mut error = None;
        let stop = match subtype {
            _ if aborted => Some("cancelled".to_owned()),
            "success" if fails => {
                error = Some(text("result").unwrap_or_default().into_owned());
                Some("error".to_owned())
            }
            "success" => {
                self.ended(stop.as_deref(), out);
                stop.map(std::borrow::Cow::into_owned)
            }
            "error_max_turns" => {
                turns_over(None, out);
                Some("max_turns".to_owned())
            }
            "error_max_budget_usd" => {
                stops::mark("max_budget").into_iter().for_each(|note| out.push(Body::Notice(note)));
                Some("max_budget".to_owned())
            }
            // Older versions say no more when the user interrupts.
            "error_during_execution" if told().is_empty() => Some("cancelled".to_owned()),
            _ if subtype.starts_with("error") => {
                error = Some(told());
                Some("error".to_owned())
            }
            other => Some(other.to_owned()),
        };
        // A failure is told also where nobody says why.
        let nothing = || format!("The turn failed: {}.", subtype.replace('_', " "));
        let error = error.map(|text| match (text.is_empty(), subtype) {
            (false, _) => text,
            (true, "success") => "The turn failed, and the agent does not say why.".to_owned(),
            (true, _) => nothing(),
        });
        let usage = object.get("usage").filter(|u| u.kind() == Kind::Object).map(tokens);
        let cost_usd = object.get("total_cost_usd").and_then(Json::f64);
        self.usage.cost = cost_usd;
        out.push(Body::PromptResponse(Box::new(Response {
            stop_reason: stop.map(Raw::new),
            usage,
            failed: self.over.take().is_some(),
            error: error.map(Raw::new),
            // Older versions tell the truth with each answer, and here add up several turns.
            settles: !self.is_old(),
            cost_usd,
            duration_ms: object.get("duration_ms").and_then(Json::u64),
        })));
    }
}

/// What a kept record says of an answer, as an event.
pub(crate) fn used_again(packet: &Packet<'_>) -> Option<Event<Raw>> {
    let mut index = Index::default();
    let doc = index.read(std::str::from_utf8(packet.bytes).ok()?.trim()).ok()?;
    let r = Record::read(doc.root());
    let usage = r.message.usage.filter(|u| u.kind() == Kind::Object)?;
    let message_id = Raw::new(r.message.id.and_then(Json::owned)?);
    if !r.kept || r.kind.as_deref() != Some("assistant") || r.message.is_synthetic() {
        return None;
    }
    let text = |json: Option<Json<'_>>| json.and_then(Json::owned).map(Raw::new);
    let (request_id, model) = (text(r.request), text(r.message.model));
    let answer = AnswerUsage { message_id, request_id, model, usage: tokens(usage) };
    let gauge = Gauge { answer: Some(answer), ..Gauge::default() };
    Some(Event {
        id: EventId::default(),
        began: EventId::default(),
        time: r.time,
        parent: (packet.parent.is_some() || r.sidechain).then(|| Raw::new("")),
        body: Body::Usage(Box::new(gauge)),
    })
}

/// What one telling leaves out was told before.
fn filled(now: &Usage, before: &Usage) -> Usage {
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

/// The tokens of an answer; the two ways of keeping what was cached are counted apart.
fn tokens(usage: Json<'_>) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Json::u64);
    let kept = |name: &str| usage.path(&["cache_creation", name]).and_then(Json::u64);
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        total_tokens: None,
        cached_read_tokens: count("cache_read_input_tokens"),
        cached_write_tokens: count("cache_creation_input_tokens"),
        cached_write_5m_tokens: kept("ephemeral_5m_input_tokens"),
        cached_write_1h_tokens: kept("ephemeral_1h_input_tokens"),
        thought_tokens: usage
            .path(&["output_tokens_details", "thinking_tokens"])
            .and_then(Json::u64),
    }
}
