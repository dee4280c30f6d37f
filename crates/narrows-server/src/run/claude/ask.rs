//! Requests for leave and questions of Claude Code, and their answers.

use super::Claude;
use super::forms::refused;
use crate::run::driver::{Effect, Heard};
use narrows::limits::REQUESTS;
use serde_json::{Map, Value};

/// A request that waits.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) input: Value,
    pub(super) question: bool,
    /// What it proposes to allow from now on.
    pub(super) suggestions: Vec<Value>,
}

/// How the id of a suggestion begins, before its place in the list.
const ALWAYS: &str = "allow_always:";

impl Ask {
    /// The suggestion that an option names, if it was offered.
    pub(super) fn suggestion(&self, option: &str) -> Option<&Value> {
        let at: usize = option.strip_prefix(ALWAYS)?.parse().ok()?;
        let found = self.suggestions.get(at)?;
        // What nobody can say in words is not offered.
        narrows::adapter::suggested(&found.to_string()).map(|_| found)
    }
}

pub(super) const FULL: &str = "too many requests wait for an answer";

/// Ids of requests that are remembered.
const MAX_IDS: usize = 1024;

impl Claude {
    /// Whether so much waits for answers that nothing more may.
    pub(super) fn is_full(&self) -> bool {
        self.requests.len() + self.forms.len() >= REQUESTS
    }

    /// Whether a request is one that did not come before: an answer is for one request only.
    pub(super) fn is_new(&mut self, id: &str, heard: &mut Heard) -> bool {
        // It may be told again as long as it waits.
        if self.requests.contains_key(id) || self.forms.contains_key(id) {
            heard.log = false;
            return false;
        }
        if self.ids.iter().any(|known| known == id) {
            heard.log = false;
            let refused = match refused(id, "a request of this id was answered before") {
                Effect::Send(line) => Effect::Tell(line),
                other => other,
            };
            let what = format!(
                "The agent asked again with the id {id}, which was answered before. It was refused."
            );
            heard.effects.extend([refused, Effect::Notice(what)]);
            return false;
        }
        if self.ids.len() >= MAX_IDS {
            self.ids.pop_front();
        }
        self.ids.push_back(id.to_owned());
        true
    }
}

/// Answers by the agent's own words: what a person saw of a question was cleaned. Or which questions
/// have none; by their numbers, since their words are the agent's.
pub(super) fn by_question(
    questions: &Value,
    answers: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let words = questions.as_array().into_iter().flatten().filter_map(|q| q["question"].as_str());
    let words: Vec<&str> = words.collect();
    // One that goes by its place takes none of another's.
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
