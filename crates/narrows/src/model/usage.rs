//! Token usage of a session, with each answer of the model counted once.

use crate::model::event::{Body, Event, MessageUsage, TurnEnd, Usage};
use crate::sanitize::Clean;
use std::collections::{HashMap, VecDeque};

/// Answers whose usage may still be corrected.
const MAX_ANSWERS: usize = 16;

/// Sums the usage of answers. Agents repeat the usage of an answer with every part of it, first
/// estimated and finally exact: the last one counts.
///
/// ```
/// use narrows::usage::Ledger;
/// assert_eq!(Ledger::default().session(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "stored", derive(serde::Serialize, serde::Deserialize))]
pub struct TokenLedger {
    /// The newest answers, and whether each is of a subagent.
    answers: VecDeque<(MessageUsage, bool)>,
    session: Option<Usage>,
    subagents: Option<Usage>,
    /// Usage of the session itself since the last turn ended.
    turn: Option<Usage>,
}

impl TokenLedger {
    /// Counts an answer of a subagent or of the session itself. The same answer again replaces its
    /// earlier count.
    pub fn add(&mut self, answer: &MessageUsage, sub: bool) {
        let key = |a: &MessageUsage| -> (Clean, Option<Clean>) {
            (a.message_id.clone(), a.request_id.clone())
        };
        let index = self.answers.iter().position(|(a, _)| key(a) == key(answer));
        let before = index.and_then(|at| self.answers.remove(at));
        let before = before.map(|(a, _)| a.usage).unwrap_or_default();
        self.answers.push_back((answer.clone(), sub));
        if self.answers.len() > MAX_ANSWERS {
            // The last answer is kept: usage of the turn beyond its answers is added to it.
            let first_is_last = self.last_of_session().is_some_and(|(at, _)| at == 0);
            self.answers.remove(usize::from(first_is_last));
        }
        let count = |total: &mut Option<Usage>| {
            let total = total.get_or_insert_default();
            *total = combine(total, &before, u64::saturating_sub);
            *total = combine(total, &answer.usage, u64::saturating_add);
        };
        if sub {
            count(&mut self.subagents);
        } else {
            count(&mut self.session);
            count(&mut self.turn);
        }
    }

    /// Ends a turn with the usage that the agent reports for it, which includes answers whose end
    /// was not seen. If it is less than the sum of the answers, the agent missed some, and the sum
    /// stays.
    pub fn end_turn(&mut self, usage: &Usage) {
        let Some(counted) = self.turn.take() else { return };
        if let Some(session) = &mut self.session {
            *session = combine(session, &counted, u64::saturating_sub);
            *session = combine(session, &combine(&counted, usage, u64::max), u64::saturating_add);
        }
        self.answers.retain(|(_, sub)| *sub);
    }

    /// The turn's last answer, corrected by what the turn used beyond its answers: the usage of a
    /// streamed answer may be an estimate. None if the response adds nothing.
    pub fn correct_last(&self, response: &TurnEnd) -> Option<MessageUsage> {
        let usage = response.usage.as_ref().filter(|_| response.usage_is_exact)?;
        let counted = self.turn.as_ref()?;
        let beyond = combine(&combine(counted, usage, u64::max), counted, u64::saturating_sub);
        let (_, last) = self.last_of_session()?;
        let usage = combine(&last.usage, &beyond, u64::saturating_add);
        (usage != last.usage).then(|| MessageUsage { usage, ..last.clone() })
    }

    /// The last answer of the session itself, and its index.
    fn last_of_session(&self) -> Option<(usize, &MessageUsage)> {
        let mut of_session = self.answers.iter().enumerate().rev().filter(|(_, (_, sub))| !sub);
        of_session.next().map(|(at, (answer, _))| (at, answer))
    }

    /// A ledger of which only the sums are known.
    #[cfg(feature = "stored")]
    pub(crate) fn from_sums(session: Option<&Usage>, subagents: Option<&Usage>) -> Self {
        let (session, subagents) = (session.cloned(), subagents.cloned());
        TokenLedger { session, subagents, ..TokenLedger::default() }
    }

    /// The newest answers, oldest first.
    pub(crate) fn recent_answers(&self) -> impl Iterator<Item = &MessageUsage> {
        self.answers.iter().map(|(answer, _)| answer)
    }

    /// Usage of the session itself.
    pub fn session(&self) -> Option<&Usage> {
        self.session.as_ref()
    }

    /// Usage of its subagents.
    pub fn subagents(&self) -> Option<&Usage> {
        self.subagents.as_ref()
    }
}

/// Token usage of many sessions. An answer counts once, in however many sessions it occurs: a
/// forked session has copies of its origin, and an agent stores what it also prints.
#[derive(Debug, Default)]
pub struct TokenTotals {
    /// By the id of the model's message; several if different requests have the same one.
    answers: HashMap<Clean, Vec<AnswerCount>>,
}

#[derive(Debug)]
struct AnswerCount {
    request: Option<Clean>,
    usage: Usage,
    sub: bool,
    kept: bool,
}

impl TokenTotals {
    /// Counts the usage in an event, of a subagent if `sub`. `ledger` is that of the input being
    /// read; `kept` is [`Pipeline::is_kept`](crate::Pipeline::is_kept).
    pub fn take(&mut self, event: &Event, sub: bool, kept: bool, ledger: &mut TokenLedger) {
        match &event.body {
            Body::Usage(usage) => {
                if let Some(answer) = &usage.answer {
                    let sub = sub || event.parent.is_some();
                    ledger.add(answer, sub);
                    self.add(answer, sub, kept);
                }
            }
            Body::PromptResponse(response) => {
                if let Some(last) = ledger.correct_last(response) {
                    self.add(&last, sub, kept);
                }
                if let Some(usage) = response.usage.as_ref().filter(|_| response.usage_is_exact) {
                    ledger.end_turn(usage);
                }
            }
            _ => {}
        }
    }

    /// Counts an answer. The usage that the agent stores is final and replaces the streamed one; of several
    /// values of the same kind the highest counts: they are estimates that only grow.
    pub fn add(&mut self, answer: &MessageUsage, sub: bool, kept: bool) {
        let request = answer.request_id.clone();
        let counts = self.answers.entry(answer.message_id.clone()).or_default();
        // The output stream carries no request id: it matches any request of the message.
        let is_same =
            |c: &&mut AnswerCount| c.request == request || c.request.is_none() || request.is_none();
        if let Some(count) = counts.iter_mut().find(is_same) {
            if kept == count.kept {
                count.usage = combine(&count.usage, &answer.usage, u64::max);
            } else if kept {
                (count.usage, count.kept) = (answer.usage.clone(), true);
            }
            count.request = count.request.take().or(request);
            count.sub |= sub;
        } else {
            counts.push(AnswerCount { request, usage: answer.usage.clone(), sub, kept });
        }
    }

    /// The number of answers and their usage: of sessions themselves, or of subagents if `subs`.
    pub fn sum(&self, subs: bool) -> (usize, Usage) {
        let counts = self.answers.values().flatten().filter(|count| count.sub == subs);
        let sum = |(n, total): (usize, Usage), count: &AnswerCount| {
            (n + 1, combine(&total, &count.usage, u64::saturating_add))
        };
        counts.fold((0, Usage::default()), sum)
    }
}

/// Combines two usages field by field; a missing field is 0 if the other one is present.
fn combine(a: &Usage, b: &Usage, op: fn(u64, u64) -> u64) -> Usage {
    let field = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(op(a.unwrap_or(0), b.unwrap_or(0))),
    };
    Usage {
        input_tokens: field(a.input_tokens, b.input_tokens),
        output_tokens: field(a.output_tokens, b.output_tokens),
        total_tokens: field(a.total_tokens, b.total_tokens),
        cached_read_tokens: field(a.cached_read_tokens, b.cached_read_tokens),
        cached_write_tokens: field(a.cached_write_tokens, b.cached_write_tokens),
        cached_write_5m_tokens: field(a.cached_write_5m_tokens, b.cached_write_5m_tokens),
        cached_write_1h_tokens: field(a.cached_write_1h_tokens, b.cached_write_1h_tokens),
        thought_tokens: field(a.thought_tokens, b.thought_tokens),
    }
}

// Former names, for the crates that still use them.
#[doc(hidden)]
pub use self::{TokenLedger as Ledger, TokenTotals as Totals};
