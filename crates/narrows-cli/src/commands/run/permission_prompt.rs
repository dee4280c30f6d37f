//! Asking the user what the agent asks.

use super::Run;
use super::question::Question;
use super::terminal::Terminal;
use crate::Fault;
use crate::client::Client;
use narrows::Items;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Who answers what the agent asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// Whoever sits at the terminal.
    Ask,
    Allow,
    Deny,
}

/// Whoever answers the agent's questions.
pub(super) struct Asking {
    policy: Policy,
    asked: BTreeSet<String>,
    /// Where somebody can be asked; none when nobody is there.
    terminal: Option<Terminal>,
    /// What stands on the screen and waits for an answer.
    open: Option<(String, Question)>,
}

impl Asking {
    pub(super) fn new(policy: Policy) -> Self {
        Asking { policy, asked: BTreeSet::new(), terminal: Terminal::new(), open: None }
    }

    /// Whether questions are shown here, with what they are about.
    pub(super) fn shows(&self) -> bool {
        self.policy == Policy::Ask && self.terminal.is_some()
    }

    /// Takes up what waits and was not asked yet: answers it, or puts it on the screen. Returns what
    /// is asked when nobody can answer.
    pub(super) fn look(
        &mut self,
        client: &Client,
        session: &str,
        run: &Run,
        items: &Items,
    ) -> Result<Option<String>, Fault> {
        if let Some((request, _)) = &self.open {
            if run.requests.contains(request) {
                return Ok(None);
            }
            self.open = None;
            let _ = writeln!(io::stderr(), "\nit was answered elsewhere, or is not asked any more");
        }
        for request in &run.requests {
            if self.asked.contains(request) {
                continue;
            }
            // Its item may not have come yet.
            let Some(question) = Question::find(request, items, run.deny_reasons) else { continue };
            self.asked.insert(request.clone());
            let answer = match self.policy {
                Policy::Allow => question.allowed(),
                Policy::Deny => Some(question.denied()),
                Policy::Ask => None,
            };
            if let Some(answer) = answer {
                give(client, session, request, &answer);
                continue;
            }
            let Some(terminal) = &mut self.terminal else {
                // What only a person knows is not allowed or refused.
                let hint = match self.policy {
                    Policy::Allow => "--yes gives leave, but no answers; --no refuses",
                    _ => "--yes allows everything, --no refuses everything",
                };
                let title = question.title();
                return Ok(Some(format!(
                    "the agent asks, and nobody can answer here: {title} ({hint})"
                )));
            };
            // What was typed before the question is no answer to it.
            terminal.forget();
            question.show(&mut io::stderr().lock()).map_err(Fault::new("standard error"))?;
            self.open = Some((request.clone(), question));
            return Ok(None);
        }
        Ok(None)
    }

    /// Waits for a line while a question stands on the screen; none at the end of the input.
    pub(super) async fn line(&mut self) -> io::Result<Option<String>> {
        match (&self.open, &mut self.terminal) {
            (Some(_), Some(terminal)) => terminal.line().await,
            _ => std::future::pending().await,
        }
    }

    /// Takes a line that was typed.
    pub(super) fn take(
        &mut self,
        client: &Client,
        session: &str,
        line: Option<&str>,
    ) -> Result<(), Fault> {
        let Some((request, question)) = &mut self.open else { return Ok(()) };
        let answer = match line {
            None => Some(json!({"outcome": "cancelled"})),
            Some(line) => question.answer(line),
        };
        match answer {
            Some(answer) => {
                if !give(client, session, request, &answer) {
                    // What does not fit is asked again, if it is still asked.
                    self.asked.remove(request);
                }
                self.open = None;
            }
            None => {
                question.go_on(&mut io::stderr().lock()).map_err(Fault::new("standard error"))?
            }
        }
        Ok(())
    }

    /// Nobody answers any more: the turn is cancelled.
    pub(super) fn drop_open(&mut self) {
        self.open = None;
    }
}

/// Gives an answer; false when it is not taken.
fn give(client: &Client, session: &str, request: &str, answer: &Value) -> bool {
    let path = format!("/api/sessions/{session}/permissions/{}", encoded(request));
    // Somebody may have answered on the page: that is no fault.
    match client.post::<Value>(&path, answer) {
        Ok(_) => true,
        Err(Fault { error, .. }) => {
            let _ = writeln!(io::stderr(), "{error}");
            false
        }
    }
}

fn encoded(name: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_~.".contains(b);
    let letter = |b: u8| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    name.bytes().map(letter).collect()
}
