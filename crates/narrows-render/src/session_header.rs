//! The header of a transcript: title, agent, project, period, token usage, cost and id.

use super::{escape, wrap};
use crate::format;
use jiff::tz::TimeZone;
use narrows::Item;
use narrows::item::ItemBody;
use serde::Deserialize;

/// Columns of a title that is derived from the first prompt.
const MAX_TITLE_COLUMNS: usize = 72;

/// Session metadata as stored. Texts are unescaped: renderers pass them through `escape`.
#[derive(Debug, Clone, Default)]
pub struct SessionHeader {
    /// The id of the session.
    pub id: String,
    /// The label that a client gave the session.
    pub label: Option<String>,
    /// The project of the session.
    pub project: Option<String>,
    /// What the agent reported of the session.
    pub info: SessionSummary,
    /// The first line of the first prompt; replaces a missing title.
    pub first_prompt: Option<String>,
    /// The times of the first and the last item, in milliseconds since the Unix epoch.
    pub period: Option<(i64, i64)>,
}

/// The fields of the session info that a header shows.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionSummary {
    /// `running`, `completed`, `failed`, …
    pub status: Option<String>,
    /// The name of the agent.
    pub agent: Option<String>,
    /// The version of the agent.
    pub version: Option<String>,
    /// The model of the last turn.
    pub model: Option<String>,
    /// The title that the agent or the user gave.
    pub title: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The number of turns.
    pub turns: u64,
    /// The cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens of the main conversation.
    pub usage: Option<TokenUsage>,
    /// Tokens of all subagents.
    pub subagent_usage: Option<TokenUsage>,
}

/// Token counts of a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_read_tokens: Option<u64>,
    cached_write_tokens: Option<u64>,
}

impl SessionSummary {
    /// Reads session info; malformed JSON gives an empty summary.
    pub fn from_json(info: &str) -> SessionSummary {
        serde_json::from_str(info).unwrap_or_default()
    }
}

impl SessionHeader {
    /// Sets the period and the first prompt from the first and the last item of the session.
    pub fn set_bounds(&mut self, first: Option<&Item>, last: Option<&Item>) {
        let time = |item: Option<&Item>| item?.time.as_ref().map(narrows::time::Time::millis);
        self.period = time(first).zip(time(last));
        if let Some(ItemBody::UserMessage { text, .. }) = first.map(|item| &item.body) {
            let first_line = text.trim().lines().next().unwrap_or_default();
            self.first_prompt = Some(first_line.trim_end_matches([':', ' ']).to_owned());
        }
    }

    /// Returns the title on one line, else the first prompt, else the id.
    pub fn title(&self) -> String {
        let from_prompt =
            || line(self.first_prompt.as_deref()).map(|t| wrap::cut(&t, MAX_TITLE_COLUMNS));
        line(self.info.title.as_deref())
            .or_else(from_prompt)
            .unwrap_or_else(|| format!("Session {}", escape::line(&self.id)))
    }

    /// Returns the agent, the model and the project: `claude 2.1.0`, `claude-opus-4-1`, `app`.
    pub fn agent_details(&self) -> Vec<String> {
        let agent = line(self.info.agent.as_deref()).map(|agent| {
            match line(self.info.version.as_deref()) {
                Some(version) => format!("{agent} {version}"),
                None => agent,
            }
        });
        let folder = line(self.info.cwd.as_deref()).filter(|cwd| cwd != ".");
        let project = line(self.project.as_deref()).or(folder);
        [agent, line(self.info.model.as_deref()), project].into_iter().flatten().collect()
    }

    /// Returns the period, the turns, the tokens, the cost and a failure.
    pub fn statistics(&self, zone: &TimeZone) -> Vec<String> {
        let period = self.period.and_then(|(from, to)| format::period(from, to, zone));
        let turns = usize::try_from(self.info.turns).unwrap_or(usize::MAX);
        let turns = (turns > 0).then(|| format::count(turns, "turn"));
        let cost = self.info.cost_usd.map(format::dollars);
        // `running` is not shown: most session files never record their end.
        let failed = self.info.status.as_deref().filter(|s| *s == "failed").map(str::to_owned);
        [period, turns, self.tokens(), cost, failed].into_iter().flatten().collect()
    }

    /// Returns the token usage: `120k tokens in (110k cached), 3.1k out`.
    fn tokens(&self) -> Option<String> {
        let usages = [&self.info.usage, &self.info.subagent_usage];
        let sum = |field: fn(&TokenUsage) -> Option<u64>| -> u64 {
            usages.iter().filter_map(|usage| usage.as_ref().and_then(field)).sum()
        };
        let cached = sum(|t| t.cached_read_tokens);
        let input = sum(|t| t.input_tokens) + cached + sum(|t| t.cached_write_tokens);
        let output = sum(|t| t.output_tokens);
        if input + output == 0 {
            return None;
        }
        let cached = match cached {
            0 => String::new(),
            cached => format!(" ({} cached)", format::amount(cached)),
        };
        let (input, output) = (format::amount(input), format::amount(output));
        Some(format!("{input} tokens in{cached}, {output} out"))
    }

    /// Returns the id and the label.
    pub fn identifiers(&self) -> Vec<String> {
        [Some(escape::line(&self.id)), line(self.label.as_deref())].into_iter().flatten().collect()
    }
}

/// Returns a text on one line, unless it is missing or blank.
fn line(text: Option<&str>) -> Option<String> {
    text.map(escape::line).filter(|line| !line.is_empty())
}
