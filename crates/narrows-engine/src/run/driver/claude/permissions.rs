//! Permission requests and questions of Claude Code, and their answers.

use super::Claude;
use super::forms::error_response;
use crate::run::driver::{DriverOutput, Effect};
use narrows::limits::REQUESTS;
use serde_json::{Map, Value};

/// An open request.
#[derive(Debug)]
pub(super) struct ClaudeRequest {
    pub(super) input: Value,
    pub(super) question: bool,
    /// Permission rules that it proposes to add.
    pub(super) suggestions: Vec<Value>,
}

/// Prefix of a suggestion's option id, before its index.
const ALLOW_ALWAYS_PREFIX: &str = "allow_always:";

impl ClaudeRequest {
    /// The suggestion that an option id names, if it was offered.
    pub(super) fn suggestion(&self, option: &str) -> Option<&Value> {
        let at: usize = option.strip_prefix(ALLOW_ALWAYS_PREFIX)?.parse().ok()?;
        let found = self.suggestions.get(at)?;
        // A suggestion that cannot be described is not offered.
        narrows::adapter::suggested(&found.to_string()).map(|_| found)
    }
}

pub(super) const TOO_MANY_MESSAGE: &str = "too many requests wait for an answer";

/// Request ids that are remembered.
const MAX_REMEMBERED_IDS: usize = 1024;

impl Claude {
    /// Returns whether the limit of open requests is reached.
    pub(super) fn is_full(&self) -> bool {
        self.requests.len() + self.forms.len() >= REQUESTS
    }

    /// Returns whether a request id is new: an answer belongs to one request only.
    pub(super) fn is_first(&mut self, id: &str, output: &mut DriverOutput) -> bool {
        // An open request may be sent again.
        if self.requests.contains_key(id) || self.forms.contains_key(id) {
            output.log = false;
            return false;
        }
        if self.seen_ids.iter().any(|known| known == id) {
            output.log = false;
            let refused = match error_response(id, "a request with this id was answered before") {
                Effect::Send(line) => Effect::SendUnlogged(line),
                other => other,
            };
            let what = format!(
                "The agent asked again with the id {id}, which was answered before. It was refused."
            );
            output.effects.extend([refused, Effect::Notice(what)]);
            return false;
        }
        if self.seen_ids.len() >= MAX_REMEMBERED_IDS {
            self.seen_ids.pop_front();
        }
        self.seen_ids.push_back(id.to_owned());
        true
    }
}

/// Maps answers to the agent's own question texts, because clients saw redacted ones. The error names
/// unanswered questions by number, since their texts are the agent's.
pub(super) fn answers_by_question(
    questions: &Value,
    answers: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let words = questions.as_array().into_iter().flatten().filter_map(|q| q["question"].as_str());
    let words: Vec<&str> = words.collect();
    // With fewer answers than questions an answer by position could belong to another question.
    let all = answers.len() >= words.len();
    let is_given = |answer: &&Value| {
        !answer.is_null() && answer.as_str().is_none_or(|text| !text.trim().is_empty())
    };
    let (mut found, mut missing) = (Map::new(), Vec::new());
    for (at, words) in words.into_iter().enumerate() {
        let by_place = || answers.values().nth(at).filter(|_| all);
        let answer = answers.get(words).or_else(by_place);
        match answer.filter(is_given) {
            Some(answer) => drop(found.insert(words.to_owned(), answer.clone())),
            None => missing.push((at + 1).to_string()),
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    Err(format!("`answers` has none to the question {}: give one by its words", missing.join(", ")))
}
