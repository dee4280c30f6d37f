//! Which session a message belongs to. One connection may hold several.

use super::facts::Facts;
use super::queue::From;
use std::collections::HashMap;
use std::mem;

/// Requests whose answer is waited for.
const MAX_PENDING: usize = 1024;
/// Sessions of one connection.
const MAX_SESSIONS: usize = 256;
/// Bytes of what comes before the first session, and belongs to all.
const MAX_START: usize = 4 << 20;

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A session begins; its agent works in this folder.
    Open { session: String, cwd: Option<String> },
    /// A line of a session.
    Write { session: String, line: Vec<u8> },
    /// Something is told in it: from here on there is something to keep.
    Tells { session: String },
}

/// Whose a request was, for its answer.
#[derive(Debug)]
enum Owner {
    /// Every session's.
    Start,
    /// Nobody's: what is told of other sessions is not kept.
    Nobody,
    /// No session is named: the last one's.
    Last,
    Session(String),
    /// A session begins with the answer; until then the request is kept.
    Opens(Opens),
    /// The session that is told in the answer begins as a copy.
    Forks,
}

#[derive(Debug)]
struct Opens {
    session: Option<String>,
    cwd: Option<String>,
    line: Vec<u8>,
    /// What the agent repeats of it was recorded before.
    repeats: bool,
}

#[derive(Debug, Default)]
struct Session {
    /// It is being loaded again: what the agent repeats is known.
    loading: bool,
    /// The same until the next prompt: some agents repeat it after they have answered.
    repeats: bool,
}

/// Sorts the messages of one connection.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    pending: Vec<(From, String, Owner)>,
    sessions: HashMap<String, Session>,
    /// The session of the last message.
    last: Option<String>,
    start: Vec<Vec<u8>>,
    start_bytes: usize,
}

impl Sorter {
    /// Takes a message. `known` tells whether a session was recorded before this connection.
    pub(super) fn message(
        &mut self,
        from: From,
        facts: &Facts,
        line: Vec<u8>,
        known: impl FnOnce(&str) -> bool,
        acts: &mut Vec<Act>,
    ) {
        let before = acts.len();
        self.sort(from, facts, line, known, acts);
        let tells = facts.tells || facts.method.as_deref() == Some("session/prompt");
        if tells
            && acts.len() > before
            && let Some(session) = facts.session.clone()
        {
            acts.push(Act::Tells { session });
        }
    }

    fn sort(
        &mut self,
        from: From,
        facts: &Facts,
        line: Vec<u8>,
        known: impl FnOnce(&str) -> bool,
        acts: &mut Vec<Act>,
    ) {
        match (&facts.method, &facts.id) {
            (Some(method), Some(id)) => {
                let owner = self.request(method, facts, line, known, acts);
                if self.pending.len() >= MAX_PENDING {
                    self.pending.remove(0);
                }
                self.pending.push((from, id.clone(), owner));
            }
            (Some(method), None) => self.notice(method, facts, line, acts),
            (None, Some(id)) => {
                let asked = |(by, i, _): &(From, String, Owner)| *by == from.other() && i == id;
                let at = self.pending.iter().rposition(asked);
                let owner = at.map(|at| self.pending.remove(at).2);
                self.answer(owner, facts, line, acts);
            }
            (None, None) => self.loose(line, acts),
        }
    }

    /// What is no message goes to the session of the last one, or to the first.
    pub(super) fn loose(&mut self, line: Vec<u8>, acts: &mut Vec<Act>) {
        match self.last.clone() {
            Some(session) => acts.push(Act::Write { session, line }),
            None => self.begin(line),
        }
    }

    /// What concerns every open session.
    pub(super) fn all(&mut self, line: &[u8], acts: &mut Vec<Act>) {
        if self.sessions.is_empty() {
            return self.begin(line.to_vec());
        }
        let each = self.sessions.keys().cloned();
        acts.extend(each.map(|session| Act::Write { session, line: line.to_vec() }));
    }

    fn begin(&mut self, line: Vec<u8>) {
        if self.start_bytes + line.len() <= MAX_START {
            self.start_bytes += line.len();
            self.start.push(line);
        }
    }

    fn request(
        &mut self,
        method: &str,
        facts: &Facts,
        line: Vec<u8>,
        known: impl FnOnce(&str) -> bool,
        acts: &mut Vec<Act>,
    ) -> Owner {
        let named = facts.session.clone();
        match (method, named) {
            ("initialize" | "authenticate" | "logout", _) => {
                self.begin(line);
                Owner::Start
            }
            ("session/list" | "session/delete", _) => Owner::Nobody,
            ("session/fork", Some(session)) => {
                if self.sessions.contains_key(&session) {
                    acts.push(Act::Write { session, line });
                }
                Owner::Forks
            }
            ("session/new", _) => {
                Owner::Opens(Opens { session: None, cwd: facts.cwd.clone(), line, repeats: false })
            }
            ("session/load" | "session/resume", Some(session)) => {
                let loads = method == "session/load";
                if let Some(open) = self.sessions.get_mut(&session) {
                    (open.loading, open.repeats) = (loads, loads);
                    self.write(session.clone(), line, acts);
                    return Owner::Session(session);
                }
                let repeats = loads && known(&session);
                let cwd = facts.cwd.clone();
                Owner::Opens(Opens { session: Some(session), cwd, line, repeats })
            }
            (_, Some(session)) => {
                if method == "session/prompt"
                    && let Some(open) = self.sessions.get_mut(&session)
                {
                    open.repeats = false;
                }
                self.write(session.clone(), line, acts);
                Owner::Session(session)
            }
            (_, None) => {
                self.loose(line, acts);
                Owner::Last
            }
        }
    }

    fn notice(&mut self, method: &str, facts: &Facts, line: Vec<u8>, acts: &mut Vec<Act>) {
        let Some(session) = facts.session.clone() else { return self.loose(line, acts) };
        if method == "session/update" && self.is_repeated(&session, facts) {
            return;
        }
        self.write(session, line, acts);
    }

    /// Whether an update tells what was recorded before.
    fn is_repeated(&self, session: &str, facts: &Facts) -> bool {
        match self.sessions.get(session) {
            Some(open) => open.loading || (open.repeats && facts.tells),
            None => self.pending.iter().any(|(_, _, owner)| {
                matches!(owner, Owner::Opens(o) if o.repeats && o.session.as_deref() == Some(session))
            }),
        }
    }

    fn answer(&mut self, owner: Option<Owner>, facts: &Facts, line: Vec<u8>, acts: &mut Vec<Act>) {
        match owner {
            Some(Owner::Start) => self.begin(line),
            Some(Owner::Nobody) => {}
            None | Some(Owner::Last) => self.loose(line, acts),
            Some(Owner::Session(session)) => {
                if let Some(open) = self.sessions.get_mut(&session) {
                    open.loading = false;
                }
                self.write(session, line, acts);
            }
            Some(Owner::Forks) => {
                if let Some(session) = facts.made.clone() {
                    self.open(&session, None, acts);
                    self.write(session, line, acts);
                }
            }
            Some(Owner::Opens(opens)) => {
                let told = if facts.failed { None } else { facts.made.clone() };
                let told = told.or_else(|| opens.session.clone().filter(|_| !facts.failed));
                // One that did not come to be is none.
                let Some(session) = told else { return };
                self.open(&session, Some(opens), acts);
                self.write(session, line, acts);
            }
        }
    }

    fn write(&mut self, session: String, line: Vec<u8>, acts: &mut Vec<Act>) {
        if !self.sessions.contains_key(&session) {
            if self.sessions.len() >= MAX_SESSIONS {
                return self.loose(line, acts);
            }
            let opens = self.opened_early(&session);
            self.open(&session, opens, acts);
        }
        self.last = Some(session.clone());
        acts.push(Act::Write { session, line });
    }

    /// The request that begins this session, whose answer has not come yet.
    fn opened_early(&mut self, session: &str) -> Option<Opens> {
        let names = |owner: &Owner, name: Option<&str>| matches!(owner, Owner::Opens(o) if o.session.as_deref() == name);
        let at = self.pending.iter().position(|(_, _, owner)| names(owner, Some(session)));
        let at = at.or_else(|| self.pending.iter().position(|(_, _, owner)| names(owner, None)))?;
        match mem::replace(&mut self.pending[at].2, Owner::Session(session.to_owned())) {
            Owner::Opens(opens) => Some(opens),
            _ => None,
        }
    }

    fn open(&mut self, session: &str, opens: Option<Opens>, acts: &mut Vec<Act>) {
        if self.sessions.contains_key(session) {
            return;
        }
        let repeats = opens.as_ref().is_some_and(|o| o.repeats);
        self.sessions.insert(session.to_owned(), Session { loading: false, repeats });
        self.last = Some(session.to_owned());
        let (cwd, line) = opens.map_or((None, None), |o| (o.cwd, Some(o.line)));
        acts.push(Act::Open { session: session.to_owned(), cwd });
        let lines = self.start.iter().cloned().chain(line);
        acts.extend(lines.map(|line| Act::Write { session: session.to_owned(), line }));
    }
}

#[cfg(test)]
mod tests;
