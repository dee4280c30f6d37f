//! Answers the agent's permission requests and questions: by policy, or in the terminal.

use super::RunStatus;
use super::agent_request::AgentRequest;
use super::line_reader::LineReader;
use crate::client::{Client, encode_segment};
use crate::error::CliError;
use narrows::Items;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermissionPolicy {
    /// Prompt in the terminal.
    Ask,
    Allow,
    Deny,
}

/// A request that is still open at the end of the turn.
pub(super) struct OpenRequest {
    /// For people.
    pub(super) message: String,
    /// For `--json`.
    pub(super) json: Value,
}

pub(super) struct PermissionPrompter {
    policy: PermissionPolicy,
    /// Ids of requests that were prompted for or answered.
    handled: BTreeSet<String>,
    /// Reads answers; none if standard input is not a terminal.
    terminal: Option<LineReader>,
    /// The request on the screen and its id.
    open: Option<(String, AgentRequest)>,
}

impl PermissionPrompter {
    pub(super) fn new(policy: PermissionPolicy) -> Self {
        PermissionPrompter {
            policy,
            handled: BTreeSet::new(),
            terminal: LineReader::new(),
            open: None,
        }
    }

    /// Whether requests are shown as prompts.
    pub(super) fn prompts(&self) -> bool {
        self.policy == PermissionPolicy::Ask && self.terminal.is_some()
    }

    /// Answers new requests by policy, or prompts for the next one. Returns a message about the first
    /// request that nobody can answer.
    pub(super) fn poll(
        &mut self,
        client: &Client,
        session: &str,
        run: &RunStatus,
        items: &Items,
    ) -> Result<Option<String>, CliError> {
        if let Some((id, _)) = &self.open {
            if run.requests.contains(id) {
                return Ok(None);
            }
            self.open = None;
            let _ = writeln!(io::stderr(), "\nanswered elsewhere or withdrawn");
        }
        for id in &run.requests {
            if self.handled.contains(id) {
                continue;
            }
            // The run's state may be ahead of the log.
            let Some(request) = AgentRequest::find(id, items, run.deny_reasons) else { continue };
            self.handled.insert(id.clone());
            let answer = match self.policy {
                PermissionPolicy::Allow => request.allowed(),
                PermissionPolicy::Deny => Some(request.denied()),
                PermissionPolicy::Ask => None,
            };
            if let Some(answer) = answer {
                submit_answer(client, session, id, &answer);
                continue;
            }
            let Some(terminal) = &mut self.terminal else {
                // A question has no default answer.
                let hint = match self.policy {
                    PermissionPolicy::Allow => {
                        "--yes does not answer questions; --no declines them"
                    }
                    _ => "use --yes to approve all requests, or --no to deny them",
                };
                let title = request.title();
                return Ok(Some(format!(
                    "cannot answer the agent: standard input is not a terminal: {title}; {hint}"
                )));
            };
            // Input typed before the prompt is not an answer to it.
            terminal.discard();
            request
                .prompt(&mut io::stderr().lock())
                .map_err(CliError::cannot("write to standard error"))?;
            self.open = Some((id.clone(), request));
            return Ok(None);
        }
        Ok(None)
    }

    /// Waits for a line while a prompt is open; none at the end of the input.
    pub(super) async fn next_line(&mut self) -> io::Result<Option<String>> {
        match (&self.open, &mut self.terminal) {
            (Some(_), Some(terminal)) => terminal.next_line().await,
            _ => std::future::pending().await,
        }
    }

    /// Takes a line as the answer to the open prompt.
    pub(super) fn on_line(
        &mut self,
        client: &Client,
        session: &str,
        line: Option<&str>,
    ) -> Result<(), CliError> {
        let Some((id, request)) = &mut self.open else { return Ok(()) };
        let answer = match line {
            None => Some(json!({"outcome": "cancelled"})),
            Some(line) => request.answer(line),
        };
        match answer {
            Some(answer) => {
                if !submit_answer(client, session, id, &answer) {
                    // Prompt again if the request is still open.
                    self.handled.remove(id);
                }
                self.open = None;
            }
            None => request
                .prompt_next(&mut io::stderr().lock())
                .map_err(CliError::cannot("write to standard error"))?,
        }
        Ok(())
    }

    /// Returns the requests that are open at the end of the turn, after answering those that the policy
    /// answers. With `private_server` they end with the server.
    pub(super) fn open_requests(
        &mut self,
        client: &Client,
        session: &str,
        items: &Items,
        private_server: bool,
    ) -> Result<Vec<OpenRequest>, CliError> {
        let path = format!("/api/sessions/{session}/run");
        let mut run: RunStatus = client.get(&path)?;
        self.open = None;
        if self.policy != PermissionPolicy::Ask && !run.requests.is_empty() {
            self.poll(client, session, &run, items)?;
            run = client.get(&path)?;
        }
        let open = run.requests.iter().map(|id| {
            let title = AgentRequest::find(id, items, false).map(|request| request.title());
            let path = format!("/api/sessions/{session}/permissions/{}", encode_segment(id));
            let json = json!({
                "type": "open_request", "sessionId": session, "requestId": id,
                "title": title, "answer": if private_server { None } else { Some(&path) },
            });
            let title = title.map_or(String::new(), |title| format!(": {title}"));
            let hint = if private_server {
                "it ended unanswered, with the agent".to_owned()
            } else {
                format!("answer it on the page, or with POST {path}")
            };
            let message = format!(
                "the turn is over, and the agent still asks{title} (session {session}, request {id}): \
                 {hint}"
            );
            OpenRequest { message, json }
        });
        Ok(open.collect())
    }

    /// Closes the open prompt, because the turn is cancelled.
    pub(super) fn dismiss(&mut self) {
        self.open = None;
    }
}

/// Submits an answer; false if the server refuses it.
fn submit_answer(client: &Client, session: &str, request: &str, answer: &Value) -> bool {
    let path = format!("/api/sessions/{session}/permissions/{}", encode_segment(request));
    match client.post::<Value>(&path, answer) {
        Ok(_) => true,
        // The request may have been answered in the web UI meanwhile.
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            false
        }
    }
}
