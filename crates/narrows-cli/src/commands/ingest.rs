//! `narrows ingest`: stores the packets of a session, through the running server or directly.

use crate::args::IngestArgs;
use crate::client::{Client, encode_query};
use crate::config::{RedactionSettings, data_dir};
use crate::error::CliError;
use crate::input::{FormatProbe, InputPiece, probe_file, read_session};
use crate::runtime::runtime;
use narrows::{Given, Packet};
use narrows_engine::discovery::label_of;
use narrows_engine::ingest::{Arrival, Hidden, Intake, Reading, Wrapped};
use narrows_engine::live::Hub;
use narrows_server::api::{PacketAnswer, PacketState, Session};
use narrows_store::{NewSession, Options, Store};
use std::collections::HashMap;
use std::io::{self, BufWriter, Read, Write, stdout};
use std::path::Path;
use std::sync::Arc;

const CHUNK_BYTES: usize = 256 << 10;

/// The last line that the store has of each source, by the number of the source.
type LastLines = HashMap<u32, u64>;

pub(crate) fn run(args: &IngestArgs) -> Result<(), CliError> {
    let data = data_dir(&args.data)?;
    let is_live = args.file.as_os_str() == "-";
    if !is_live && !args.file.exists() {
        let not_found = io::ErrorKind::NotFound.into();
        return Err(CliError::cannot(format!("open {}", args.file.display()))(not_found));
    }
    if !is_live && args.first.is_some() {
        return Err(CliError::new(
            "cannot use --first with a file: its lines are numbered already",
        )
        .hint("use it with standard input (`-`)"));
    }
    // An unknown format must not create a session.
    if !is_live {
        probe_file(&args.file, args.format)?.check()?;
    }
    let mut probe = FormatProbe::new(args.format);
    let label = args.label.clone().or_else(|| (!is_live).then(|| label_of(&args.file)));
    let (id, answer) = match Client::find(&data)? {
        Some(client) => send_to_server(args, &client, label.as_deref(), is_live, &mut probe)?,
        None => runtime()?.block_on(write_to_store(args, &data, label, is_live, &mut probe))?,
    };
    let (packets, events) = (answer.packets, answer.events);
    writeln!(stdout().lock(), "{id}: {packets} packets, {events} new events")
        .map_err(CliError::stdout)?;
    if is_live { probe.finish("standard input").check() } else { Ok(()) }
}

/// Standard input that is probed as it passes.
struct ProbedStdin<'a> {
    input: io::StdinLock<'static>,
    probe: &'a mut FormatProbe,
}

impl Read for ProbedStdin<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.probe.push(&buffer[..n]);
        Ok(n)
    }
}

/// Writes the lines of a session in envelopes that name their source and line number. Leaves out
/// lines that are stored already.
fn write_enveloped(file: &Path, stored: &LastLines, mut out: impl Write) -> Result<(), CliError> {
    let is_new = |source: u32, line: u64| stored.get(&source).is_none_or(|last| line > *last);
    let len = std::fs::metadata(file).map_or(u64::MAX, |file| file.len());
    let mut partial = None;
    read_session(Some(file), |piece| {
        let envelope = match piece {
            InputPiece::ChunkEnd => return Ok(()),
            InputPiece::OffloadedOutput(name, text) => Wrapped {
                output: Some(name.to_owned()),
                text: Some(text.to_owned()),
                ..Wrapped::default()
            },
            // The agent is writing this line: a later ingest reads it.
            InputPiece::Framed(Given::Packet(p)) if is_partial_line(&p, len) => {
                partial = Some(p.position.line);
                return Ok(());
            }
            InputPiece::Framed(Given::Packet(p)) if is_new(p.source, p.position.line) => {
                Wrapped::line(p.source, p.position.line, p.position.offset, p.parent, p.bytes)
            }
            InputPiece::Framed(Given::Fault(f)) if is_new(f.source, f.position.line) => Wrapped {
                source: f.source,
                line: Some(f.position.line),
                offset: Some(f.position.offset),
                too_long: Some(f.length),
                ..Wrapped::default()
            },
            InputPiece::Framed(_) => return Ok(()),
        };
        serde_json::to_writer(&mut out, &envelope)?;
        out.write_all(b"\n")
    })?;
    if let Some(line) = partial {
        let file = file.display();
        let _ = writeln!(
            io::stderr(),
            "narrows: {file}: line {line} is incomplete and was skipped; ingest the file again later"
        );
    }
    out.flush().map_err(CliError::cannot("write to the store"))
}

/// Whether a packet is the last line of the main file and does not end in valid JSON.
fn is_partial_line(packet: &Packet<'_>, file_len: u64) -> bool {
    let end = packet.position.offset.saturating_add(packet.bytes.len() as u64);
    packet.source == 0
        && end >= file_len
        && serde_json::from_slice::<serde::de::IgnoredAny>(packet.bytes).is_err()
}

fn reader_panicked() -> CliError {
    CliError::new("cannot read the input: the reader panicked")
}

fn send_to_server(
    args: &IngestArgs,
    client: &Client,
    label: Option<&str>,
    is_live: bool,
    probe: &mut FormatProbe,
) -> Result<(String, PacketAnswer), CliError> {
    let body = serde_json::json!({ "label": label, "tags": args.tags });
    let session: Session = client.post("/api/sessions", &body)?;
    let mut path = format!("/api/sessions/{}/packets?format={}", session.id, args.format.name());
    if !args.redaction.root.is_empty() {
        path.push_str("&root=");
        path.push_str(&encode_query(&args.redaction.root.join("\n")));
    }
    if is_live {
        path.push_str("&end=true");
        path.extend(args.first.map(|first| format!("&first={first}")));
        let input = ProbedStdin { input: io::stdin().lock(), probe };
        return Ok((session.id, client.post_stream(&path, input)?));
    }
    path.push_str("&wrapped=true&arrived=none&end=true");
    let state: PacketState = client.get(&format!("/api/sessions/{}/packets", session.id))?;
    let stored: LastLines = state.sources.iter().map(|s| (s.number, s.acknowledged)).collect();
    let (reader, writer) = io::pipe().map_err(CliError::cannot("create a pipe"))?;
    let answer = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let writer = BufWriter::with_capacity(CHUNK_BYTES, writer);
            write_enveloped(&args.file, &stored, writer)
        });
        let answer = client.post_stream(&path, reader);
        match (writing.join(), answer) {
            // A server that refuses closes the pipe; its reason is more useful than that of the pipe.
            (_, Err(error)) | (Ok(Err(error)), _) => Err(error),
            (Err(_), _) => Err(reader_panicked()),
            (Ok(Ok(())), Ok(answer)) => Ok(answer),
        }
    })?;
    Ok((session.id, answer))
}

async fn write_to_store(
    args: &IngestArgs,
    data: &Path,
    label: Option<String>,
    is_live: bool,
    probe: &mut FormatProbe,
) -> Result<(String, PacketAnswer), CliError> {
    let store = Store::open(data, &Options::default()).map_err(CliError::new)?;
    let mut settings = RedactionSettings::load(&args.redaction)?;
    settings.secrets.set_key(store.mark_key());
    let hidden = Hidden { paths: settings.paths, secrets: Arc::new(settings.secrets) };
    let intake = Intake::new(store.clone(), Hub::new(store.clone()), hidden);
    let new_session = NewSession { label, tags: args.tags.clone() };
    let (session, _) = store.create(new_session).await.map_err(CliError::new)?;
    let reading = Reading {
        format: args.format,
        arrival: if is_live { Arrival::Now } else { Arrival::None },
        wrapped: !is_live,
        first: args.first,
        end: true,
        roots: args.redaction.root.clone(),
        ..Reading::default()
    };
    let sources = store.sources(session.key).await.map_err(CliError::new)?;
    let stored: LastLines = sources.iter().map(|s| (s.number, s.rest)).collect();
    let mut request = intake.open(&session, reading).await.map_err(CliError::new)?;
    let (mut reader, writer) = io::pipe().map_err(CliError::cannot("create a pipe"))?;
    let file = args.file.clone();
    let reading_input = std::thread::spawn(move || -> Result<(), CliError> {
        let mut writer = BufWriter::with_capacity(CHUNK_BYTES, writer);
        if !is_live {
            return write_enveloped(&file, &stored, writer);
        }
        // Flushed after every read: followers wait for it.
        let mut input = io::stdin().lock();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let n = input.read(&mut chunk).map_err(CliError::cannot("read standard input"))?;
            if n == 0 {
                return Ok(());
            }
            writer
                .write_all(&chunk[..n])
                .and_then(|()| writer.flush())
                .map_err(CliError::cannot("write to the store"))?;
        }
    });
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let n = tokio::task::block_in_place(|| reader.read(&mut chunk))
            .map_err(CliError::cannot("read the input"))?;
        if n == 0 {
            break;
        }
        if is_live {
            probe.push(&chunk[..n]);
        }
        request.push(&chunk[..n]).await.map_err(CliError::new)?;
    }
    reading_input.join().map_err(|_| reader_panicked())??;
    let answer = request.finish().await.map_err(CliError::new)?;
    intake.close().await;
    store.close().await;
    Ok((session.id, answer))
}
