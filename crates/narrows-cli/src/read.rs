//! One session through the pipeline: standard input, a file, or a session with files beside it.

use crate::{Fault, open};
use narrows::{Config, Given, Packets, Pipeline, Step};
use narrows_server::source::find;
use std::io::{self, Read};
use std::path::Path;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

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

/// Reads a session; gives its steps to `take`.
pub(crate) fn session(
    file: Option<&Path>,
    config: Config,
    mut take: impl FnMut(&mut Vec<Step>, When) -> io::Result<()>,
) -> Result<(), Fault> {
    let mut pipeline = Pipeline::new(config);
    let mut steps = Vec::new();
    pieces(file, |piece| {
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
        take(&mut steps, when)
    })?;
    pipeline.finish(&mut steps);
    take(&mut steps, When::Pause).map_err(Fault::new("standard output"))
}

/// Reads a session's files in order; gives what they hold to `take`, whose errors are the output's.
pub(crate) fn pieces(
    file: Option<&Path>,
    mut take: impl FnMut(Piece<'_>) -> io::Result<()>,
) -> Result<(), Fault> {
    let path = file.filter(|p| p.as_os_str() != "-");
    let name = path.map(|p| p.display().to_string()).unwrap_or_default();
    let found = path.map(find).transpose().map_err(Fault::new(name))?;
    let main = found.as_ref().map(|f| f.main.as_path());
    let (mut input, name) = open(main)?;
    let beside = found.as_ref().map(narrows_server::source::Found::beside);
    let mut beside = beside.transpose().map_err(Fault::new(name.as_str()))?.unwrap_or_default();
    let mut packets = Packets::default();
    let mut chunk = vec![0; CHUNK];
    let out = || Fault::new("standard output");
    loop {
        let n = read(&mut input, &mut chunk).map_err(Fault::new(name.as_str()))?;
        if n == 0 {
            break;
        }
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
    Ok(())
}

fn read(input: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
