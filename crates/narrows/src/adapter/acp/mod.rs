//! The Agent Client Protocol, in every form it is met: the JSON-RPC lines of an agent alone or of
//! both directions, lines `{ts, dir, run, msg}` of a recorder, the packets of a back end that
//! relays them (live), and the rows in which it keeps them (stored).
//!
//! The discriminator is looked at here and not left to a closed union: an unknown kind is an
//! event, never an error.

mod compaction;
mod content;
mod diffs;
mod elicitation;
mod fields;
mod info;
mod recall;
mod rpc;
mod tool;
mod tool_output;
mod update;

pub(super) use elicitation::Form;
pub(super) use update::is_own_update;

use super::{Yield, objects};
use crate::json::{Index, Json, Kind};
use crate::packet::Packet;
use crate::recent::Recent;
use crate::sanitize::Raw;
use crate::time::Time;
use fields::Fields;
use tool::Known;

/// Calls whose identity is remembered.
const MAX_CALLS: usize = crate::limits::CALLS;
/// Requests whose answer is waited for.
const MAX_PENDING: usize = 1024;

/// What a recorder writes instead of a message, and what that means.
const NO_MESSAGE: [(&str, &str); 3] =
    [("text", "not a message"), ("long", "line too long"), ("lost", "not recorded")];

/// Who sent a message, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Client,
    Agent,
    Unknown,
}

/// The reader of one source.
#[derive(Debug)]
pub struct Acp {
    index: Index,
    calls: Recent<Known>,
    /// The process of the agent, where the recorder tells: each counts its requests from the start.
    run: Option<Box<str>>,
    /// What the request is called that the message is, or is about: an id may be used again.
    named: Option<Box<str>>,
    /// Requests of the client, by id.
    asked: Recent<rpc::Asked>,
    /// Requests of the agent for leave, by id.
    leave: Recent<rpc::Leave>,
    /// Requests of the agent that the user fills in, by id.
    forms: Recent<elicitation::Form>,
    /// Other requests of the agent: their answers are no part of the transcript.
    others: Recent<()>,
    /// The first half of a character that was cut over two chunks, and its text block.
    half: Option<(u32, update::BlockKey)>,
    /// The id of the last text block.
    last_block: Raw,
    /// Compactions, by id.
    compacting: Recent<compaction::Compacting>,
    /// Codex has told that something failed, and will say what.
    failing: bool,
    /// Requests of this turn, but for its prompt, whose answer has not come.
    waiting: u32,
    /// When the prompt was sent that was read before this reader began.
    prompted: Option<Time>,
    line: u64,
}

impl Default for Acp {
    fn default() -> Self {
        Acp {
            index: Index::default(),
            calls: Recent::new(MAX_CALLS),
            run: None,
            named: None,
            asked: Recent::new(MAX_PENDING),
            leave: Recent::new(MAX_PENDING),
            forms: Recent::new(MAX_PENDING),
            others: Recent::new(MAX_PENDING),
            half: None,
            last_block: Raw::default(),
            compacting: compaction::none_yet(),
            failing: false,
            waiting: 0,
            prompted: None,
            line: 0,
        }
    }
}

impl Acp {
    pub(super) fn push(&mut self, packet: &Packet<'_>, out: &mut Yield) {
        self.line = packet.position.line;
        let mut index = std::mem::take(&mut self.index);
        objects::each(&mut index, packet, out, |object, out| {
            self.object(object, packet, out);
        });
        self.index = index;
    }

    /// The input is over.
    pub(super) fn finish(&mut self, out: &mut Yield) {
        self.lone_half(out);
        self.end_compactions(false, out);
    }

    /// One object: takes off what is wrapped around the message.
    fn object(&mut self, object: Json<'_>, packet: &Packet<'_>, out: &mut Yield) {
        let f = Fields::read(object);
        if let Some(time) = f.time().and_then(Json::str).and_then(|t| Time::parse(&t)) {
            out.time = Some(time.arrived_with(out.time.as_ref()));
        }
        if let Some(msg) = f.msg().filter(|m| m.kind() == Kind::Object) {
            let from = match f.dir().and_then(Json::str).as_deref() {
                Some("agent->client") => From::Agent,
                Some("client->agent") => From::Client,
                _ => From::Unknown,
            };
            self.runs(f.run(), out);
            self.named = f.request().and_then(Json::str).map(|name| name.as_ref().into());
            self.message(msg, &Fields::read(msg), from, out);
            self.named = None;
            return;
        }
        if f.run().is_some() && f.dir().is_some() {
            // Something passed that the recorder could not keep as a message.
            let lost = NO_MESSAGE.into_iter().find(|(key, _)| object.get(key).is_some());
            if let Some((_, reason)) = lost {
                return out.malformed(packet, reason, 0);
            }
        }
        if let Some(stored) = f.stored() {
            return self.row(object, stored, out);
        }
        self.message(object, &f, From::Unknown, out);
    }

    /// Another process of the agent answers nothing that the one before was asked.
    fn runs(&mut self, run: Option<Json<'_>>, out: &mut Yield) {
        let run = run.and_then(Json::scalar);
        if run.as_deref() == self.run.as_deref() {
            return;
        }
        self.lone_half(out);
        self.failing = false;
        self.waiting = 0;
        let prefix = run.as_deref().map(|run| format!("{run}."));
        self.withdraw(|id| prefix.as_ref().is_none_or(|prefix| !id.starts_with(prefix)), out);
        // Before the first run there is only what was recalled, and it may be of this run.
        if self.run.is_some() {
            self.asked = Recent::new(MAX_PENDING);
            self.forms = Recent::new(MAX_PENDING);
            self.others = Recent::new(MAX_PENDING);
            self.prompted = None;
        }
        self.run = run.map(|run| run.as_ref().into());
    }

    fn message(&mut self, object: Json<'_>, f: &Fields<'_>, from: From, out: &mut Yield) {
        if let Some(method) = f.method().and_then(Json::str) {
            return self.call(&method, object, f, from, out);
        }
        // What keeps messages may leave out the method of those that are all of one.
        let within = || f.params().and_then(|p| p.get("update"));
        if let Some(update) = f.update().or_else(within).filter(|u| u.kind() == Kind::Object) {
            return self.update(update, &Fields::read(update), out);
        }
        let answer = f.result().is_some() || f.error().is_some_and(|e| e.kind() == Kind::Object);
        // An answer without a word is one.
        let answer = answer || from == From::Agent && f.error().is_none() && self.was_asked(f);
        if f.kind().is_none() && f.session_update().is_none() && f.id().is_some() && answer {
            return self.answer(object, f, from, out);
        }
        self.update(object, f, out);
    }

    /// A stored row: the packet is kept in its metadata.
    fn row(&mut self, row: Json<'_>, stored: Json<'_>, out: &mut Yield) {
        let times = [stored.any(&["timestamp", "ts"]), row.any(&["created_at", "createdAt"])];
        let time = times.into_iter().flatten().filter_map(Json::str).find_map(|t| Time::parse(&t));
        let own = time.map(|time| time.arrived_with(out.time.as_ref()));
        out.time = own.or(out.time.take());
        let role = row.any(&["type", "role"]).and_then(Json::str);
        let f = Fields::read(stored);
        if role.as_deref() == Some("user") {
            let words = f.content().or_else(|| row.any(&["content", "text", "message"]));
            rpc::prompt(words, out);
            return;
        }
        self.message(stored, &f, From::Unknown, out);
    }
}
