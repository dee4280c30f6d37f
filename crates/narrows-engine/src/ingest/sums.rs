//! What is added up while a session is written: its times, tokens and cost.

use narrows::event::{AnswerUsage, Body, Event, Usage};
use narrows::session::SessionInfo;
use narrows_store::{Append, UsageRow};

/// When nothing happens for so long, nothing is going on.
const PAUSE_MS: i64 = 5 * 60 * 1000;
const HOUR_MS: i64 = 3600 * 1000;
/// Less than this is written with what follows: not every packet of a stream costs a row for it.
const ENOUGH_MS: u64 = 1000;

/// Where the sums of a session stand.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// The time of the last event.
    last: Option<i64>,
    /// What the session cost so far.
    cost: Option<f64>,
    /// How long something was going on, by hours, as far as that is not written yet.
    active: Vec<(i64, u64)>,
}

impl Sums {
    /// Takes the event that gets `seq`; `info` is what was known before it, `kept` whether its agent
    /// keeps it.
    pub(super) fn take(
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
            self.go_on(at);
        }
        let model = || info.model.as_ref().map(|m| m.as_str().to_owned());
        let mut cost = None;
        match &event.body {
            Body::Usage(gauge) => {
                cost = gauge.cost_usd;
                if let Some(answer) = &gauge.answer {
                    let sub = event.parent.is_some();
                    if !sub && info.usage.is_none() {
                        append.first_answer = Some(answer.message_id.as_str().to_owned());
                    }
                    append.usage.push(answered(answer, (sub, kept), at, model()));
                }
            }
            Body::PromptResponse(response) => {
                cost = response.cost_usd;
                if let Some(last) = info.rest(response) {
                    append.usage.push(answered(&last, (false, kept), at, model()));
                }
                // Where the agent tells answer by answer, they are counted already.
                let used = |u: &&Usage| info.usage.is_none() && !is_none(u);
                if let Some(usage) = response.usage.as_ref().filter(used) {
                    let id = format!("{session}/{seq}");
                    append.usage.push(row(id, (false, true), at, model(), usage));
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
                // Some agents tell no time with it: it was with what came before.
                let at = at.or(self.last);
                let row = UsageRow { id, kept: true, at, model, cost, ..UsageRow::default() };
                append.usage.push(row);
            }
        }
    }

    /// Counts the time since the last event, where it is no pause.
    fn go_on(&mut self, at: i64) {
        let since = self.last.map_or(0, |last| at - last);
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
        if !(1..PAUSE_MS).contains(&since) {
            return;
        }
        let (hour, ms) = (at.div_euclid(HOUR_MS), since.unsigned_abs());
        match self.active.iter_mut().find(|(known, _)| *known == hour) {
            Some((_, sum)) => *sum += ms,
            None => self.active.push((hour, ms)),
        }
    }

    /// Whether something that was counted is not written yet.
    pub(super) fn wait(&self) -> bool {
        !self.active.is_empty()
    }

    /// Gives what was counted to an append, if it is enough; with `all`, any.
    pub(super) fn give(&mut self, append: &mut Append, all: bool) {
        if all || self.active.iter().map(|(_, ms)| ms).sum::<u64>() >= ENOUGH_MS {
            append.active.append(&mut self.active);
        }
    }
}

/// Whether no model was asked.
fn is_none(usage: &Usage) -> bool {
    let read = [usage.input_tokens, usage.cached_read_tokens, usage.cached_write_tokens];
    let all = [usage.output_tokens, usage.total_tokens];
    read.iter().chain(&all).flatten().all(|n| *n == 0)
}

/// What an answer used, as a record says that was read before and that its agent keeps.
pub(super) fn again(event: &Event) -> Option<UsageRow> {
    let Body::Usage(gauge) = &event.body else { return None };
    let at = event.time.as_ref().map(narrows::time::Time::millis);
    Some(answered(gauge.answer.as_ref()?, (event.parent.is_some(), true), at, None))
}

/// The row of an answer, of which the model of its session is known.
fn answered(
    answer: &AnswerUsage,
    of: (bool, bool),
    at: Option<i64>,
    model: Option<String>,
) -> UsageRow {
    let request = answer.request_id.as_ref().map_or("", |r| r.as_str());
    let id = format!("{}/{request}", answer.message_id.as_str());
    let own = answer.model.as_ref().map(|m| m.as_str().to_owned());
    row(id, of, at, own.or(model), &answer.usage)
}

fn row(
    id: String,
    (sub, kept): (bool, bool),
    at: Option<i64>,
    model: Option<String>,
    usage: &Usage,
) -> UsageRow {
    let short = usage.cached_write_5m_tokens.unwrap_or(0);
    let long = usage.cached_write_1h_tokens.unwrap_or(0);
    UsageRow {
        id,
        sub,
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
