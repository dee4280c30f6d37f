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

/// Reads a session; gives its steps to `take`.
pub(crate) fn session(
    file: Option<&Path>,
    config: Config,
    mut take: impl FnMut(&mut Vec<Step>, When) -> io::Result<()>,
) -> Result<(), Fault> {
    let path = file.filter(|p| p.as_os_str() != "-");
    let name = path.map(|p| p.display().to_string()).unwrap_or_default();
    let found = path.map(find).transpose().map_err(Fault::new(name))?;
    let main = found.as_ref().map(|f| f.main.as_path());
    let (mut input, name) = open(main)?;
    let beside = found.as_ref().map(narrows_server::source::Found::beside);
    let mut beside = beside.transpose().map_err(Fault::new(name.as_str()))?.unwrap_or_default();
    let mut packets = Packets::default();
    let mut pipeline = Pipeline::new(config);
    let mut steps = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let out = || Fault::new("standard output");
    loop {
        let n = read(&mut input, &mut chunk).map_err(Fault::new(name.as_str()))?;
        if n == 0 {
            break;
        }
        let mut done = Ok(());
        packets.push(&chunk[..n], |given| {
            if let Given::Packet(packet) = &given {
                beside.before(packet.bytes, |given| pipeline.push(given, &mut steps));
            }
            pipeline.push(given, &mut steps);
            if done.is_ok() {
                done = take(&mut steps, When::Packet);
            }
        });
        // A reader at the other end sees what has come, also when nothing more comes for a while.
        done.and_then(|()| take(&mut steps, When::Pause)).map_err(out())?;
    }
    packets.finish(|given| pipeline.push(given, &mut steps));
    beside.rest(|given| pipeline.push(given, &mut steps));
    for output in found.iter().flat_map(narrows_server::source::Found::outputs) {
        let (file, text) = output.map_err(Fault::new(name.as_str()))?;
        pipeline.offloaded(&file, &text, &mut steps);
    }
    pipeline.finish(&mut steps);
    take(&mut steps, When::Pause).map_err(out())
}

fn read(input: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
