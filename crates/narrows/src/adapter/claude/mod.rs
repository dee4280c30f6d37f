//! Claude Code, in both its forms: the lines it prints (`--output-format stream-json`) and the
//! files in which it keeps its sessions. They hold the same records under slightly different
//! names, so one reader serves both and they cannot drift apart.

mod attachment;
mod call;
mod control;
mod cut;
mod edit;
mod end;
mod kinds;
mod notebook;
mod partial;
mod recall;
mod record;
mod result;
mod said;
mod suggestion;
mod system;
mod tasks;
mod user;

pub(crate) use end::used_again;
pub(crate) use kinds::is_quiet as is_bookkeeping;
pub use kinds::launched;
pub(super) use kinds::{is_kept_kind, is_own_kind};
pub use suggestion::suggested;

use super::acp::Form;
use super::{Yield, objects};
use crate::event::{Body, Info, Unknown};
use crate::json::{Index, Json};
use crate::packet::{NOBODY, Packet};
use crate::recent::Recent;
use crate::sanitize::{Raw, Tree};
use record::Record;
use std::collections::{HashSet, VecDeque};

/// Calls whose identity is remembered.
const MAX_CALLS: usize = crate::limits::CALLS;
/// Records that are recognised when they come again.
const MAX_RECORDS: usize = 1 << 16;
/// Other things of which the last few are remembered.
const MAX_FEW: usize = 1024;

/// The reader of one session.
#[derive(Debug)]
pub struct Claude {
    index: Index,
    /// The session to read; none reads whatever comes.
    only: Option<String>,
    seen: Seen,
    line: u64,
    /// What was told of the session.
    info: Info<Raw>,
    calls: Recent<call::Known>,
    /// The calls of subagents, by the subagent's id.
    agents: Recent<String>,
    /// Calls whose subagents are known by what they were asked, until they end.
    guessed: Vec<String>,
    /// The call of the subagent whose records stand among the session's own, as old files had it.
    side: Option<String>,
    blocks: said::Blocks,
    cut: cut::Cut,
    doubt: Option<cut::Doubt>,
    partials: Vec<partial::Partial>,
    tasks: tasks::Tasks,
    requests: Recent<control::Request>,
    /// Forms of servers that wait to be filled in, by the id of their request.
    forms: Recent<Form>,
    /// Forms of this turn whose answer has not come.
    waiting: u32,
    /// A compaction whose summary has not come.
    compaction: Option<system::Boundary>,
    /// Files into which output was put, and the calls that gave it.
    files: Recent<String>,
    usage: end::LastUsage,
    /// Somebody gave the session its title.
    named: bool,
    /// The last record was of a file that Claude Code keeps.
    kept: bool,
    /// A record of the session's own was seen.
    own: bool,
    /// A turn has begun and nothing of it has come whole.
    begins: bool,
    /// The last record was of a message, of which more blocks may come.
    speaking: bool,
    /// The turn is over by what is kept of it: the message that was its last.
    over: Option<Box<str>>,
}

impl Claude {
    pub(super) fn new(only: Option<String>) -> Self {
        Claude {
            index: Index::default(),
            only,
            seen: Seen::default(),
            line: 0,
            info: Info::default(),
            calls: Recent::new(MAX_CALLS),
            agents: Recent::new(MAX_FEW),
            guessed: Vec::new(),
            side: None,
            blocks: said::Blocks::default(),
            cut: cut::Cut::default(),
            doubt: None,
            partials: Vec::new(),
            tasks: tasks::Tasks::default(),
            requests: Recent::new(MAX_FEW),
            forms: Recent::new(MAX_FEW),
            waiting: 0,
            compaction: None,
            files: Recent::new(MAX_FEW),
            usage: end::LastUsage::default(),
            named: false,
            kept: false,
            own: false,
            begins: false,
            speaking: false,
            over: None,
        }
    }

    pub(super) fn push(&mut self, packet: &Packet<'_>, out: &mut Yield) {
        self.line = packet.position.line;
        if kinds::is_whole_bookkeeping(packet.bytes) {
            out.quiet += 1;
            return;
        }
        let arrived = out.time.clone();
        let mut index = std::mem::take(&mut self.index);
        objects::each(&mut index, packet, out, |object, out| {
            out.time.clone_from(&arrived);
            // A recorder's wrapping.
            let inner = object.get("msg").filter(|m| m.get("type").is_some());
            self.record(inner.unwrap_or(object), packet.parent, out);
        });
        self.index = index;
    }

    /// Whether what is read was kept in a file.
    pub(super) fn is_kept(&self) -> bool {
        self.kept
    }

    /// The ids of the records that were read since this was asked last.
    pub(super) fn records(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.seen.news)
    }

    /// Records that were read before the cut: they are not read again.
    pub(super) fn recall_records(&mut self, ids: impl Iterator<Item = u64>) {
        for id in ids {
            self.seen.recall(id);
        }
    }

    /// The input is over.
    pub(super) fn finish(&mut self, out: &mut Yield) {
        self.no_summary(out);
        self.settle_doubt(out);
    }

    fn record(&mut self, object: Json<'_>, file_of: Option<&str>, out: &mut Yield) {
        let r = Record::read(object);
        if let (Some(only), Some(session)) = (&self.only, r.session.and_then(Json::str))
            && !session.is_empty()
            && *only != *session
        {
            out.quiet += 1;
            return;
        }
        // A record of nobody's is no record of the session: it may come again as that of a call.
        if file_of != Some(NOBODY)
            && let Some(uuid) = r.uuid.and_then(Json::str)
            && !self.seen.is_new(&uuid)
        {
            out.quiet += 1;
            return;
        }
        self.kept = r.kept;
        let own = r.time.clone().map(|time| time.arrived_with(out.time.as_ref()));
        // What was kept without a date is older than its arrival.
        out.time = own.or(out.time.take().filter(|_| !r.kept));
        let kind = r.kind.as_deref().unwrap_or_default();
        if kinds::is_quiet(kind) {
            out.quiet += 1;
            return;
        }
        let parent = match self.parent(&r, file_of) {
            Of::Call(call) => Some(call),
            Of::Session => None,
            Of::Nobody => return self.unasked(&r, out),
        };
        self.doubt(&r, object, out);
        self.context(&r, parent.is_some(), out);
        if kind != "stream_event" {
            self.speaking = kind == "assistant";
        }
        match kind {
            "assistant" => self.said(&r, object, parent, out),
            "user" => self.user(&r, parent.as_ref(), out),
            "system" => self.system(&r, object, parent.as_ref(), out),
            "result" => {
                self.waiting = 0;
                self.end(&r, object, out);
            }
            "stream_event" => self.partial(&r, parent.as_ref(), out),
            "attachment" => self.attachment(&r, object, parent.as_ref(), out),
            "control_request" | "control_response" | "control_cancel_request" => {
                self.control(kind, &r, object, out);
            }
            "cost-state" => self.cost(object, out),
            "summary" | "custom-title" | "ai-title" | "agent-name" | "pr-link" => {
                self.title(kind, object, out);
            }
            _ => unknown(if kind.is_empty() { "untyped" } else { kind }, object, out),
        }
    }

    /// The call whose subagent wrote a record.
    fn parent(&mut self, r: &Record<'_>, file_of: Option<&str>) -> Of {
        match file_of {
            Some(NOBODY) => return Of::Nobody,
            Some(call) => return Of::Call(Raw::new(call)),
            None => {}
        }
        if let Some(call) = r.parent.and_then(Json::str) {
            return Of::Call(Raw::new(call));
        }
        if !r.sidechain {
            self.own = true;
            return Of::Session;
        }
        let agent = r.agent.and_then(Json::str);
        if let Some(call) = agent.as_ref().and_then(|a| self.agents.get_mut(a)) {
            return Of::Call(Raw::new(call.as_str()));
        }
        // Files of old versions keep a subagent's records among the session's own and tell only
        // what it was asked.
        if r.kind.as_deref() == Some("user")
            && let record::Blocks::Text(text) = r.blocks()
            && let Some(prompt) = text.str()
            && let Some(call) = self.tasks.asked(&prompt)
        {
            if let Some(agent) = agent {
                self.agents.open(&agent).0.clone_from(&call);
                self.guessed.push(call.clone());
                return Of::Call(Raw::new(call));
            }
            self.side = Some(call);
        }
        match &self.side {
            Some(call) if agent.is_none() => Of::Call(Raw::new(call.as_str())),
            // A subagent that nobody asked for; its file alone is a session of its own.
            _ if self.own => Of::Nobody,
            _ => Of::Session,
        }
    }

    /// What records tell of the session in passing.
    fn context(&mut self, r: &Record<'_>, sub: bool, out: &mut Yield) {
        if sub || r.kind.as_deref() == Some("stream_event") {
            // A subagent works where the session does; its records may be read first.
            if self.info.cwd.is_none() {
                out.roots.extend(r.cwd.and_then(Json::str).map(Raw::new));
            }
            return;
        }
        let known = &self.info;
        // Nearly every record repeats what is known.
        let news = |known: &Option<Raw>, json: Option<Json<'_>>| {
            let text = json.and_then(Json::str)?;
            let same = known.as_ref().is_some_and(|k| k.peek() == text);
            (!same && !text.is_empty()).then(|| Raw::new(text))
        };
        let model = r.message.model.filter(|m| !m.raw().starts_with('<'));
        let news = Info {
            agent: known.agent.is_none().then(|| Raw::new("Claude Code")),
            // The first folder is the session's: the agent may walk about in it.
            cwd: news(&known.cwd, r.cwd).filter(|_| known.cwd.is_none()),
            version: news(&known.version, r.version),
            native_id: news(&known.native_id, r.session),
            mode: news(&known.mode, r.mode),
            model: news(&known.model, model),
            ..Info::default()
        };
        if news != Info::default() {
            self.learn(news, out);
        }
    }

    /// Whether the program is of a version before 2.1.
    fn is_old(&self) -> bool {
        let version = self.info.version.as_ref().map(Raw::peek).unwrap_or_default();
        version.starts_with("2.0.") || version.starts_with("1.") || version.starts_with("0.")
    }

    /// Tells what is new of the session.
    fn learn(&mut self, mut news: Info<Raw>, out: &mut Yield) {
        let known = &mut self.info;
        let mut some = false;
        let pairs = [
            (&mut known.agent, &mut news.agent),
            (&mut known.cwd, &mut news.cwd),
            (&mut known.version, &mut news.version),
            (&mut known.native_id, &mut news.native_id),
            (&mut known.mode, &mut news.mode),
            (&mut known.model, &mut news.model),
            (&mut known.title, &mut news.title),
            (&mut known.status, &mut news.status),
        ];
        for (known, new) in pairs {
            if new.is_some() && known != new {
                known.clone_from(new);
                some = true;
            } else {
                *new = None;
            }
        }
        if news.commands.is_some() && known.commands != news.commands {
            known.commands.clone_from(&news.commands);
            some = true;
        } else {
            news.commands = None;
        }
        if some {
            out.push(Body::SessionInfo(Box::new(news)));
        }
    }
}

/// Whose a record is.
enum Of {
    Session,
    Call(Raw),
    Nobody,
}

/// A record of a kind that nobody modelled.
fn unknown(kind: &str, object: Json<'_>, out: &mut Yield) {
    let tree = Some(Tree::checked(object.raw()));
    out.push(Body::Unknown(Unknown { kind: Raw::new(kind), tree }));
}

/// Records that have been read, by their ids. A resumed session may repeat its old ones.
#[derive(Debug, Default)]
struct Seen {
    ids: HashSet<u64>,
    order: VecDeque<u64>,
    /// Those that nobody has been told of.
    news: Vec<u64>,
}

impl Seen {
    fn is_new(&mut self, uuid: &str) -> bool {
        let Some(id) = record_id(uuid) else { return true };
        if !self.recall(id) {
            return false;
        }
        self.news.push(id);
        if self.news.len() > MAX_RECORDS {
            self.news.clear();
        }
        true
    }

    fn recall(&mut self, id: u64) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > MAX_RECORDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

/// A record's UUID, shortened to a number.
fn record_id(uuid: &str) -> Option<u64> {
    let mut id = 0u128;
    let mut digits = 0;
    for c in uuid.bytes().filter(|c| *c != b'-') {
        id = id << 4 | u128::from(char::from(c).to_digit(16)?);
        digits += 1;
    }
    (digits == 32).then_some((id >> 64) as u64 ^ id as u64)
}

/// The id of the record in a line of Claude Code, where it has one: the same in what it prints and
/// in what it keeps.
pub fn record_of(line: &str) -> Option<u64> {
    let mut index = Index::default();
    let doc = index.read(line.trim()).ok()?;
    record_id(&doc.root().text("uuid")?)
}
