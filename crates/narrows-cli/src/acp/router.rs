//! Decides to which session of a connection a message belongs.

use super::message_info::MessageInfo;
use super::queue::Peer;
use std::collections::HashMap;
use std::mem;

/// Requests without a response yet.
const MAX_PENDING_REQUESTS: usize = 1024;
/// Sessions of one connection.
const MAX_SESSIONS: usize = 256;
/// Bytes of messages before the first session, which belong to all sessions.
const MAX_PREAMBLE_BYTES: usize = 4 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RouteAction {
    /// Opens a session with its working directory.
    Open { session: String, cwd: Option<String> },
    /// Appends a line to a session.
    Write { session: String, line: Vec<u8> },
    /// The session has transcript content, so it is worth storing.
    HasContent { session: String },
}

/// Where the response of a request belongs.
#[derive(Debug)]
enum RequestOwner {
    /// To every session.
    Preamble,
    /// Nowhere: it is about sessions that are not recorded here.
    Ignored,
    /// To the last session: the request names none.
    LastSession,
    Session(String),
    /// The response opens a session.
    Opens(PendingOpen),
    /// The response names a new session that is a copy of another one.
    Forks,
}

/// A request that opens a session, until its response comes.
#[derive(Debug)]
struct PendingOpen {
    session: Option<String>,
    cwd: Option<String>,
    line: Vec<u8>,
    /// The agent replays messages that were recorded before.
    replays: bool,
}

#[derive(Debug, Default)]
struct OpenSession {
    /// A `session/load` is pending: the agent replays recorded messages.
    is_loading: bool,
    /// Replayed content may still come until the next prompt: some agents respond first.
    replays: bool,
}

#[derive(Debug, Default)]
pub(super) struct SessionRouter {
    /// Requests without a response: who sent them, their id, and where the response belongs.
    pending: Vec<(Peer, String, RequestOwner)>,
    sessions: HashMap<String, OpenSession>,
    last_session: Option<String>,
    /// Lines that belong to every session, and their size.
    preamble: Vec<Vec<u8>>,
    preamble_bytes: usize,
}

impl SessionRouter {
    /// Routes a message. `was_recorded` says whether a session was recorded before this connection.
    pub(super) fn route_message(
        &mut self,
        from: Peer,
        message: &MessageInfo,
        line: Vec<u8>,
        was_recorded: impl FnOnce(&str) -> bool,
        actions: &mut Vec<RouteAction>,
    ) {
        let before = actions.len();
        self.route(from, message, line, was_recorded, actions);
        let has_content = message.is_content || message.method.as_deref() == Some("session/prompt");
        if has_content
            && actions.len() > before
            && let Some(session) = message.session.clone()
        {
            actions.push(RouteAction::HasContent { session });
        }
    }

    fn route(
        &mut self,
        from: Peer,
        message: &MessageInfo,
        line: Vec<u8>,
        was_recorded: impl FnOnce(&str) -> bool,
        actions: &mut Vec<RouteAction>,
    ) {
        match (&message.method, &message.id) {
            (Some(method), Some(id)) => {
                let owner = self.route_request(method, message, line, was_recorded, actions);
                if self.pending.len() >= MAX_PENDING_REQUESTS {
                    self.pending.remove(0);
                }
                self.pending.push((from, id.clone(), owner));
            }
            (Some(method), None) => self.route_notification(method, message, line, actions),
            (None, Some(id)) => {
                let is_request =
                    |(peer, i, _): &(Peer, String, RequestOwner)| *peer == from.other() && i == id;
                let at = self.pending.iter().rposition(is_request);
                let owner = at.map(|at| self.pending.remove(at).2);
                self.route_response(owner, message, line, actions);
            }
            (None, None) => self.route_other(line, actions),
        }
    }

    /// Routes a line that names no session: to the last session, or before the first one to all.
    pub(super) fn route_other(&mut self, line: Vec<u8>, actions: &mut Vec<RouteAction>) {
        match self.last_session.clone() {
            Some(session) => actions.push(RouteAction::Write { session, line }),
            None => self.push_preamble(line),
        }
    }

    /// Routes a line to every open session.
    pub(super) fn route_to_all(&mut self, line: &[u8], actions: &mut Vec<RouteAction>) {
        if self.sessions.is_empty() {
            return self.push_preamble(line.to_vec());
        }
        let sessions = self.sessions.keys().cloned();
        actions.extend(sessions.map(|session| RouteAction::Write { session, line: line.to_vec() }));
    }

    fn push_preamble(&mut self, line: Vec<u8>) {
        if self.preamble_bytes + line.len() <= MAX_PREAMBLE_BYTES {
            self.preamble_bytes += line.len();
            self.preamble.push(line);
        }
    }

    fn route_request(
        &mut self,
        method: &str,
        message: &MessageInfo,
        line: Vec<u8>,
        was_recorded: impl FnOnce(&str) -> bool,
        actions: &mut Vec<RouteAction>,
    ) -> RequestOwner {
        match (method, message.session.clone()) {
            ("initialize" | "authenticate" | "logout", _) => {
                self.push_preamble(line);
                RequestOwner::Preamble
            }
            ("session/list" | "session/delete", _) => RequestOwner::Ignored,
            ("session/fork", Some(session)) => {
                if self.sessions.contains_key(&session) {
                    actions.push(RouteAction::Write { session, line });
                }
                RequestOwner::Forks
            }
            ("session/new", _) => {
                let cwd = message.cwd.clone();
                RequestOwner::Opens(PendingOpen { session: None, cwd, line, replays: false })
            }
            ("session/load" | "session/resume", Some(session)) => {
                let loads = method == "session/load";
                if let Some(open) = self.sessions.get_mut(&session) {
                    (open.is_loading, open.replays) = (loads, loads);
                    self.write(session.clone(), line, actions);
                    return RequestOwner::Session(session);
                }
                let replays = loads && was_recorded(&session);
                let cwd = message.cwd.clone();
                RequestOwner::Opens(PendingOpen { session: Some(session), cwd, line, replays })
            }
            (_, Some(session)) => {
                if method == "session/prompt"
                    && let Some(open) = self.sessions.get_mut(&session)
                {
                    open.replays = false;
                }
                self.write(session.clone(), line, actions);
                RequestOwner::Session(session)
            }
            (_, None) => {
                self.route_other(line, actions);
                RequestOwner::LastSession
            }
        }
    }

    fn route_notification(
        &mut self,
        method: &str,
        message: &MessageInfo,
        line: Vec<u8>,
        actions: &mut Vec<RouteAction>,
    ) {
        let Some(session) = message.session.clone() else { return self.route_other(line, actions) };
        if method == "session/update" && self.is_replayed(&session, message) {
            return;
        }
        self.write(session, line, actions);
    }

    /// Whether an update replays what was recorded before.
    fn is_replayed(&self, session: &str, message: &MessageInfo) -> bool {
        match self.sessions.get(session) {
            Some(open) => open.is_loading || (open.replays && message.is_content),
            None => self.pending.iter().any(|(_, _, owner)| {
                matches!(owner, RequestOwner::Opens(o) if o.replays && o.session.as_deref() == Some(session))
            }),
        }
    }

    fn route_response(
        &mut self,
        owner: Option<RequestOwner>,
        message: &MessageInfo,
        line: Vec<u8>,
        actions: &mut Vec<RouteAction>,
    ) {
        match owner {
            Some(RequestOwner::Preamble) => self.push_preamble(line),
            Some(RequestOwner::Ignored) => {}
            None | Some(RequestOwner::LastSession) => self.route_other(line, actions),
            Some(RequestOwner::Session(session)) => {
                if let Some(open) = self.sessions.get_mut(&session) {
                    open.is_loading = false;
                }
                self.write(session, line, actions);
            }
            Some(RequestOwner::Forks) => {
                if let Some(session) = message.created_session.clone() {
                    self.open(&session, None, actions);
                    self.write(session, line, actions);
                }
            }
            Some(RequestOwner::Opens(pending)) => {
                if message.failed {
                    return;
                }
                let created = message.created_session.clone();
                let Some(session) = created.or_else(|| pending.session.clone()) else { return };
                self.open(&session, Some(pending), actions);
                self.write(session, line, actions);
            }
        }
    }

    fn write(&mut self, session: String, line: Vec<u8>, actions: &mut Vec<RouteAction>) {
        if !self.sessions.contains_key(&session) {
            if self.sessions.len() >= MAX_SESSIONS {
                return self.route_other(line, actions);
            }
            let pending = self.take_pending_open(&session);
            self.open(&session, pending, actions);
        }
        self.last_session = Some(session.clone());
        actions.push(RouteAction::Write { session, line });
    }

    /// Takes the request that opens this session, if its response has not come yet.
    fn take_pending_open(&mut self, session: &str) -> Option<PendingOpen> {
        let position = |name: Option<&str>| {
            self.pending.iter().position(|(_, _, owner)| {
                matches!(owner, RequestOwner::Opens(o) if o.session.as_deref() == name)
            })
        };
        let at = position(Some(session)).or_else(|| position(None))?;
        match mem::replace(&mut self.pending[at].2, RequestOwner::Session(session.to_owned())) {
            RequestOwner::Opens(pending) => Some(pending),
            _ => None,
        }
    }

    fn open(
        &mut self,
        session: &str,
        pending: Option<PendingOpen>,
        actions: &mut Vec<RouteAction>,
    ) {
        if self.sessions.contains_key(session) {
            return;
        }
        let replays = pending.as_ref().is_some_and(|p| p.replays);
        self.sessions.insert(session.to_owned(), OpenSession { is_loading: false, replays });
        self.last_session = Some(session.to_owned());
        let (cwd, line) = pending.map_or((None, None), |p| (p.cwd, Some(p.line)));
        actions.push(RouteAction::Open { session: session.to_owned(), cwd });
        let lines = self.preamble.iter().cloned().chain(line);
        actions.extend(lines.map(|line| RouteAction::Write { session: session.to_owned(), line }));
    }
}

#[cfg(test)]
mod tests;
