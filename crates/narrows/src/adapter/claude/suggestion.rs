//! What Claude Code proposes to allow from now on, in words that say exactly what it is.

use crate::json::{Index, Json, Kind};
use std::borrow::Cow;

/// Rules and folders of one suggestion that are named.
const MAX_NAMED: usize = 32;

/// The words of a suggestion, as JSON; none when it allows nothing, or nobody can say what.
pub fn suggested(json: &str) -> Option<String> {
    let mut index = Index::default();
    words(index.read(json).ok()?.root())
}

/// The words of a suggestion; none when it allows nothing, or nobody can say what.
pub(super) fn words(suggestion: Json<'_>) -> Option<String> {
    let destination = suggestion.text("destination")?;
    let place = place(&destination)?;
    match suggestion.text("type")?.as_ref() {
        "addRules" if suggestion.text("behavior").as_deref() == Some("allow") => {
            let rules = named(suggestion.get("rules")?, rule)?;
            Some(format!("Always allow {} {place}", rules.join(", ")))
        }
        "addDirectories" => {
            let folders = named(suggestion.get("directories")?, |folder| {
                folder.str().filter(|f| !f.is_empty()).map(Cow::into_owned)
            })?;
            Some(format!("Always allow work in {} {place}", folders.join(", ")))
        }
        "setMode" => match suggestion.text("mode")?.as_ref() {
            "acceptEdits" => Some(format!("Allow, and accept all edits {place}")),
            "bypassPermissions" => Some(format!("Allow, and ask for nothing any more {place}")),
            mode @ ("default" | "plan" | "dontAsk" | "auto") => {
                Some(format!("Allow, and switch to the mode {mode} {place}"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// How long and where it holds.
fn place(destination: &str) -> Option<&'static str> {
    Some(match destination {
        "session" => "for this session",
        "localSettings" => "in this project (.claude/settings.local.json)",
        "projectSettings" => "in this project, for everyone (.claude/settings.json)",
        "userSettings" => "in all projects (~/.claude/settings.json)",
        "cliArg" => "until the agent ends",
        _ => return None,
    })
}

/// A rule as the settings write it: `Bash(npm test:*)`; without content, the whole tool.
fn rule(rule: Json<'_>) -> Option<String> {
    let tool = rule.text("toolName").filter(|t| !t.is_empty())?;
    Some(match rule.text("ruleContent").filter(|c| !c.is_empty()) {
        Some(content) => format!("{tool}({content})"),
        None => format!("{tool} (whatever it does)"),
    })
}

/// All of a list, or none: what is not named is not offered.
fn named(list: Json<'_>, name: impl Fn(Json<'_>) -> Option<String>) -> Option<Vec<String>> {
    if list.kind() != Kind::Array || list.is_empty() || list.items().nth(MAX_NAMED).is_some() {
        return None;
    }
    list.items().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::suggested;

    #[test]
    fn the_words_say_what_is_allowed_and_where() {
        for (json, words) in [
            (
                r#"{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"npm test:*"},{"toolName":"WebFetch"}],"behavior":"allow","destination":"localSettings"}"#,
                "Always allow Bash(npm test:*), WebFetch (whatever it does) in this project (.claude/settings.local.json)",
            ),
            (
                r#"{"type":"addDirectories","directories":["/srv/data"],"destination":"session"}"#,
                "Always allow work in /srv/data for this session",
            ),
            (
                r#"{"type":"setMode","mode":"acceptEdits","destination":"session"}"#,
                "Allow, and accept all edits for this session",
            ),
        ] {
            assert_eq!(suggested(json).as_deref(), Some(words), "{json}");
        }
        for json in [
            r#"{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"deny","destination":"session"}"#,
            r#"{"type":"addRules","rules":[],"behavior":"allow","destination":"session"}"#,
            r#"{"type":"addRules","rules":[{"ruleContent":"x"}],"behavior":"allow","destination":"session"}"#,
            r#"{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"the moon"}"#,
            r#"{"type":"removeRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"session"}"#,
            r#"{"type":"setMode","mode":"whatever","destination":"session"}"#,
            "[]",
            "no JSON",
        ] {
            assert_eq!(suggested(json), None, "{json}");
        }
    }
}
