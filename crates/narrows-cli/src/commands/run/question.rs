//! A question of the agent: what it is about, and what is an answer to it.

use narrows::Items;
use narrows::event::{Choice, QuestionPart};
use narrows::item::{ItemBody, ToolItem};
use narrows_show::{asked, escape};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// What is asked.
#[derive(Debug)]
pub(super) enum Question {
    /// The agent wants leave for something.
    Leave { title: String, lines: Vec<String>, options: Vec<Offer>, reasons: bool },
    /// The agent wants to know something; its parts, and what was answered so far.
    Parts { parts: Vec<Part>, at: usize, given: Map<String, Value> },
}

#[derive(Debug)]
pub(super) struct Offer {
    id: String,
    name: String,
    kind: String,
    /// The letter by which it is chosen, beside its number.
    letter: Option<char>,
}

#[derive(Debug)]
pub(super) struct Part {
    question: String,
    /// The name by which the answer is given: that of a form's field, or the agent's words.
    key: String,
    options: Vec<(String, Option<String>)>,
    many: bool,
    /// It is a field of a form: its options are all there are.
    field: bool,
    format: Option<String>,
    suggested: Option<String>,
    optional: bool,
}

/// What a line says to a part.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Answer(String),
    /// The part stays without an answer.
    Nothing,
    /// The question stays without an answer.
    Declined,
}

impl Question {
    /// The question of this id among the items; none while it has not come.
    pub(super) fn find(request: &str, items: &Items, reasons: bool) -> Option<Question> {
        items.iter().find_map(|item| match &item.body {
            ItemBody::Permission {
                request_id, title, options, tool_call, tool_call_id, ..
            } if request_id.as_str() == request => {
                let title = title.as_ref().map_or("", |t| t.as_str());
                let call = tool_call.as_deref().or_else(|| find_call(items, tool_call_id));
                Some(Question::leave(title, call, options, reasons))
            }
            ItemBody::Question { request_id: Some(id), questions, .. }
                if id.as_str() == request =>
            {
                let parts = questions.iter().map(Part::of).collect();
                Some(Question::Parts { parts, at: 0, given: Map::new() })
            }
            _ => None,
        })
    }

    fn leave(title: &str, call: Option<&ToolItem>, options: &[Choice], reasons: bool) -> Question {
        let lines = call.map(|item| asked::lines(&item.call)).unwrap_or_default();
        let title = match call {
            Some(item) if !lines.is_empty() => asked::wants(&item.call),
            _ if title.trim().is_empty() => "do something".to_owned(),
            _ => escape::line(title),
        };
        let mut free = vec![
            ("reject_always", 'd'),
            ("reject_once", 'n'),
            ("allow_always", 'a'),
            ("allow_once", 'y'),
        ];
        let offers = options.iter().map(|option| {
            let kind = option.kind.as_str();
            let at = free.iter().position(|(known, _)| *known == kind);
            Offer {
                id: option.option_id.as_str().to_owned(),
                name: escape::line(&option.name),
                kind: kind.to_owned(),
                letter: at.map(|at| free.remove(at).1),
            }
        });
        Question::Leave { title, lines, options: offers.collect(), reasons }
    }

    /// What it is about, in one line.
    pub(super) fn title(&self) -> String {
        match self {
            Question::Leave { title, lines, .. } => match lines.first() {
                Some(first) => format!("it wants to {title}: {first}"),
                None => format!("it wants to {title}"),
            },
            Question::Parts { parts, .. } => {
                parts.first().map(|p| escape::line(&p.question)).unwrap_or_default()
            }
        }
    }

    /// The answer that allows it, where there is one.
    pub(super) fn allowed(&self) -> Option<Value> {
        let Question::Leave { options, .. } = self else { return None };
        let once = options.iter().find(|o| o.kind == "allow_once");
        let any = || options.iter().find(|o| o.kind.starts_with("allow"));
        once.or_else(any).map(|option| json!({"optionId": option.id}))
    }

    /// The answer that refuses it.
    pub(super) fn denied(&self) -> Value {
        let Question::Leave { options, .. } = self else { return json!({"outcome": "declined"}) };
        let once = options.iter().find(|o| o.kind == "reject_once");
        let any = || options.iter().find(|o| o.kind.starts_with("reject"));
        match once.or_else(any) {
            Some(option) => json!({"optionId": option.id}),
            None => json!({"outcome": "cancelled"}),
        }
    }

    /// Puts it on the screen.
    pub(super) fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Question::Leave { title, lines, options, .. } => {
                writeln!(out, "\n? The agent wants to {title}")?;
                for line in lines {
                    writeln!(out, "    {line}")?;
                }
                for (n, option) in options.iter().enumerate() {
                    let letter = option.letter.map_or(' ', |l| l);
                    writeln!(out, "  {}  {letter}  {}", n + 1, option.name)?;
                }
            }
            Question::Parts { .. } => {
                if let Some(part) = self.part() {
                    part.show(out)?;
                }
            }
        }
        self.again(out)
    }

    /// Asks again, or asks the next part.
    pub(super) fn go_on(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Question::Leave { .. } => self.again(out),
            Question::Parts { .. } => self.show(out),
        }
    }

    /// Says what is an answer.
    fn again(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Question::Leave { options, reasons, .. } => {
                let letters: Vec<String> =
                    options.iter().filter_map(|o| o.letter).map(|l| l.to_string()).collect();
                let why = if *reasons { ", or `n` and why not" } else { "" };
                write!(out, "{} or 1–{}{why}: ", letters.join(", "), options.len())?;
            }
            Question::Parts { .. } => {
                if let Some(part) = self.part() {
                    write!(out, "{}: ", part.hint())?;
                }
            }
        }
        out.flush()
    }

    /// What was typed, as an answer; none when it is none, or not all of it.
    pub(super) fn answer(&mut self, line: &str) -> Option<Value> {
        match self {
            Question::Leave { options, reasons, .. } => {
                if let Ok(n @ 1..) = line.parse::<usize>() {
                    return options.get(n - 1).map(|option| json!({"optionId": option.id}));
                }
                let (word, why) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                let word = match word.to_lowercase().as_str() {
                    "yes" => 'y',
                    "no" => 'n',
                    "always" => 'a',
                    other => other.chars().next().filter(|_| other.chars().count() == 1)?,
                };
                let option = options.iter().find(|o| o.letter == Some(word))?;
                let why = why.trim();
                if why.is_empty() {
                    return Some(json!({"optionId": option.id}));
                }
                let refuses = *reasons && option.kind.starts_with("reject");
                refuses.then(|| json!({"optionId": option.id, "message": why}))
            }
            Question::Parts { parts, at, given } => {
                let part = parts.get(*at)?;
                match part.answer(line)? {
                    Said::Answer(answer) => {
                        given.insert(part.key.clone(), answer.into());
                    }
                    Said::Nothing => {}
                    Said::Declined => return Some(json!({"outcome": "declined"})),
                }
                *at += 1;
                (*at == parts.len()).then(|| json!({"answers": given}))
            }
        }
    }

    /// The part that is asked now.
    fn part(&self) -> Option<&Part> {
        match self {
            Question::Parts { parts, at, .. } => parts.get(*at),
            Question::Leave { .. } => None,
        }
    }
}

impl Part {
    fn of(part: &QuestionPart) -> Part {
        let option = |o: &narrows::event::QuestionOption| {
            (o.label.as_str().to_owned(), o.description.as_ref().map(|d| escape::line(d)))
        };
        let text = |text: &Option<narrows::Clean>| text.as_ref().map(|t| t.as_str().to_owned());
        let question = part.question.as_str().to_owned();
        Part {
            key: text(&part.name).unwrap_or_else(|| question.clone()),
            question,
            options: part.options.iter().map(option).collect(),
            many: part.multi_select,
            field: part.name.is_some(),
            format: text(&part.format),
            suggested: text(&part.default),
            optional: part.optional,
        }
    }

    /// There is nothing to type: something is done, or seen.
    fn is_visit(&self) -> bool {
        self.optional && !self.field
    }

    /// What is an answer.
    fn hint(&self) -> String {
        if self.is_visit() {
            return "Enter when it is done, or n".to_owned();
        }
        let kind = match (self.format.as_deref(), self.many, self.options.is_empty()) {
            (Some(format), ..) => escape::line(format),
            (_, true, true) => "words, with commas between them".to_owned(),
            (_, true, false) if self.field => "numbers".to_owned(),
            (_, false, false) if self.field => "a number of these".to_owned(),
            (_, _, true) => "your answer".to_owned(),
            (_, true, _) => "numbers, or your own words".to_owned(),
            (_, false, _) => "a number, or your own words".to_owned(),
        };
        match &self.suggested {
            Some(suggested) => format!("{kind} [{}]", escape::line(suggested)),
            None if self.optional => format!("{kind}, or Enter for none"),
            None => kind,
        }
    }

    fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = self.question.lines().map(escape::line);
        writeln!(out, "\n? {}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "  {line}")?;
        }
        for (n, (label, about)) in self.options.iter().enumerate() {
            let about = about.as_ref().filter(|a| *a != label);
            let about = about.map(|a| format!(" – {a}")).unwrap_or_default();
            writeln!(out, "  {}  {}{about}", n + 1, escape::line(label))?;
        }
        Ok(())
    }

    /// Numbers are options; anything else is an answer in one's own words.
    fn answer(&self, line: &str) -> Option<Said> {
        if self.is_visit() {
            return match line.to_lowercase().as_str() {
                "" | "y" | "yes" => Some(Said::Nothing),
                "n" | "no" => Some(Said::Declined),
                _ => None,
            };
        }
        if line.is_empty() {
            let suggested = self.suggested.clone().map(Said::Answer);
            return suggested.or(self.optional.then_some(Said::Nothing));
        }
        if self.options.is_empty() {
            return Some(Said::Answer(line.to_owned()));
        }
        let numbers: Result<Vec<usize>, _> =
            line.split([',', ' ']).filter(|n| !n.is_empty()).map(str::parse).collect();
        let Ok(numbers) = numbers else {
            let is_known = || self.options.iter().any(|(label, _)| label == line);
            return (!self.field || self.many || is_known()).then(|| Said::Answer(line.to_owned()));
        };
        if numbers.len() > 1 && !self.many {
            return None;
        }
        let labels: Option<Vec<&str>> = numbers
            .into_iter()
            .map(|n| self.options.get(n.checked_sub(1)?).map(|(label, _)| label.as_str()))
            .collect();
        labels.filter(|l| !l.is_empty()).map(|labels| Said::Answer(labels.join(", ")))
    }
}

fn find_call<'a>(items: &'a Items, id: &str) -> Option<&'a ToolItem> {
    match &items.get(id)?.body {
        ItemBody::ToolCall { tool_call } => Some(tool_call),
        _ => None,
    }
}
