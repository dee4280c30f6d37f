//! Sums of a session that is being written: its times, active time, token usage and cost.

use narrows::event::{AnswerUsage, Body, Event, Usage};
use narrows::session::SessionInfo;
use narrows_store::{Append, UsageRow};

/// A longer gap between two events does not count as active time.
const MAX_GAP_MS: i64 = 5 * 60 * 1000;
const HOUR_MS: i64 = 3600 * 1000;
/// Less active time waits for more: not every packet of a stream costs a row.
const MIN_ACTIVE_MS: u64 = 1000;

/// The sums that are not written yet.
#[derive(Debug, Default)]
pub(super) struct SessionAccounting {
    /// The time of the newest event.
    last_event_ms: Option<i64>,
    /// The cost of the session so far.
    cost: Option<f64>,
    /// Active milliseconds by hour, as far as they are not written yet.
    active: Vec<(i64, u64)>,
    /// Final usage of answers that were read before.
    replayed_usage: Vec<UsageRow>,
}

impl SessionAccounting {
    /// Adds the event `seq`; `info` is the session header before it, `kept` whether its agent keeps a
    /// file with it.
    pub(super) fn add(
        &mut self,
        session: &str,
        seq: u64,
        event: &Event,
        (info, kept): (&SessionInfo, bool),
        append: &mut Append,
    ) {
        let at = event.time.as_ref().map(narrows::time::Time::millis);
        if let Some(at) = at {
            let (first, last) = append.times.unwrap_or((at, at));
            append.times = Some((first.min(at), last.max(at)));
            self.add_active(at);
        }
        let model = || info.model.as_ref().map(|m| m.as_str().to_owned());
        let mut cost = None;
        match &event.body {
            Body::Usage(gauge) => {
                cost = gauge.cost_usd;
                if let Some(answer) = &gauge.answer {
                    let is_subagent = event.parent.is_some();
                    if !is_subagent && info.usage.is_none() {
                        append.first_answer = Some(answer.message_id.as_str().to_owned());
                    }
                    append.usage.push(answer_row(answer, (is_subagent, kept), at, model()));
                }
            }
            Body::PromptResponse(response) => {
                cost = response.cost_usd;
                if let Some(last) = info.rest(response) {
                    append.usage.push(answer_row(&last, (false, kept), at, model()));
                }
                // Agents that report usage per answer have it counted already.
                let used = |u: &&Usage| info.usage.is_none() && !is_zero(u);
                if let Some(usage) = response.usage.as_ref().filter(used) {
                    let id = format!("{session}/{seq}");
                    append.usage.push(usage_row(id, (false, true), at, model(), usage));
                }
            }
            _ => {}
        }
        if let Some(cost) = cost {
            let before = self.cost.or(info.cost_usd).unwrap_or(0.0);
            self.cost = Some(cost.max(before));
            if cost > before {
                let (id, model) = (format!("{session}/{seq}/cost"), model());
                let cost = Some(cost - before);
                // Some agents report a cost without a time: it belongs to the event before.
                let at = at.or(self.last_event_ms);
                let row = UsageRow { id, kept: true, at, model, cost, ..UsageRow::default() };
                append.usage.push(row);
            }
        }
    }

    /// Counts the time since the last event as active, unless the gap is too long.
    fn add_active(&mut self, at: i64) {
        let since = self.last_event_ms.map_or(0, |last| at - last);
        self.last_event_ms = Some(self.last_event_ms.map_or(at, |last| last.max(at)));
        if !(1..MAX_GAP_MS).contains(&since) {
            return;
        }
        let (hour, ms) = (at.div_euclid(HOUR_MS), since.unsigned_abs());
        match self.active.iter_mut().find(|(known, _)| *known == hour) {
            Some((_, sum)) => *sum += ms,
            None => self.active.push((hour, ms)),
        }
    }

    /// Adds the final usage of an answer that was read before.
    pub(super) fn add_replayed(&mut self, event: &Event) {
        self.replayed_usage.extend(replayed_row(event));
    }

    /// Whether active time waits to be written.
    pub(super) fn has_pending(&self) -> bool {
        !self.active.is_empty()
    }

    /// Moves the sums to an append. A little active time stays, unless `all` is set.
    pub(super) fn write_into(&mut self, append: &mut Append, all: bool) {
        append.usage.append(&mut self.replayed_usage);
        if all || self.active.iter().map(|(_, ms)| ms).sum::<u64>() >= MIN_ACTIVE_MS {
            append.active.append(&mut self.active);
        }
    }
}

/// Whether no tokens were used.
fn is_zero(usage: &Usage) -> bool {
    let read = [usage.input_tokens, usage.cached_read_tokens, usage.cached_write_tokens];
    let all = [usage.output_tokens, usage.total_tokens];
    read.iter().chain(&all).flatten().all(|n| *n == 0)
}

/// The usage of an answer in a record that was read before and that its agent keeps.
fn replayed_row(event: &Event) -> Option<UsageRow> {
    let Body::Usage(gauge) = &event.body else { return None };
    let at = event.time.as_ref().map(narrows::time::Time::millis);
    Some(answer_row(gauge.answer.as_ref()?, (event.parent.is_some(), true), at, None))
}

/// The usage row of an answer; `model` is that of its session.
fn answer_row(
    answer: &AnswerUsage,
    flags: (bool, bool),
    at: Option<i64>,
    model: Option<String>,
) -> UsageRow {
    let request = answer.request_id.as_ref().map_or("", |r| r.as_str());
    let id = format!("{}/{request}", answer.message_id.as_str());
    let own = answer.model.as_ref().map(|m| m.as_str().to_owned());
    usage_row(id, flags, at, own.or(model), &answer.usage)
}

fn usage_row(
    id: String,
    (is_subagent, kept): (bool, bool),
    at: Option<i64>,
    model: Option<String>,
    usage: &Usage,
) -> UsageRow {
    let short = usage.cached_write_5m_tokens.unwrap_or(0);
    let long = usage.cached_write_1h_tokens.unwrap_or(0);
    UsageRow {
        id,
        sub: is_subagent,
        kept,
        at,
        model,
        input: usage.input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
        cache_read: usage.cached_read_tokens.unwrap_or(0),
        cache_write: usage.cached_write_tokens.unwrap_or(short + long),
        cost: None,
    }
}
