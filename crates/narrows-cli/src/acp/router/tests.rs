//! Sorting, without files and processes.

use super::*;
use narrows::json::Index;

/// A connection that is sorted: what each session holds.
#[derive(Default)]
struct Told {
    sorter: Sorter,
    sessions: Vec<(String, Vec<String>)>,
    folders: Vec<Option<String>>,
    known: Vec<&'static str>,
    telling: Vec<String>,
}

impl Told {
    fn say(&mut self, from: From, line: &str) {
        let facts = super::super::facts::read(&mut Index::default(), line.as_bytes());
        let mut acts = Vec::new();
        let (bytes, known) = (line.as_bytes().to_vec(), self.known.clone());
        match facts {
            Some(facts) => {
                let known = |s: &str| known.contains(&s);
                self.sorter.message(from, &facts, bytes, known, &mut acts);
            }
            None => self.sorter.loose(bytes, &mut acts),
        }
        for act in acts {
            match act {
                Act::Open { session, cwd } => {
                    self.sessions.push((session, Vec::new()));
                    self.folders.push(cwd);
                }
                Act::Tells { session } => self.telling.push(session),
                Act::Write { session, line } => {
                    let text = String::from_utf8(line).expect("text");
                    let open = self.sessions.iter_mut().find(|(name, _)| *name == session);
                    open.expect("it was opened").1.push(text);
                }
            }
        }
    }

    fn client(&mut self, line: &str) -> &mut Self {
        self.say(From::Client, line);
        self
    }

    fn agent(&mut self, line: &str) -> &mut Self {
        self.say(From::Agent, line);
        self
    }

    fn lines(&self, session: &str) -> &[String] {
        self.sessions.iter().find(|(name, _)| name == session).map_or(&[], |(_, lines)| lines)
    }
}

const HELLO: &str = r#"{"id":0,"method":"initialize","params":{}}"#;
const HELLO_TOO: &str = r#"{"id":0,"result":{"protocolVersion":1}}"#;

fn new(id: u32, cwd: &str) -> String {
    format!(r#"{{"id":{id},"method":"session/new","params":{{"cwd":"{cwd}"}}}}"#)
}

fn made(id: u32, session: &str) -> String {
    format!(r#"{{"id":{id},"result":{{"sessionId":"{session}"}}}}"#)
}

fn update(session: &str, kind: &str) -> String {
    format!(
        r#"{{"method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"{kind}"}}}}}}"#
    )
}

fn ask(id: u32, method: &str, session: &str) -> String {
    format!(r#"{{"id":{id},"method":"{method}","params":{{"sessionId":"{session}","cwd":"/c"}}}}"#)
}

fn done(id: u32) -> String {
    format!(r#"{{"id":{id},"result":{{}}}}"#)
}

#[test]
fn two_sessions_are_two_and_begin_alike() {
    let mut told = Told::default();
    told.client(HELLO).agent(HELLO_TOO);
    told.client(&new(1, "/a")).client(&new(2, "/b"));
    told.agent(&made(2, "B")).agent(&made(1, "A"));
    told.client(&ask(3, "session/prompt", "A")).client(&ask(4, "session/prompt", "B"));
    // The agent counts its own requests.
    told.agent(&ask(3, "session/request_permission", "B")).client(&done(3));
    told.agent(&done(3)).agent(&done(4));
    let (a, b) = (told.lines("A"), told.lines("B"));
    let hello = [HELLO.to_owned(), HELLO_TOO.to_owned()];
    assert_eq!(a[..2], hello);
    assert_eq!(b[..2], hello);
    assert_eq!(a[2..], [new(1, "/a"), made(1, "A"), ask(3, "session/prompt", "A"), done(3)]);
    let leave = ask(3, "session/request_permission", "B");
    assert_eq!(
        b[2..],
        [new(2, "/b"), made(2, "B"), ask(4, "session/prompt", "B"), leave, done(3), done(4)]
    );
    assert_eq!(told.folders, [Some("/b".to_owned()), Some("/a".to_owned())]);
}

#[test]
fn an_update_may_come_before_its_session() {
    let mut told = Told::default();
    told.client(&new(1, "/a")).agent(&update("A", "available_commands_update"));
    told.agent(&made(1, "A"));
    let should = [new(1, "/a"), update("A", "available_commands_update"), made(1, "A")];
    assert_eq!(told.lines("A"), should);
    assert_eq!(told.folders, [Some("/a".to_owned())]);
}

#[test]
fn what_did_not_come_to_be_is_none() {
    let mut told = Told::default();
    let error = r#"{"id":1,"error":{"code":-32000,"message":"no"}}"#;
    told.client(&new(1, "/a")).agent(error);
    told.client(&ask(1, "session/load", "A")).agent(error);
    told.client(&ask(2, "session/list", "A")).agent(&done(2));
    told.client(&ask(3, "session/delete", "A")).agent(&done(3));
    assert!(told.sessions.is_empty());
}

#[test]
fn what_is_loaded_again_is_told_once() {
    for answered_first in [false, true] {
        let mut told = Told { known: vec!["A"], ..Told::default() };
        told.client(&ask(1, "session/load", "A"));
        if answered_first {
            told.agent(&done(1));
        }
        told.agent(&update("A", "user_message_chunk")).agent(&update("A", "tool_call"));
        if !answered_first {
            told.agent(&done(1));
        }
        told.agent(&update("A", "available_commands_update"));
        assert!(told.telling.is_empty());
        told.client(&ask(2, "session/prompt", "A")).agent(&update("A", "agent_message_chunk"));
        let should = [
            ask(1, "session/load", "A"),
            done(1),
            update("A", "available_commands_update"),
            ask(2, "session/prompt", "A"),
            update("A", "agent_message_chunk"),
        ];
        assert_eq!(told.lines("A"), should);
        // The same connection loads it once more.
        told.client(&ask(3, "session/load", "A")).agent(&update("A", "tool_call"));
        told.agent(&done(3));
        assert_eq!(told.lines("A").len(), 7);
    }
}

#[test]
fn what_nobody_recorded_is_recorded_when_it_is_loaded() {
    let mut told = Told::default();
    told.client(&ask(1, "session/load", "A")).agent(&update("A", "user_message_chunk"));
    told.agent(&done(1));
    let should = [ask(1, "session/load", "A"), update("A", "user_message_chunk"), done(1)];
    assert_eq!(told.lines("A"), should);
}

#[test]
fn what_is_no_message_is_not_lost() {
    let mut told = Told::default();
    told.agent("Debugger listening").client(&new(1, "/a")).agent(&made(1, "A"));
    told.agent("[1,2]").agent(r#"{"id":99,"result":{}}"#);
    let should = ["Debugger listening", &new(1, "/a"), &made(1, "A"), "[1,2]", &done(99)];
    assert_eq!(told.lines("A"), should);
}

#[test]
fn a_number_and_a_text_are_two_ids() {
    let mut told = Told::default();
    told.client(&new(1, "/a")).agent(&made(1, "A")).client(&new(2, "/b")).agent(&made(2, "B"));
    let prompt = |id: &str, session: &str| {
        format!(r#"{{"id":{id},"method":"session/prompt","params":{{"sessionId":"{session}"}}}}"#)
    };
    told.client(&prompt("7", "A")).client(&prompt("\"7\"", "B"));
    told.agent(r#"{"id":"7","result":{}}"#).agent(r#"{"id":7,"result":{}}"#);
    assert_eq!(told.lines("A").last().map(String::as_str), Some(r#"{"id":7,"result":{}}"#));
    assert_eq!(told.lines("B").last().map(String::as_str), Some(r#"{"id":"7","result":{}}"#));
}
