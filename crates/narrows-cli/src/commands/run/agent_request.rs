//! A permission request or question of the agent, as a prompt in the terminal.

use narrows::Items;
use narrows::event::{Choice, QuestionPart};
use narrows::item::{ItemBody, ToolItem};
use narrows_render::{asked, escape};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// What the agent asks.
#[derive(Debug)]
pub(super) enum AgentRequest {
    /// May a tool call run? `accepts_reason` says that a denial may have a reason.
    Permission {
        title: String,
        lines: Vec<String>,
        options: Vec<PermissionChoice>,
        accepts_reason: bool,
    },
    /// Questions that are asked one by one; `next` is the one on the screen.
    Questions { questions: Vec<QuestionField>, next: usize, answers: Map<String, Value> },
}

/// One way to answer a permission request.
#[derive(Debug)]
pub(super) struct PermissionChoice {
    id: String,
    name: String,
    kind: String,
    /// A letter that selects it, like its number does.
    letter: Option<char>,
}

#[derive(Debug)]
pub(super) struct QuestionField {
    question: String,
    /// The key of the answer: the name of a form field, or the text of the question.
    key: String,
    options: Vec<(String, Option<String>)>,
    multi_select: bool,
    /// A form field accepts only its options.
    is_form_field: bool,
    format: Option<String>,
    default: Option<String>,
    optional: bool,
}

/// A line as the answer to one question.
#[derive(Debug, PartialEq, Eq)]
enum LineAnswer {
    Text(String),
    /// Leaves this question unanswered.
    Skip,
    /// Declines the whole request.
    Decline,
}

impl AgentRequest {
    /// Finds the request with an id among the items; none if its item is not there yet.
    pub(super) fn find(request: &str, items: &Items, accepts_reason: bool) -> Option<AgentRequest> {
        items.iter().find_map(|item| match &item.body {
            ItemBody::Permission {
                request_id, title, options, tool_call, tool_call_id, ..
            } if request_id.as_str() == request => {
                let title = title.as_ref().map_or("", |t| t.as_str());
                let call = tool_call.as_deref().or_else(|| find_tool_call(items, tool_call_id));
                Some(AgentRequest::permission(title, call, options, accepts_reason))
            }
            ItemBody::Question { request_id: Some(id), questions, .. }
                if id.as_str() == request =>
            {
                let questions = questions.iter().map(QuestionField::new).collect();
                Some(AgentRequest::Questions { questions, next: 0, answers: Map::new() })
            }
            _ => None,
        })
    }

    fn permission(
        title: &str,
        call: Option<&ToolItem>,
        options: &[Choice],
        accepts_reason: bool,
    ) -> AgentRequest {
        let lines = call.map(|item| asked::lines(&item.call)).unwrap_or_default();
        let title = match call {
            Some(item) if !lines.is_empty() => asked::wants(&item.call),
            _ if title.trim().is_empty() => "do something".to_owned(),
            _ => escape::line(title),
        };
        // Each letter goes to the first option of its kind.
        let mut letters = vec![
            ("reject_always", 'd'),
            ("reject_once", 'n'),
            ("allow_always", 'a'),
            ("allow_once", 'y'),
        ];
        let options = options.iter().map(|option| {
            let kind = option.kind.as_str();
            let at = letters.iter().position(|(known, _)| *known == kind);
            PermissionChoice {
                id: option.option_id.as_str().to_owned(),
                name: escape::line(&option.name),
                kind: kind.to_owned(),
                letter: at.map(|at| letters.remove(at).1),
            }
        });
        AgentRequest::Permission { title, lines, options: options.collect(), accepts_reason }
    }

    /// Describes the request in one line.
    pub(super) fn title(&self) -> String {
        match self {
            AgentRequest::Permission { title, lines, .. } => match lines.first() {
                Some(first) => format!("permission to {title}: {first}"),
                None => format!("permission to {title}"),
            },
            AgentRequest::Questions { questions, .. } => {
                questions.first().map(|q| escape::line(&q.question)).unwrap_or_default()
            }
        }
    }

    /// The answer that allows it; none for questions.
    pub(super) fn allowed(&self) -> Option<Value> {
        let AgentRequest::Permission { options, .. } = self else { return None };
        let once = options.iter().find(|o| o.kind == "allow_once");
        let any = || options.iter().find(|o| o.kind.starts_with("allow"));
        once.or_else(any).map(|option| json!({"optionId": option.id}))
    }

    /// The answer that denies or declines it.
    pub(super) fn denied(&self) -> Value {
        let AgentRequest::Permission { options, .. } = self else {
            return json!({"outcome": "declined"});
        };
        let once = options.iter().find(|o| o.kind == "reject_once");
        let any = || options.iter().find(|o| o.kind.starts_with("reject"));
        match once.or_else(any) {
            Some(option) => json!({"optionId": option.id}),
            None => json!({"outcome": "cancelled"}),
        }
    }

    /// Prints the request and asks for an answer.
    pub(super) fn prompt(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            AgentRequest::Permission { title, lines, options, .. } => {
                writeln!(out, "\n? The agent wants to {title}")?;
                for line in lines {
                    writeln!(out, "    {line}")?;
                }
                for (n, option) in options.iter().enumerate() {
                    let letter = option.letter.map_or(' ', |l| l);
                    writeln!(out, "  {}  {letter}  {}", n + 1, option.name)?;
                }
            }
            AgentRequest::Questions { .. } => {
                if let Some(question) = self.current_question() {
                    question.print(out)?;
                }
            }
        }
        self.print_answer_hint(out)
    }

    /// Asks again, or asks the next question.
    pub(super) fn prompt_next(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            AgentRequest::Permission { .. } => self.print_answer_hint(out),
            AgentRequest::Questions { .. } => self.prompt(out),
        }
    }

    /// Prints which answers are accepted.
    fn print_answer_hint(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            AgentRequest::Permission { options, accepts_reason, .. } => {
                let letters: Vec<String> =
                    options.iter().filter_map(|o| o.letter).map(|l| l.to_string()).collect();
                let reason = if *accepts_reason { ", or `n` and a reason" } else { "" };
                write!(out, "{} or 1–{}{reason}: ", letters.join(", "), options.len())?;
            }
            AgentRequest::Questions { .. } => {
                if let Some(question) = self.current_question() {
                    write!(out, "{}: ", question.hint())?;
                }
            }
        }
        out.flush()
    }

    /// Takes a line; returns the answer when it is complete.
    pub(super) fn answer(&mut self, line: &str) -> Option<Value> {
        match self {
            AgentRequest::Permission { options, accepts_reason, .. } => {
                if let Ok(n @ 1..) = line.parse::<usize>() {
                    return options.get(n - 1).map(|option| json!({"optionId": option.id}));
                }
                let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                let letter = match word.to_lowercase().as_str() {
                    "yes" => 'y',
                    "no" => 'n',
                    "always" => 'a',
                    other => other.chars().next().filter(|_| other.chars().count() == 1)?,
                };
                let option = options.iter().find(|o| o.letter == Some(letter))?;
                let reason = reason.trim();
                if reason.is_empty() {
                    return Some(json!({"optionId": option.id}));
                }
                let is_denial = *accepts_reason && option.kind.starts_with("reject");
                is_denial.then(|| json!({"optionId": option.id, "message": reason}))
            }
            AgentRequest::Questions { questions, next, answers } => {
                let question = questions.get(*next)?;
                match question.answer(line)? {
                    LineAnswer::Text(answer) => {
                        answers.insert(question.key.clone(), answer.into());
                    }
                    LineAnswer::Skip => {}
                    LineAnswer::Decline => return Some(json!({"outcome": "declined"})),
                }
                *next += 1;
                (*next == questions.len()).then(|| json!({"answers": answers}))
            }
        }
    }

    /// The question on the screen.
    fn current_question(&self) -> Option<&QuestionField> {
        match self {
            AgentRequest::Questions { questions, next, .. } => questions.get(*next),
            AgentRequest::Permission { .. } => None,
        }
    }
}

impl QuestionField {
    fn new(part: &QuestionPart) -> QuestionField {
        let option = |o: &narrows::event::QuestionOption| {
            (o.label.as_str().to_owned(), o.description.as_ref().map(|d| escape::line(d)))
        };
        let text = |text: &Option<narrows::Clean>| text.as_ref().map(|t| t.as_str().to_owned());
        let question = part.question.as_str().to_owned();
        QuestionField {
            key: text(&part.name).unwrap_or_else(|| question.clone()),
            question,
            options: part.options.iter().map(option).collect(),
            multi_select: part.multi_select,
            is_form_field: part.name.is_some(),
            format: text(&part.format),
            default: text(&part.default),
            optional: part.optional,
        }
    }

    /// Whether there is nothing to type, only something to do or to look at.
    fn is_acknowledgement(&self) -> bool {
        self.optional && !self.is_form_field
    }

    /// Describes which answers are accepted.
    fn hint(&self) -> String {
        if self.is_acknowledgement() {
            return "Enter when done, or n".to_owned();
        }
        let kind = match (self.format.as_deref(), self.multi_select, self.options.is_empty()) {
            (Some(format), ..) => escape::line(format),
            (_, true, true) => "words, separated by commas".to_owned(),
            (_, true, false) if self.is_form_field => "numbers".to_owned(),
            (_, false, false) if self.is_form_field => "a number of these".to_owned(),
            (_, _, true) => "your answer".to_owned(),
            (_, true, _) => "numbers, or your own words".to_owned(),
            (_, false, _) => "a number, or your own words".to_owned(),
        };
        match &self.default {
            Some(default) => format!("{kind} [{}]", escape::line(default)),
            None if self.optional => format!("{kind}, or Enter for none"),
            None => kind,
        }
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.question.lines().map(escape::line);
        writeln!(out, "\n? {}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "  {line}")?;
        }
        for (n, (label, description)) in self.options.iter().enumerate() {
            let description = description.as_ref().filter(|d| *d != label);
            let description = description.map(|d| format!(" – {d}")).unwrap_or_default();
            writeln!(out, "  {}  {}{description}", n + 1, escape::line(label))?;
        }
        Ok(())
    }

    /// Takes numbers as options, and anything else as free text. None if the line is not accepted.
    fn answer(&self, line: &str) -> Option<LineAnswer> {
        if self.is_acknowledgement() {
            return match line.to_lowercase().as_str() {
                "" | "y" | "yes" => Some(LineAnswer::Skip),
                "n" | "no" => Some(LineAnswer::Decline),
                _ => None,
            };
        }
        if line.is_empty() {
            let default = self.default.clone().map(LineAnswer::Text);
            return default.or(self.optional.then_some(LineAnswer::Skip));
        }
        if self.options.is_empty() {
            return Some(LineAnswer::Text(line.to_owned()));
        }
        let numbers: Result<Vec<usize>, _> =
            line.split([',', ' ']).filter(|n| !n.is_empty()).map(str::parse).collect();
        let Ok(numbers) = numbers else {
            let is_option = || self.options.iter().any(|(label, _)| label == line);
            return (!self.is_form_field || self.multi_select || is_option())
                .then(|| LineAnswer::Text(line.to_owned()));
        };
        if numbers.len() > 1 && !self.multi_select {
            return None;
        }
        let labels: Option<Vec<&str>> = numbers
            .into_iter()
            .map(|n| self.options.get(n.checked_sub(1)?).map(|(label, _)| label.as_str()))
            .collect();
        labels.filter(|l| !l.is_empty()).map(|labels| LineAnswer::Text(labels.join(", ")))
    }
}

fn find_tool_call<'a>(items: &'a Items, id: &str) -> Option<&'a ToolItem> {
    match &items.get(id)?.body {
        ItemBody::ToolCall { tool_call } => Some(tool_call),
        _ => None,
    }
}
