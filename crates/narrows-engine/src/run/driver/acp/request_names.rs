//! Names of the agent's requests outside of its connection. Agents may reuse an id; an answer by name must
//! never reach another request.

use super::{Acp, RpcMessage};
use serde_json::Value;
use std::collections::HashMap;

/// Names that are remembered. Beyond this number each request is numbered.
const MAX_REMEMBERED_NAMES: usize = 4096;

/// The names that were assigned in one process.
#[derive(Debug, Default)]
pub(super) struct RequestNames {
    /// How often each name was requested.
    used: HashMap<String, u64>,
    count: u64,
    /// Open requests without their default name: request id to name.
    renamed: HashMap<String, String>,
}

impl RequestNames {
    /// Assigns a name to a new request; the first request of an id gets the default name.
    pub(super) fn assign(&mut self, id: &Value, default_name: String) -> String {
        self.count += 1;
        let has_room = self.used.len() < MAX_REMEMBERED_NAMES;
        let mut number = match self.used.get_mut(&default_name) {
            Some(times) => {
                *times += 1;
                *times
            }
            None if has_room => {
                self.used.insert(default_name.clone(), 1);
                return default_name;
            }
            None => self.count,
        };
        // An id may look like the name of another request.
        let name = loop {
            let name = format!("{default_name}-{number}");
            if !self.used.contains_key(&name) {
                break name;
            }
            number += 1;
        };
        if has_room {
            self.used.insert(name.clone(), 1);
        }
        self.renamed.insert(id.to_string(), name.clone());
        name
    }

    /// The name of an open request, if it differs from the default.
    pub(super) fn get(&self, id: &Value) -> Option<&str> {
        self.renamed.get(&id.to_string()).map(String::as_str)
    }

    /// Removes the name of a request that is answered.
    pub(super) fn remove(&mut self, id: &Value) -> Option<String> {
        self.renamed.remove(&id.to_string())
    }

    /// Whether all open requests have their default names; hardly any agent reuses ids.
    pub(super) fn is_all_default(&self) -> bool {
        self.renamed.is_empty()
    }
}

impl Acp {
    /// The name of an open request outside of this connection.
    pub(super) fn request_name(&self, id: &Value) -> String {
        self.names.get(id).map_or_else(|| self.default_name(id), str::to_owned)
    }

    /// Assigns a name to a new request that is unique for the life of the process.
    pub(super) fn assign_name(&mut self, id: &Value) -> String {
        let default_name = self.default_name(id);
        let name = self.names.assign(id, default_name);
        self.line_request = self.names.get(id).map(str::to_owned);
        name
    }

    fn default_name(&self, id: &Value) -> String {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        format!("{}.{id}", self.start_params.run)
    }

    /// Writes a line for the log: direction, time and process around the message.
    pub(crate) fn envelope(&mut self, to_agent: bool, line: &[u8], at: &str, out: &mut Vec<u8>) {
        let object = line.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        // A line that is no message is logged as it is, so that the log shows it.
        if !object {
            return out.extend_from_slice(line);
        }
        let dir = if to_agent { "client->agent" } else { "agent->client" };
        let run = &self.start_params.run;
        let head = format!(r#"{{"ts":"{at}","dir":"{dir}","run":"{run}","#);
        out.extend_from_slice(head.as_bytes());
        let about = if to_agent { self.answered_request(line) } else { self.line_request.take() };
        if let Some(name) = about {
            let name = format!(r#""request":{},"#, Value::from(name));
            out.extend_from_slice(name.as_bytes());
        }
        out.extend_from_slice(br#""msg":"#);
        out.extend_from_slice(line);
        out.push(b'}');
    }

    /// The name of the request that a line to the agent answers, if it differs from the default.
    fn answered_request(&mut self, line: &[u8]) -> Option<String> {
        if self.names.is_all_default() {
            return None;
        }
        let message = serde_json::from_slice::<RpcMessage<'_>>(line).ok()?;
        if message.method.is_some() {
            return None;
        }
        self.names.remove(&message.id?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn request_names_are_unique() {
        let mut names = RequestNames::default();
        let mut assign = |id: Value| {
            let default_name = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            names.assign(&id, format!("r1.{default_name}"))
        };
        assert_eq!(assign(json!(8)), "r1.8");
        assert_eq!(assign(json!(8)), "r1.8-2");
        assert_eq!(assign(json!("8-3")), "r1.8-3");
        assert_eq!(assign(json!("8")), "r1.8-4");
        assert_eq!(assign(json!("8-2")), "r1.8-2-2");
        let mut given: std::collections::HashSet<String> =
            ["r1.8", "r1.8-2", "r1.8-3", "r1.8-4", "r1.8-2-2"].map(str::to_owned).into();
        // Also beyond the number of remembered names.
        for id in (0..6000).chain(5990..6000) {
            assert!(given.insert(assign(json!(id))), "{id}");
        }
    }
}
