//! The first prompt of a session, which names a session without a title.

use crate::db::{Db, params};
use crate::error::Result;
use crate::items::{COLUMNS, read_row};
use crate::keys::{keys, number};
use crate::sum;
use narrows::Item;
use narrows::item::ItemBody;
use std::ops::ControlFlow;

/// Characters that are stored.
const MAX_PROMPT: usize = 200;

/// The beginning of a text on one line, of at most `max_chars` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut room = most;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        let gap = usize::from(!line.is_empty());
        if room <= gap {
            break;
        }
        if gap > 0 {
            line.push(' ');
        }
        let before = line.len();
        line.extend(word.chars().take(room - gap));
        room -= gap + line[before..].chars().count();
    }
    line
}

/// Commands for the client rather than the agent: they do not name a session.
const SETTINGS: [&str; 24] = [
    "/clear",
    "/model",
    "/login",
    "/logout",
    "/config",
    "/cost",
    "/usage",
    "/compact",
    "/context",
    "/help",
    "/status",
    "/doctor",
    "/mcp",
    "/memory",
    "/permissions",
    "/resume",
    "/exit",
    "/quit",
    "/vim",
    "/theme",
    "/agents",
    "/hooks",
    "/ide",
    "/add-dir",
];

/// The first line of an item that is a non-empty prompt of the session itself, or a command with
/// its arguments that the agent executes.
pub(crate) fn of(item: &Item) -> Option<String> {
    let text = match &item.body {
        ItemBody::UserMessage { text, .. } => text,
        ItemBody::Notice { kind, text } if kind.as_str() == "command" => {
            let name = text.split_whitespace().next().unwrap_or_default();
            if SETTINGS.contains(&name) {
                return None;
            }
            text
        }
        _ => return None,
    };
    let line = item.parent.is_none().then(|| one_line(text, MAX_PROMPT))?;
    (!line.is_empty()).then_some(line)
}

/// Stores a prompt unless an earlier one is stored.
pub(crate) fn keep(db: &Db<'_>, session: i64, order: u64, prompt: &str) -> Result<()> {
    db.later(
        "UPDATE session SET prompt = ?2, prompt_order = ?3, prompt_crc = ?4
         WHERE key = ?1 AND (prompt_order IS NULL OR prompt_order >= ?3)",
        &params![session, prompt, order, sum::of(&params![session, prompt, order])],
    )
}

/// Like [`put`], for schemas without checksums.
fn keep_unchecked(db: &Db<'_>, session: i64, order: u64, prompt: &str) -> Result<()> {
    let set = "UPDATE session SET prompt = ?2, prompt_order = ?3 WHERE key = ?1";
    db.later(set, &params![session, prompt, order])
}

/// Finds the next first prompt if the removed item was it.
pub(crate) fn removed(db: &Db<'_>, session: i64, order: u64) -> Result<()> {
    let forget = "UPDATE session SET prompt = NULL, prompt_order = NULL, prompt_crc = NULL
                  WHERE key = ?1 AND prompt_order = ?2";
    if db.execute(forget, &params![session, order])? > 0 {
        find(db, session)?;
    }
    Ok(())
}

/// Finds and stores the first prompt by reading item rows.
pub(crate) fn find(db: &Db<'_>, session: i64) -> Result<()> {
    find_in(db, session, COLUMNS, keep)
}

/// Like [`find`], for schemas without checksums.
pub(crate) fn find_unchecked(db: &Db<'_>, session: i64) -> Result<()> {
    find_in(db, session, &COLUMNS.replace(", crc", ", NULL"), keep_unchecked)
}

/// Stores a prompt of a session, by its order.
type Keep = fn(&Db<'_>, i64, u64, &str) -> Result<()>;

fn find_in(db: &Db<'_>, session: i64, columns: &str, keep: Keep) -> Result<()> {
    let prompts = format!(
        "SELECT {columns} FROM item INDEXED BY item_mark
         WHERE parent IS NULL AND kind IN ('user_message', 'todo_list')
         AND kind = 'user_message' AND key BETWEEN ?1 AND ?2 ORDER BY key"
    );
    let (first, last) = keys(session);
    db.each(&prompts, &params![first, last], |row| {
        // An item that cannot be read is no prompt.
        let item = read_row(row).map(|(_, item)| item);
        let Some(prompt) = item.as_ref().and_then(of) else { return Ok(ControlFlow::Continue(())) };
        keep(db, session, number(row.get(0)?), &prompt)?;
        Ok(ControlFlow::Break(()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::read_item;

    #[test]
    fn a_command_for_the_agent_is_a_prompt() {
        let notice = |kind: &str, text: &str| {
            let item = format!(
                r#"{{"type":"notice","id":"n","order":0,"timestamp":null,"kind":"{kind}","text":"{text}"}}"#
            );
            of(&read_item(&item).unwrap())
        };
        assert_eq!(notice("command", "/greet  World").as_deref(), Some("/greet World"));
        assert_eq!(notice("command", "/clear"), None);
        assert_eq!(notice("command", "/model opus"), None);
        assert_eq!(notice("command_output", "/greet"), None);
    }

    #[test]
    fn a_line_is_the_beginning_without_breaks() {
        assert_eq!(one_line("  one\n\n two\tthree\u{7} four ", 99), "one two three four");
        assert_eq!(one_line("one two three", 9), "one two t");
        assert_eq!(one_line("one two three", 8), "one two");
        assert_eq!(one_line("ありがとう", 3), "ありが");
        assert_eq!(one_line(" \n ", 9), "");
        assert_eq!(one_line("one", 0), "");
    }
}
