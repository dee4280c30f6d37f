//! Asking the user what the agent asks.

use crate::client::Client;
use crate::{Fault, fault};
use narrows::Items;
use narrows::item::ItemBody;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};

/// Whoever answers the agent's questions.
#[derive(Debug)]
pub(super) struct Asking {
    yes: bool,
    asked: BTreeSet<String>,
}

impl Asking {
    pub(super) fn new(yes: bool) -> Self {
        Asking { yes, asked: BTreeSet::new() }
    }

    /// Asks what waits and was not asked yet, and gives the answers to the agent.
    pub(super) fn ask(
        &mut self,
        client: &Client,
        session: &str,
        requests: &[String],
        items: &Items,
    ) -> Result<(), Fault> {
        for request in requests {
            if self.asked.contains(request) {
                continue;
            }
            let Some(answer) = self.answer(request, items)? else { continue };
            self.asked.insert(request.clone());
            let path = format!("/api/sessions/{session}/permissions/{}", encoded(request));
            // Somebody may have answered on the page: that is no fault.
            if let Err(Fault { error, .. }) = client.post::<Value>(&path, &answer) {
                let _ = writeln!(io::stderr(), "{error}");
            }
        }
        Ok(())
    }

    /// The answer to a question; none while its item has not come.
    fn answer(&self, request: &str, items: &Items) -> Result<Option<Value>, Fault> {
        for item in items.iter() {
            match &item.body {
                ItemBody::Permission { request_id, title, options, .. }
                    if request_id.as_str() == request =>
                {
                    let title = title.as_ref().map_or("it wants to do something", |t| t.as_str());
                    let names: Vec<&str> = options.iter().map(|o| o.name.as_str()).collect();
                    let allow = options.iter().position(|o| o.kind.as_str().starts_with("allow"));
                    let chosen = match allow.filter(|_| self.yes) {
                        Some(allow) => allow,
                        None => choose(&format!("Leave for: {title}"), &names)?,
                    };
                    let option = options.get(chosen).map(|o| o.option_id.as_str());
                    return Ok(Some(match option {
                        Some(option) => json!({"optionId": option}),
                        None => json!({"outcome": "cancelled"}),
                    }));
                }
                ItemBody::Question { request_id: Some(id), questions, .. }
                    if id.as_str() == request =>
                {
                    let mut answers = serde_json::Map::new();
                    for part in questions {
                        let names: Vec<&str> =
                            part.options.iter().map(|o| o.label.as_str()).collect();
                        let chosen = choose(part.question.as_str(), &names)?;
                        let answer = names.get(chosen).copied().unwrap_or_default();
                        answers.insert(part.question.as_str().to_owned(), answer.into());
                    }
                    return Ok(Some(json!({"answers": answers})));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Asks on the terminal; the number of what was chosen.
fn choose(title: &str, options: &[&str]) -> Result<usize, Fault> {
    if !io::stdin().is_terminal() {
        let what = format!(
            "the agent asks, and nobody can answer here: {title} (--yes allows everything)"
        );
        return Err(fault(what));
    }
    let told = |e: io::Error| Fault::new("standard error")(e);
    let mut out = io::stderr().lock();
    writeln!(out, "\n? {}", shown(title)).map_err(told)?;
    for (n, option) in options.iter().enumerate() {
        writeln!(out, "  {}  {}", n + 1, shown(option)).map_err(told)?;
    }
    loop {
        write!(out, "1–{}: ", options.len()).and_then(|()| out.flush()).map_err(told)?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line).map_err(Fault::new("standard input"))? == 0 {
            return Ok(usize::MAX);
        }
        if let Ok(n @ 1..) = line.trim().parse::<usize>()
            && n <= options.len()
        {
            return Ok(n - 1);
        }
    }
}

/// Nothing that an agent writes moves the cursor or colours the question.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(2000).collect()
}

fn encoded(name: &str) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_~.".contains(b);
    let letter = |b: u8| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    name.bytes().map(letter).collect()
}
