//! Tokens of a session, each answer of the model counted once.

use crate::model::event::{AnswerUsage, Body, Event, Response, Usage};
use crate::sanitize::Clean;
use std::collections::{HashMap, VecDeque};

/// Answers whose usage may still be corrected.
const MAX_ANSWERS: usize = 16;

/// Adds up what answers used. Agents repeat the usage of an answer with every part of it, first
/// with a guess and at last with the truth: the last one counts.
///
/// ```
/// use narrows::usage::Ledger;
/// assert_eq!(Ledger::default().session(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "stored", derive(serde::Serialize, serde::Deserialize))]
pub struct Ledger {
    /// The answers that came last.
    answers: VecDeque<(AnswerUsage, bool)>,
    session: Option<Usage>,
    subagents: Option<Usage>,
    /// What of the session's was counted since the last turn ended.
    turn: Option<Usage>,
}

impl Ledger {
    /// Counts an answer, of a subagent or of the session itself. The same answer again replaces
    /// what was counted for it.
    pub fn add(&mut self, answer: &AnswerUsage, sub: bool) {
        let key = |a: &AnswerUsage| -> (Clean, Option<Clean>) {
            (a.message_id.clone(), a.request_id.clone())
        };
        let known = self.answers.iter().position(|(a, _)| key(a) == key(answer));
        let before = known.and_then(|at| self.answers.remove(at));
        let before = before.map(|(a, _)| a.usage).unwrap_or_default();
        self.answers.push_back((answer.clone(), sub));
        if self.answers.len() > MAX_ANSWERS {
            // What a turn used beyond its answers is counted with the last of them.
            let first_is_last = self.last_own().is_some_and(|(at, _)| at == 0);
            self.answers.remove(usize::from(first_is_last));
        }
        let count = |total: &mut Option<Usage>| {
            let total = total.get_or_insert_default();
            *total = each(total, &before, u64::saturating_sub);
            *total = each(total, &answer.usage, u64::saturating_add);
        };
        if sub {
            count(&mut self.subagents);
        } else {
            count(&mut self.session);
            count(&mut self.turn);
        }
    }

    /// The turn is over, and the agent tells what it used: answers whose end was not seen are in
    /// it. Where that is less than what was counted, the agent has forgotten some.
    pub fn turn(&mut self, usage: &Usage) {
        let Some(counted) = self.turn.take() else { return };
        if let Some(session) = &mut self.session {
            *session = each(session, &counted, u64::saturating_sub);
            *session = each(session, &each(&counted, usage, u64::max), u64::saturating_add);
        }
        self.answers.retain(|(_, sub)| *sub);
    }

    /// The last answer of the turn that a response ends, with what the turn used beyond all of its
    /// answers: what is printed of an answer may be a guess. None where the response tells no more.
    pub fn rest(&self, response: &Response) -> Option<AnswerUsage> {
        let usage = response.usage.as_ref().filter(|_| response.settles)?;
        let counted = self.turn.as_ref()?;
        let beyond = each(&each(counted, usage, u64::max), counted, u64::saturating_sub);
        let (_, last) = self.last_own()?;
        let usage = each(&last.usage, &beyond, u64::saturating_add);
        (usage != last.usage).then(|| AnswerUsage { usage, ..last.clone() })
    }

    /// The last answer of the session itself, and its place.
    fn last_own(&self) -> Option<(usize, &AnswerUsage)> {
        let mut own = self.answers.iter().enumerate().rev().filter(|(_, (_, sub))| !sub);
        own.next().map(|(at, (answer, _))| (at, answer))
    }

    /// A ledger of which only the sums are known.
    #[cfg(feature = "stored")]
    pub(crate) fn of(session: Option<&Usage>, subagents: Option<&Usage>) -> Self {
        let (session, subagents) = (session.cloned(), subagents.cloned());
        Ledger { session, subagents, ..Ledger::default() }
    }

    /// The answers that came last, the latest at the end.
    pub(crate) fn recent(&self) -> impl Iterator<Item = &AnswerUsage> {
        self.answers.iter().map(|(answer, _)| answer)
    }

    /// What the session itself used.
    pub fn session(&self) -> Option<&Usage> {
        self.session.as_ref()
    }

    /// What its subagents used.
    pub fn subagents(&self) -> Option<&Usage> {
        self.subagents.as_ref()
    }
}

/// Tokens of many sessions. An answer counts once, in however many of them it stands: a forked
/// session keeps copies of what it was forked from, and what an agent prints it keeps too.
#[derive(Debug, Default)]
pub struct Totals {
    /// By the model's message; several where different requests gave the same one.
    answers: HashMap<Clean, Vec<Counted>>,
}

#[derive(Debug)]
struct Counted {
    request: Option<Clean>,
    usage: Usage,
    sub: bool,
    kept: bool,
}

impl Totals {
    /// Counts what an event tells, of a subagent or of a session itself; `ledger` is that of the form of
    /// the session that is read. `kept` where the agent keeps it ([`crate::Pipeline::is_kept`]).
    pub fn take(&mut self, event: &Event, sub: bool, kept: bool, ledger: &mut Ledger) {
        match &event.body {
            Body::Usage(gauge) => {
                if let Some(answer) = &gauge.answer {
                    let sub = sub || event.parent.is_some();
                    ledger.add(answer, sub);
                    self.add(answer, sub, kept);
                }
            }
            Body::PromptResponse(response) => {
                if let Some(last) = ledger.rest(response) {
                    self.add(&last, sub, kept);
                }
                if let Some(usage) = response.usage.as_ref().filter(|_| response.settles) {
                    ledger.turn(usage);
                }
            }
            _ => {}
        }
    }

    /// Counts an answer. What is kept of it is final and replaces what was printed; of several tellings
    /// of either kind the highest numbers count: they are guesses that only grow.
    pub fn add(&mut self, answer: &AnswerUsage, sub: bool, kept: bool) {
        let request = answer.request_id.clone();
        let known = self.answers.entry(answer.message_id.clone()).or_default();
        // What is printed does not tell the request: it is the one of the message.
        let same =
            |c: &&mut Counted| c.request == request || c.request.is_none() || request.is_none();
        if let Some(counted) = known.iter_mut().find(same) {
            if kept == counted.kept {
                counted.usage = each(&counted.usage, &answer.usage, u64::max);
            } else if kept {
                (counted.usage, counted.kept) = (answer.usage.clone(), true);
            }
            counted.request = counted.request.take().or(request);
            counted.sub |= sub;
        } else {
            known.push(Counted { request, usage: answer.usage.clone(), sub, kept });
        }
    }

    /// How many answers there were, and what they used: of sessions themselves, or of subagents.
    pub fn sum(&self, subs: bool) -> (usize, Usage) {
        let of = self.answers.values().flatten().filter(|counted| counted.sub == subs);
        let sum = |(n, total): (usize, Usage), counted: &Counted| {
            (n + 1, each(&total, &counted.usage, u64::saturating_add))
        };
        of.fold((0, Usage::default()), sum)
    }
}

fn each(a: &Usage, b: &Usage, op: fn(u64, u64) -> u64) -> Usage {
    let one = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(op(a.unwrap_or(0), b.unwrap_or(0))),
    };
    Usage {
        input_tokens: one(a.input_tokens, b.input_tokens),
        output_tokens: one(a.output_tokens, b.output_tokens),
        total_tokens: one(a.total_tokens, b.total_tokens),
        cached_read_tokens: one(a.cached_read_tokens, b.cached_read_tokens),
        cached_write_tokens: one(a.cached_write_tokens, b.cached_write_tokens),
        cached_write_5m_tokens: one(a.cached_write_5m_tokens, b.cached_write_5m_tokens),
        cached_write_1h_tokens: one(a.cached_write_1h_tokens, b.cached_write_1h_tokens),
        thought_tokens: one(a.thought_tokens, b.thought_tokens),
    }
}
