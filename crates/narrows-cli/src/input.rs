//! One session through the pipeline: standard input, a file, or a session with files beside it.

use crate::{Fault, NOT_UNDERSTOOD, fault, open};
use narrows::{Config, Given, Packets, Pipeline, Secrets, Step, Tally, looks_like};
use narrows_server::source::find;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;
/// Bytes of the beginning that are kept, to say what an input looks like.
const HEAD: usize = 64 << 10;

/// When the steps that are ready are handed over: after a packet, and after a piece of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Packet,
    Pause,
}

/// What a session's files hold, in order.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// A packet, or a line that cannot be one.
    Given(Given<'a>),
    /// A file in which the agent put the output of a call: its name and text.
    Output(&'a str, &'a str),
    /// Nothing more has come for now.
    Pause,
}

/// What came of an input.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was understood of it.
    pub(crate) tally: Tally,
    name: String,
    head: Vec<u8>,
}

impl Outcome {
    /// An error when nothing was understood, which says what the input looks like.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.tally.is_understood() {
            return Ok(());
        }
        let Tally { told, packets, .. } = self.tally;
        let looks = looks_like(&self.head);
        let what = match told {
            0 => format!("{}: nothing in it was understood: {looks}", self.name),
            // Words that other programs use too.
            _ => format!(
                "{}: it was not understood: {looks} ({told} of {packets} packets seem to fit)",
                self.name
            ),
        };
        Err(Fault { code: NOT_UNDERSTOOD, ..fault(what) })
    }

    /// What of an input that was understood was not, in words; nothing when all of it was.
    pub(crate) fn leftover(&self) -> Option<String> {
        let Tally { malformed, unknown, .. } = self.tally;
        let count = |n: u64, what: &str| match n {
            0 => None,
            1 => Some(format!("1 {what}")),
            n => Some(format!("{n} {what}s")),
        };
        let unknown = count(unknown, "packet").map(|p| p + " of kinds that are not known");
        let parts: Vec<String> =
            count(malformed, "malformed line").into_iter().chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Whether an input is one that is understood, seen while it is on its way elsewhere.
#[derive(Debug)]
pub(crate) struct Probe {
    packets: Packets,
    pipeline: Pipeline,
    head: Vec<u8>,
    done: bool,
}

impl Probe {
    pub(crate) fn new(format: narrows::Format) -> Self {
        let secrets = Arc::new(Secrets::none());
        let config = Config { format, secrets, events_only: true, ..Config::default() };
        let (packets, head) = (Packets::default(), Vec::new());
        Probe { packets, pipeline: Pipeline::new(config), head, done: false }
    }

    /// Looks at the next bytes; true when what has come is understood, and nothing more need be
    /// looked at.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if self.done {
            return true;
        }
        keep_head(&mut self.head, bytes);
        let (pipeline, mut steps) = (&mut self.pipeline, Vec::new());
        self.packets.push(bytes, |given| {
            pipeline.push(given, &mut steps);
            steps.clear();
        });
        let tally = self.pipeline.tally();
        // What only seems to fit may still turn out to be something else.
        self.done = tally.decided && tally.told > 0;
        self.done
    }

    /// The input is over.
    pub(crate) fn finish(mut self, name: &str) -> Outcome {
        let (pipeline, mut steps) = (&mut self.pipeline, Vec::new());
        self.packets.finish(|given| pipeline.push(given, &mut steps));
        Outcome { tally: self.pipeline.tally(), name: name.to_owned(), head: self.head }
    }
}

/// Sees whether a file is understood; reads no more of it than is needed for that.
pub(crate) fn probe(file: &Path, format: narrows::Format) -> Result<Outcome, Fault> {
    let name = file.display().to_string();
    let main = find(file).map_err(Fault::new(name.as_str()))?.main;
    let (mut input, _) = open(Some(&main))?;
    let mut probe = Probe::new(format);
    let mut chunk = vec![0; CHUNK];
    loop {
        let n = read(&mut input, &mut chunk).map_err(Fault::new(name.as_str()))?;
        if n == 0 || probe.push(&chunk[..n]) {
            return Ok(probe.finish(&name));
        }
    }
}

fn keep_head(head: &mut Vec<u8>, bytes: &[u8]) {
    let room = HEAD.saturating_sub(head.len()).min(bytes.len());
    head.extend_from_slice(&bytes[..room]);
}

/// Reads a session; gives its steps to `take`, with what was understood so far.
pub(crate) fn session(
    file: Option<&Path>,
    config: Config,
    mut take: impl FnMut(&mut Vec<Step>, When, Tally) -> io::Result<()>,
) -> Result<Outcome, Fault> {
    let mut pipeline = Pipeline::new(config);
    let mut steps = Vec::new();
    let head = pieces(file, |piece| {
        let when = match piece {
            Piece::Given(given) => {
                pipeline.push(given, &mut steps);
                When::Packet
            }
            Piece::Output(name, text) => {
                pipeline.offloaded(name, text, &mut steps);
                When::Packet
            }
            Piece::Pause => When::Pause,
        };
        take(&mut steps, when, pipeline.tally())
    })?;
    let tally = pipeline.tally();
    pipeline.finish(&mut steps);
    take(&mut steps, When::Pause, tally).map_err(Fault::new("standard output"))?;
    let name = file.filter(|p| p.as_os_str() != "-").map(|p| p.display().to_string());
    Ok(Outcome { tally, name: name.unwrap_or_else(|| "standard input".to_owned()), head })
}

/// Reads a session's files in order; gives what they hold to `take`, whose errors are the output's.
/// Returns the beginning of the session's own file.
pub(crate) fn pieces(
    file: Option<&Path>,
    mut take: impl FnMut(Piece<'_>) -> io::Result<()>,
) -> Result<Vec<u8>, Fault> {
    let path = file.filter(|p| p.as_os_str() != "-");
    let name = path.map(|p| p.display().to_string()).unwrap_or_default();
    let found = path.map(find).transpose().map_err(Fault::new(name))?;
    let main = found.as_ref().map(|f| f.main.as_path());
    let (mut input, name) = open(main)?;
    let beside = found.as_ref().map(narrows_server::source::Found::beside);
    let mut beside = beside.transpose().map_err(Fault::new(name.as_str()))?.unwrap_or_default();
    let mut packets = Packets::default();
    let mut chunk = vec![0; CHUNK];
    let mut head = Vec::new();
    let out = || Fault::new("standard output");
    loop {
        let n = read(&mut input, &mut chunk).map_err(Fault::new(name.as_str()))?;
        if n == 0 {
            break;
        }
        keep_head(&mut head, &chunk[..n]);
        let mut done = Ok(());
        let mut give = |given: Given<'_>| {
            if done.is_ok() {
                done = take(Piece::Given(given));
            }
        };
        packets.push(&chunk[..n], |given| {
            if let Given::Packet(packet) = &given {
                beside.before(packet.bytes, &mut give);
            }
            give(given);
        });
        // A reader at the other end sees what has come, also when nothing more comes for a while.
        done.and_then(|()| take(Piece::Pause)).map_err(out())?;
    }
    let mut done = Ok(());
    let mut give = |given: Given<'_>| {
        if done.is_ok() {
            done = take(Piece::Given(given));
        }
    };
    packets.finish(&mut give);
    beside.rest(&mut give);
    done.map_err(out())?;
    for output in found.iter().flat_map(narrows_server::source::Found::outputs) {
        let (file, text) = output.map_err(Fault::new(name.as_str()))?;
        take(Piece::Output(&file, &text)).map_err(out())?;
    }
    Ok(head)
}

fn read(input: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
