//! What requests of an agent are called outside of its connection. Agents may use an id again; an
//! answer that comes by its name must never reach another request.

use super::{Acp, Message};
use serde_json::Value;
use std::collections::HashMap;

/// Names that are remembered. After so many, each request is numbered.
const MAX_USED: usize = 4096;

/// The names that were given in one process.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// How often each was wanted.
    used: HashMap<String, u64>,
    count: u64,
    /// Open requests that are not called by their id, by that.
    other: HashMap<String, String>,
}

impl Names {
    /// A name for a new request of this id, whose first one is called `plain`.
    pub(super) fn give(&mut self, id: &Value, plain: String) -> String {
        self.count += 1;
        let has_room = self.used.len() < MAX_USED;
        let mut number = match self.used.get_mut(&plain) {
            Some(times) => {
                *times += 1;
                *times
            }
            None if has_room => {
                self.used.insert(plain.clone(), 1);
                return plain;
            }
            None => self.count,
        };
        // An id may look like the name of another request.
        let name = loop {
            let name = format!("{plain}-{number}");
            if !self.used.contains_key(&name) {
                break name;
            }
            number += 1;
        };
        if has_room {
            self.used.insert(name.clone(), 1);
        }
        self.other.insert(id.to_string(), name.clone());
        name
    }

    /// What the open request of this id is called, unless by its id.
    pub(super) fn of(&self, id: &Value) -> Option<&str> {
        self.other.get(&id.to_string()).map(String::as_str)
    }

    /// The same for the last time: it is answered.
    pub(super) fn take(&mut self, id: &Value) -> Option<String> {
        self.other.remove(&id.to_string())
    }

    /// Whether every open request is called by its id: hardly any agent uses one twice.
    pub(super) fn are_ids(&self) -> bool {
        self.other.is_empty()
    }
}

impl Acp {
    /// What an open request is called outside of this connection.
    pub(super) fn name(&self, id: &Value) -> String {
        self.names.of(id).map_or_else(|| self.plain(id), str::to_owned)
    }

    /// A name for a new request: none has it, as long as the process lives.
    pub(super) fn new_name(&mut self, id: &Value) -> String {
        let plain = self.plain(id);
        let name = self.names.give(id, plain);
        self.about = self.names.of(id).map(str::to_owned);
        name
    }

    fn plain(&self, id: &Value) -> String {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        format!("{}.{id}", self.opening.run)
    }

    /// A line of the log: who said it, when, and in which process.
    pub(crate) fn wrap(&mut self, to_agent: bool, line: &[u8], at: &str, out: &mut Vec<u8>) {
        let object = line.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        // What is no message stays as it is: the log tells that there was such a line.
        if !object {
            return out.extend_from_slice(line);
        }
        let dir = if to_agent { "client->agent" } else { "agent->client" };
        let run = &self.opening.run;
        let head = format!(r#"{{"ts":"{at}","dir":"{dir}","run":"{run}","#);
        out.extend_from_slice(head.as_bytes());
        let about = if to_agent { self.answers(line) } else { self.about.take() };
        if let Some(name) = about {
            let name = format!(r#""request":{},"#, Value::from(name));
            out.extend_from_slice(name.as_bytes());
        }
        out.extend_from_slice(br#""msg":"#);
        out.extend_from_slice(line);
        out.push(b'}');
    }

    /// What the request is called, unless by its id, that a line to the agent answers.
    fn answers(&mut self, line: &[u8]) -> Option<String> {
        if self.names.are_ids() {
            return None;
        }
        let message = serde_json::from_slice::<Message<'_>>(line).ok()?;
        if message.method.is_some() {
            return None;
        }
        self.names.take(&message.id?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_name_is_given_twice() {
        let mut names = Names::default();
        let mut give = |id: Value| {
            let plain = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            names.give(&id, format!("r1.{plain}"))
        };
        assert_eq!(give(json!(8)), "r1.8");
        assert_eq!(give(json!(8)), "r1.8-2");
        assert_eq!(give(json!("8-3")), "r1.8-3");
        assert_eq!(give(json!("8")), "r1.8-4");
        assert_eq!(give(json!("8-2")), "r1.8-2-2");
        let mut given: std::collections::HashSet<String> =
            ["r1.8", "r1.8-2", "r1.8-3", "r1.8-4", "r1.8-2-2"].map(str::to_owned).into();
        // Also when more came than are remembered.
        for id in (0..6000).chain(5990..6000) {
            assert!(given.insert(give(json!(id))), "{id}");
        }
    }
}
