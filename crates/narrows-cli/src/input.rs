//! Reads one session from standard input, a file, or a session file with the files around it.

use crate::error::{CliError, ErrorKind};
use narrows::{Config, Format, Given, Packets, Pipeline, Secrets, Step, Tally, looks_like};
use narrows_engine::discovery::{Found, find};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

const READ_CHUNK_BYTES: usize = 1 << 20;
/// The start of an input that is kept to describe input in no known format.
const MAX_HEAD_BYTES: usize = 64 << 10;
const STDIN_NAME: &str = "standard input";

/// Opens a file, or standard input for `-` and none. Returns its name for messages too.
pub(crate) fn open_input(file: Option<&Path>) -> Result<(Box<dyn Read>, String), CliError> {
    match file {
        Some(path) if path.as_os_str() != "-" => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(CliError::cannot(format!("open {name}")))?;
            Ok((Box::new(file), name))
        }
        _ => Ok((Box::new(io::stdin().lock()), STDIN_NAME.to_owned())),
    }
}

/// When steps are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// After a packet.
    Packet,
    /// After a chunk of input: there may be a pause until more comes.
    Chunk,
}

/// What the files of a session hold, in order.
#[derive(Debug)]
pub(crate) enum InputPiece<'a> {
    /// A packet, or a line that is not one.
    Framed(Given<'a>),
    /// Tool output that the agent wrote to a file: the file name and the text.
    OffloadedOutput(&'a str, &'a str),
    /// The end of a chunk of input.
    ChunkEnd,
}

/// What the parser made of an input.
#[derive(Debug)]
pub(crate) struct ParseOutcome {
    pub(crate) tally: Tally,
    name: String,
    head: Vec<u8>,
}

impl ParseOutcome {
    /// Returns an error that describes the input if no packet of a known format was found.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.tally.is_understood() {
            return Ok(());
        }
        let Tally { told, packets, .. } = self.tally;
        let looks = looks_like(&self.head);
        let message = match told {
            0 => format!("cannot parse {}: no packet in a known format: {looks}", self.name),
            // JSON of other programs has some of the same field names.
            _ => format!(
                "cannot parse {}: only {told} of {packets} packets match a known format: {looks}",
                self.name
            ),
        };
        Err(CliError::new(message).kind(ErrorKind::UnrecognizedInput))
    }

    /// Describes the lines and packets that were not parsed; none if all were.
    pub(crate) fn unparsed(&self) -> Option<String> {
        let Tally { malformed, unknown, .. } = self.tally;
        let count = |n: u64, noun: &str| match n {
            0 => None,
            1 => Some(format!("1 {noun}")),
            n => Some(format!("{n} {noun}s")),
        };
        let unknown = count(unknown, "packet").map(|packets| packets + " of unknown kind");
        let parts: Vec<String> =
            count(malformed, "malformed line").into_iter().chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Detects whether an input is in a known format while it passes by.
#[derive(Debug)]
pub(crate) struct FormatProbe {
    packets: Packets,
    pipeline: Pipeline,
    head: Vec<u8>,
    done: bool,
}

impl FormatProbe {
    pub(crate) fn new(format: Format) -> Self {
        let secrets = Arc::new(Secrets::none());
        let config = Config { format, secrets, events_only: true, ..Config::default() };
        let (packets, head) = (Packets::default(), Vec::new());
        FormatProbe { packets, pipeline: Pipeline::new(config), head, done: false }
    }

    /// Takes the next bytes; true when the format is known and nothing more need be pushed.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if self.done {
            return true;
        }
        extend_head(&mut self.head, bytes);
        let (pipeline, mut steps) = (&mut self.pipeline, Vec::new());
        self.packets.push(bytes, |framed| {
            pipeline.push(framed, &mut steps);
            steps.clear();
        });
        let tally = self.pipeline.tally();
        // Packets that only seem to match do not decide it.
        self.done = tally.decided && tally.told > 0;
        self.done
    }

    /// Ends the input.
    pub(crate) fn finish(mut self, name: &str) -> ParseOutcome {
        let (pipeline, mut steps) = (&mut self.pipeline, Vec::new());
        self.packets.finish(|framed| pipeline.push(framed, &mut steps));
        ParseOutcome { tally: self.pipeline.tally(), name: name.to_owned(), head: self.head }
    }
}

/// Probes a file. Reads no further than needed to detect the format.
pub(crate) fn probe_file(file: &Path, format: Format) -> Result<ParseOutcome, CliError> {
    let name = file.display().to_string();
    let cannot_read = || CliError::cannot(format!("read {}", file.display()));
    let main = find(file).map_err(cannot_read())?.main;
    let (mut input, _) = open_input(Some(&main))?;
    let mut probe = FormatProbe::new(format);
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    loop {
        let n = read(&mut input, &mut chunk).map_err(cannot_read())?;
        if n == 0 || probe.push(&chunk[..n]) {
            return Ok(probe.finish(&name));
        }
    }
}

fn extend_head(head: &mut Vec<u8>, bytes: &[u8]) {
    let room = MAX_HEAD_BYTES.saturating_sub(head.len()).min(bytes.len());
    head.extend_from_slice(&bytes[..room]);
}

/// Parses a session. Hands its steps to `on_steps`, with the tally so far.
pub(crate) fn parse_session(
    file: Option<&Path>,
    config: Config,
    mut on_steps: impl FnMut(&mut Vec<Step>, Boundary, Tally) -> io::Result<()>,
) -> Result<ParseOutcome, CliError> {
    let mut pipeline = Pipeline::new(config);
    let mut steps = Vec::new();
    let head = read_session(file, |piece| {
        let boundary = match piece {
            InputPiece::Framed(framed) => {
                pipeline.push(framed, &mut steps);
                Boundary::Packet
            }
            InputPiece::OffloadedOutput(name, text) => {
                pipeline.offloaded(name, text, &mut steps);
                Boundary::Packet
            }
            InputPiece::ChunkEnd => Boundary::Chunk,
        };
        on_steps(&mut steps, boundary, pipeline.tally())
    })?;
    let tally = pipeline.tally();
    pipeline.finish(&mut steps);
    on_steps(&mut steps, Boundary::Chunk, tally).map_err(CliError::stdout)?;
    let name = file.filter(|p| p.as_os_str() != "-").map(|p| p.display().to_string());
    Ok(ParseOutcome { tally, name: name.unwrap_or_else(|| STDIN_NAME.to_owned()), head })
}

/// Reads the files of a session in order and hands their pieces to `on_piece`, whose errors are
/// those of the output. Returns the start of the main file.
pub(crate) fn read_session(
    file: Option<&Path>,
    mut on_piece: impl FnMut(InputPiece<'_>) -> io::Result<()>,
) -> Result<Vec<u8>, CliError> {
    let path = file.filter(|p| p.as_os_str() != "-");
    let name = path.map(|p| p.display().to_string()).unwrap_or_default();
    let found = path.map(find).transpose().map_err(CliError::cannot(format!("read {name}")))?;
    let main = found.as_ref().map(|f| f.main.as_path());
    let (mut input, name) = open_input(main)?;
    let cannot_read = || CliError::cannot(format!("read {name}"));
    let subagents = found.as_ref().map(Found::beside).transpose();
    let mut subagents = subagents.map_err(cannot_read())?.unwrap_or_default();
    let mut packets = Packets::default();
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    let mut head = Vec::new();
    loop {
        let n = read(&mut input, &mut chunk).map_err(cannot_read())?;
        if n == 0 {
            break;
        }
        extend_head(&mut head, &chunk[..n]);
        let mut result = Ok(());
        let mut emit = |framed: Given<'_>| {
            if result.is_ok() {
                result = on_piece(InputPiece::Framed(framed));
            }
        };
        packets.push(&chunk[..n], |framed| {
            if let Given::Packet(packet) = &framed {
                subagents.before(packet.bytes, &mut emit);
            }
            emit(framed);
        });
        // The output must show what has come so far even if nothing more comes for a while.
        result.and_then(|()| on_piece(InputPiece::ChunkEnd)).map_err(CliError::stdout)?;
    }
    let mut result = Ok(());
    let mut emit = |framed: Given<'_>| {
        if result.is_ok() {
            result = on_piece(InputPiece::Framed(framed));
        }
    };
    packets.finish(&mut emit);
    subagents.rest(&mut emit);
    result.map_err(CliError::stdout)?;
    for output in found.iter().flat_map(Found::outputs) {
        let (file, text) = output.map_err(cannot_read())?;
        on_piece(InputPiece::OffloadedOutput(&file, &text)).map_err(CliError::stdout)?;
    }
    Ok(head)
}

fn read(input: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(chunk) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
