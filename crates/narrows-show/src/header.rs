//! What stands above a session: title, agent, project, time, tokens, cost, id.

use super::{escape, wrap};
use crate::words;
use jiff::tz::TimeZone;
use narrows::Item;
use narrows::item::ItemBody;
use narrows_store::SessionRow;
use serde::Deserialize;

/// Columns of a title that is made from a prompt.
const MAX_TITLE: usize = 72;

/// What is known of a session as a whole. Texts are as they were told: whoever prints them passes
/// them through `escape`.
#[derive(Debug, Clone, Default)]
pub struct Header {
    pub id: String,
    pub label: Option<String>,
    pub project: Option<String>,
    pub info: Info,
    /// How it begins, for sessions without a title.
    pub prompt: Option<String>,
    /// The times of the first and the last item, in milliseconds since 1970.
    pub times: Option<(i64, i64)>,
}

/// The parts of the session's info that are shown.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Info {
    pub status: Option<String>,
    pub agent: Option<String>,
    pub version: Option<String>,
    pub model: Option<String>,
    pub title: Option<String>,
    pub cwd: Option<String>,
    pub turns: u64,
    pub cost_usd: Option<f64>,
    pub usage: Option<Tokens>,
    pub subagent_usage: Option<Tokens>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_read_tokens: Option<u64>,
    cached_write_tokens: Option<u64>,
}

impl Header {
    /// Of a session, its first item and its last one.
    pub fn of(row: &SessionRow, first: Option<&Item>, last: Option<&Item>) -> Header {
        let mut header = Header {
            id: row.id.clone(),
            label: row.label.clone(),
            project: row.project.clone(),
            info: serde_json::from_str(row.info.get()).unwrap_or_default(),
            ..Header::default()
        };
        header.begins(first, last);
        header.times = header.times.or(Some((row.created_at, row.updated_at)));
        header
    }

    pub fn begins(&mut self, first: Option<&Item>, last: Option<&Item>) {
        let time = |item: Option<&Item>| item?.time.as_ref().map(narrows::time::Time::millis);
        self.times = time(first).zip(time(last));
        if let Some(ItemBody::UserMessage { text, .. }) = first.map(|item| &item.body) {
            let first = text.trim().lines().next().unwrap_or_default();
            self.prompt = Some(first.trim_end_matches([':', ' ']).to_owned());
        }
    }

    /// The title, on one line; else how it begins, else its id.
    pub fn title(&self) -> String {
        let line = |t: &Option<String>| t.as_deref().map(escape::line).filter(|t| !t.is_empty());
        let first = || line(&self.prompt).map(|t| wrap::cut(&t, MAX_TITLE));
        line(&self.info.title)
            .or_else(first)
            .unwrap_or_else(|| format!("Session {}", escape::line(&self.id)))
    }

    /// `claude 2.1.0`, `claude-opus-4-1`, `app`: who worked, and where.
    pub fn who(&self) -> Vec<String> {
        let line = |t: &Option<String>| t.as_deref().map(escape::line).filter(|t| !t.is_empty());
        let agent = line(&self.info.agent).map(|agent| match line(&self.info.version) {
            Some(version) => format!("{agent} {version}"),
            None => agent,
        });
        let place = line(&self.info.cwd).filter(|cwd| cwd != ".");
        let place = line(&self.project).or(place);
        [agent, line(&self.info.model), place].into_iter().flatten().collect()
    }

    /// When, how much, what it cost.
    pub fn facts(&self, zone: &TimeZone) -> Vec<String> {
        let when = self.times.and_then(|(from, to)| words::period(from, to, zone));
        let turns = usize::try_from(self.info.turns).unwrap_or(usize::MAX);
        let turns = (turns > 0).then(|| words::count(turns, "turn"));
        let cost = self.info.cost_usd.map(words::dollars);
        // Whether it runs is not told: of most files nobody says that they are over.
        let failed = self.info.status.as_deref().filter(|s| *s == "failed").map(str::to_owned);
        [when, turns, self.tokens(), cost, failed].into_iter().flatten().collect()
    }

    /// `120k tokens in (110k cached), 3.1k out`.
    fn tokens(&self) -> Option<String> {
        let all = [&self.info.usage, &self.info.subagent_usage];
        let sum = |of: fn(&Tokens) -> Option<u64>| -> u64 {
            all.iter().filter_map(|t| t.as_ref().and_then(of)).sum()
        };
        let cached = sum(|t| t.cached_read_tokens);
        let input = sum(|t| t.input_tokens) + cached + sum(|t| t.cached_write_tokens);
        let output = sum(|t| t.output_tokens);
        if input + output == 0 {
            return None;
        }
        let of_it =
            if cached > 0 { format!(" ({} cached)", words::amount(cached)) } else { String::new() };
        Some(format!("{} tokens in{of_it}, {} out", words::amount(input), words::amount(output)))
    }

    /// The id, and the label where there is one.
    pub fn names(&self) -> Vec<String> {
        let label = self.label.as_deref().map(escape::line).filter(|l| !l.is_empty());
        [Some(escape::line(&self.id)), label].into_iter().flatten().collect()
    }
}
