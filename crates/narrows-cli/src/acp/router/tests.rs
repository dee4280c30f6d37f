//! Routing without files and processes.

use super::*;
use narrows::json::Index;

/// A connection, and what each session got.
#[derive(Default)]
struct Connection {
    router: SessionRouter,
    sessions: Vec<(String, Vec<String>)>,
    cwds: Vec<Option<String>>,
    /// Sessions that were recorded before.
    recorded: Vec<&'static str>,
    with_content: Vec<String>,
}

impl Connection {
    fn push(&mut self, from: Peer, line: &str) {
        let message = super::super::message_info::parse(&mut Index::default(), line.as_bytes());
        let mut actions = Vec::new();
        let (bytes, recorded) = (line.as_bytes().to_vec(), self.recorded.clone());
        match message {
            Some(message) => {
                let was_recorded = |s: &str| recorded.contains(&s);
                self.router.route_message(from, &message, bytes, was_recorded, &mut actions);
            }
            None => self.router.route_other(bytes, &mut actions),
        }
        for action in actions {
            match action {
                RouteAction::Open { session, cwd } => {
                    self.sessions.push((session, Vec::new()));
                    self.cwds.push(cwd);
                }
                RouteAction::HasContent { session } => self.with_content.push(session),
                RouteAction::Write { session, line } => {
                    let text = String::from_utf8(line).expect("text");
                    let open = self.sessions.iter_mut().find(|(name, _)| *name == session);
                    open.expect("it was opened").1.push(text);
                }
            }
        }
    }

    fn client(&mut self, line: &str) -> &mut Self {
        self.push(Peer::Client, line);
        self
    }

    fn agent(&mut self, line: &str) -> &mut Self {
        self.push(Peer::Agent, line);
        self
    }

    fn lines(&self, session: &str) -> &[String] {
        self.sessions.iter().find(|(name, _)| name == session).map_or(&[], |(_, lines)| lines)
    }
}

const INITIALIZE: &str = r#"{"id":0,"method":"initialize","params":{}}"#;
const INITIALIZED: &str = r#"{"id":0,"result":{"protocolVersion":1}}"#;

fn new(id: u32, cwd: &str) -> String {
    format!(r#"{{"id":{id},"method":"session/new","params":{{"cwd":"{cwd}"}}}}"#)
}

fn created(id: u32, session: &str) -> String {
    format!(r#"{{"id":{id},"result":{{"sessionId":"{session}"}}}}"#)
}

fn update(session: &str, kind: &str) -> String {
    format!(
        r#"{{"method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"{kind}"}}}}}}"#
    )
}

fn request(id: u32, method: &str, session: &str) -> String {
    format!(r#"{{"id":{id},"method":"{method}","params":{{"sessionId":"{session}","cwd":"/c"}}}}"#)
}

fn response(id: u32) -> String {
    format!(r#"{{"id":{id},"result":{{}}}}"#)
}

#[test]
fn concurrent_sessions_share_the_preamble() {
    let mut connection = Connection::default();
    connection.client(INITIALIZE).agent(INITIALIZED);
    connection.client(&new(1, "/a")).client(&new(2, "/b"));
    connection.agent(&created(2, "B")).agent(&created(1, "A"));
    connection.client(&request(3, "session/prompt", "A")).client(&request(
        4,
        "session/prompt",
        "B",
    ));
    // The agent has its own request ids.
    connection.agent(&request(3, "session/request_permission", "B")).client(&response(3));
    connection.agent(&response(3)).agent(&response(4));
    let (a, b) = (connection.lines("A"), connection.lines("B"));
    let preamble = [INITIALIZE.to_owned(), INITIALIZED.to_owned()];
    assert_eq!(a[..2], preamble);
    assert_eq!(b[..2], preamble);
    assert_eq!(
        a[2..],
        [new(1, "/a"), created(1, "A"), request(3, "session/prompt", "A"), response(3)]
    );
    let permission = request(3, "session/request_permission", "B");
    assert_eq!(
        b[2..],
        [
            new(2, "/b"),
            created(2, "B"),
            request(4, "session/prompt", "B"),
            permission,
            response(3),
            response(4)
        ]
    );
    assert_eq!(connection.cwds, [Some("/b".to_owned()), Some("/a".to_owned())]);
}

#[test]
fn update_before_the_response_opens_the_session() {
    let mut connection = Connection::default();
    connection.client(&new(1, "/a")).agent(&update("A", "available_commands_update"));
    connection.agent(&created(1, "A"));
    let expected = [new(1, "/a"), update("A", "available_commands_update"), created(1, "A")];
    assert_eq!(connection.lines("A"), expected);
    assert_eq!(connection.cwds, [Some("/a".to_owned())]);
}

#[test]
fn failed_and_unrelated_requests_open_no_session() {
    let mut connection = Connection::default();
    let error = r#"{"id":1,"error":{"code":-32000,"message":"no"}}"#;
    connection.client(&new(1, "/a")).agent(error);
    connection.client(&request(1, "session/load", "A")).agent(error);
    connection.client(&request(2, "session/list", "A")).agent(&response(2));
    connection.client(&request(3, "session/delete", "A")).agent(&response(3));
    assert!(connection.sessions.is_empty());
}

#[test]
fn replayed_content_is_recorded_once() {
    for responds_first in [false, true] {
        let mut connection = Connection { recorded: vec!["A"], ..Connection::default() };
        connection.client(&request(1, "session/load", "A"));
        if responds_first {
            connection.agent(&response(1));
        }
        connection.agent(&update("A", "user_message_chunk")).agent(&update("A", "tool_call"));
        if !responds_first {
            connection.agent(&response(1));
        }
        connection.agent(&update("A", "available_commands_update"));
        assert!(connection.with_content.is_empty());
        connection
            .client(&request(2, "session/prompt", "A"))
            .agent(&update("A", "agent_message_chunk"));
        let expected = [
            request(1, "session/load", "A"),
            response(1),
            update("A", "available_commands_update"),
            request(2, "session/prompt", "A"),
            update("A", "agent_message_chunk"),
        ];
        assert_eq!(connection.lines("A"), expected);
        // The same connection loads it again.
        connection.client(&request(3, "session/load", "A")).agent(&update("A", "tool_call"));
        connection.agent(&response(3));
        assert_eq!(connection.lines("A").len(), 7);
    }
}

#[test]
fn unrecorded_session_is_recorded_when_loaded() {
    let mut connection = Connection::default();
    connection.client(&request(1, "session/load", "A")).agent(&update("A", "user_message_chunk"));
    connection.agent(&response(1));
    let expected =
        [request(1, "session/load", "A"), update("A", "user_message_chunk"), response(1)];
    assert_eq!(connection.lines("A"), expected);
}

#[test]
fn other_lines_go_to_the_last_session() {
    let mut connection = Connection::default();
    connection.agent("Debugger listening").client(&new(1, "/a")).agent(&created(1, "A"));
    connection.agent("[1,2]").agent(r#"{"id":99,"result":{}}"#);
    let expected = ["Debugger listening", &new(1, "/a"), &created(1, "A"), "[1,2]", &response(99)];
    assert_eq!(connection.lines("A"), expected);
}

#[test]
fn numeric_and_string_ids_differ() {
    let mut connection = Connection::default();
    connection
        .client(&new(1, "/a"))
        .agent(&created(1, "A"))
        .client(&new(2, "/b"))
        .agent(&created(2, "B"));
    let prompt = |id: &str, session: &str| {
        format!(r#"{{"id":{id},"method":"session/prompt","params":{{"sessionId":"{session}"}}}}"#)
    };
    connection.client(&prompt("7", "A")).client(&prompt("\"7\"", "B"));
    connection.agent(r#"{"id":"7","result":{}}"#).agent(r#"{"id":7,"result":{}}"#);
    assert_eq!(connection.lines("A").last().map(String::as_str), Some(r#"{"id":7,"result":{}}"#));
    assert_eq!(connection.lines("B").last().map(String::as_str), Some(r#"{"id":"7","result":{}}"#));
}
