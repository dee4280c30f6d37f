//! The first prompt of a session, which names a session without a title.

use crate::checksum;
use crate::db::{Db, params};
use crate::error::Result;
use crate::items::{COLUMNS, read_row};
use crate::keys::{keys, number};
use narrows::Item;
use narrows::item::ItemBody;
use std::ops::ControlFlow;

/// Characters that are stored.
const MAX_PROMPT_CHARS: usize = 200;

/// The beginning of a text on one line, of at most `max_chars` characters.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut room = max_chars;
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
const CLIENT_COMMANDS: [&str; 24] = [
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
pub(crate) fn first_line(item: &Item) -> Option<String> {
    let text = match &item.body {
        ItemBody::UserMessage { text, .. } => text,
        ItemBody::Notice { kind, text } if kind.as_str() == "command" => {
            let name = text.split_whitespace().next().unwrap_or_default();
            if CLIENT_COMMANDS.contains(&name) {
                return None;
            }
            text
        }
        _ => return None,
    };
    let line = item.parent.is_none().then(|| one_line(text, MAX_PROMPT_CHARS))?;
    (!line.is_empty()).then_some(line)
}

/// Stores a prompt unless an earlier one is stored.
pub(crate) fn put(db: &Db<'_>, session: i64, order: u64, prompt: &str) -> Result<()> {
    db.execute_pipelined(
        "UPDATE session SET prompt = ?2, prompt_order = ?3, prompt_crc = ?4
         WHERE key = ?1 AND (prompt_order IS NULL OR prompt_order >= ?3)",
        &params![session, prompt, order, checksum::of_values(&params![session, prompt, order])],
    )
}

/// Like [`put`], for schemas without checksums.
fn put_unchecked(db: &Db<'_>, session: i64, order: u64, prompt: &str) -> Result<()> {
    let set = "UPDATE session SET prompt = ?2, prompt_order = ?3 WHERE key = ?1";
    db.execute_pipelined(set, &params![session, prompt, order])
}

/// Finds the next first prompt if the removed item was it.
pub(crate) fn removed(db: &Db<'_>, session: i64, order: u64) -> Result<()> {
    let clear = "UPDATE session SET prompt = NULL, prompt_order = NULL, prompt_crc = NULL
                  WHERE key = ?1 AND prompt_order = ?2";
    if db.execute(clear, &params![session, order])? > 0 {
        find(db, session)?;
    }
    Ok(())
}

/// Finds and stores the first prompt by reading item rows.
pub(crate) fn find(db: &Db<'_>, session: i64) -> Result<()> {
    find_in(db, session, COLUMNS, put)
}

/// Like [`find`], for schemas without checksums.
pub(crate) fn find_unchecked(db: &Db<'_>, session: i64) -> Result<()> {
    find_in(db, session, &COLUMNS.replace(", crc", ", NULL"), put_unchecked)
}

/// Stores a prompt of a session, by its order.
type StorePrompt = fn(&Db<'_>, i64, u64, &str) -> Result<()>;

fn find_in(db: &Db<'_>, session: i64, columns: &str, store: StorePrompt) -> Result<()> {
    let prompts = format!(
        "SELECT {columns} FROM item INDEXED BY item_mark
         WHERE parent IS NULL AND kind IN ('user_message', 'todo_list')
         AND kind = 'user_message' AND key BETWEEN ?1 AND ?2 ORDER BY key"
    );
    let (first, last) = keys(session);
    db.query_each(&prompts, &params![first, last], |row| {
        // An item that cannot be read is no prompt.
        let item = read_row(row).map(|(_, item)| item);
        let Some(prompt) = item.as_ref().and_then(first_line) else {
            return Ok(ControlFlow::Continue(()));
        };
        store(db, session, number(row.get(0)?), &prompt)?;
        Ok(ControlFlow::Break(()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::read_item;

    #[test]
    fn agent_command_is_prompt() {
        let notice = |kind: &str, text: &str| {
            let item = format!(
                r#"{{"type":"notice","id":"n","order":0,"timestamp":null,"kind":"{kind}","text":"{text}"}}"#
            );
            first_line(&read_item(&item).unwrap())
        };
        assert_eq!(notice("command", "/greet  World").as_deref(), Some("/greet World"));
        assert_eq!(notice("command", "/clear"), None);
        assert_eq!(notice("command", "/model opus"), None);
        assert_eq!(notice("command_output", "/greet"), None);
    }

    #[test]
    fn one_line_truncates_and_joins_words() {
        assert_eq!(one_line("  one\n\n two\tthree\u{7} four ", 99), "one two three four");
        assert_eq!(one_line("one two three", 9), "one two t");
        assert_eq!(one_line("one two three", 8), "one two");
        assert_eq!(one_line("ありがとう", 3), "ありが");
        assert_eq!(one_line(" \n ", 9), "");
        assert_eq!(one_line("one", 0), "");
    }
}
