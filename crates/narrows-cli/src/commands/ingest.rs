//! `narrows ingest`: a session's packets into the store.

use crate::args::{DataArgs, From, IngestArgs};
use crate::client::Client;
use crate::read::{Piece, Probe, pieces, probe};
use crate::settings::data_dir;
use crate::{Fault, hide, serve};
use narrows::{Format, Given, Packet};
use narrows_server::api::{PacketAnswer, PacketState, Session};
use narrows_server::hub::Hub;
use narrows_server::intake::{Arrival, Hidden, Intake, Reading, Wrapped};
use narrows_server::source::label_of;
use narrows_store::{NewSession, Options, Store};
use std::collections::HashMap;
use std::io::{self, BufWriter, Error, Read, Write, stdout};
use std::path::Path;
use std::sync::Arc;

/// Bytes given to the store at once.
const CHUNK: usize = 256 << 10;

pub(crate) fn run(args: &IngestArgs) -> Result<(), Fault> {
    let data = data_dir(&args.data)?;
    let live = args.file.as_os_str() == "-";
    if !live && !args.file.exists() {
        let what = io::ErrorKind::NotFound.into();
        return Err(Fault::new(args.file.display().to_string())(what));
    }
    if !live && args.first.is_some() {
        let what =
            Error::other("goes with standard input (`-`): the lines of a file have their places");
        return Err(Fault::new("--first")(what));
    }
    // What nobody can read makes no session.
    if !live {
        probe(&args.file, format(args.from))?.check()?;
    }
    let mut seen = Probe::new(format(args.from));
    let label = args.label.clone().or_else(|| (!live).then(|| label_of(&args.file)));
    let (id, answer) = match Client::find(&data)? {
        Some(client) => to_server(args, &client, label.as_deref(), live, &mut seen)?,
        None => serve::runtime()?.block_on(to_store(args, &data, label, live, &mut seen))?,
    };
    let (packets, events) = (answer.packets, answer.events);
    writeln!(stdout().lock(), "{id}: {packets} packets, {events} new events")
        .map_err(Fault::new("standard output"))?;
    if live { seen.finish("standard input").check() } else { Ok(()) }
}

fn format(from: From) -> Format {
    match from {
        From::Auto => Format::Auto,
        From::Acp => Format::Acp,
        From::ClaudeStream => Format::ClaudeStream,
        From::ClaudeHistory => Format::ClaudeHistory,
    }
}

/// Standard input, looked at on its way.
struct Watched<'a> {
    input: io::StdinLock<'static>,
    seen: &'a mut Probe,
}

impl Read for Watched<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(to)?;
        self.seen.push(&to[..n]);
        Ok(n)
    }
}

/// `narrows sample`: the bundled session, for whoever has none yet.
pub(crate) fn sample(data: &DataArgs) -> Result<(), Fault> {
    let at = data_dir(data)?.join("sample");
    let file = crate::sample::write_to(&at).map_err(Fault::new("sample"))?;
    let done = run(&IngestArgs {
        data: data.clone(),
        from: From::ClaudeHistory,
        label: Some("sample".to_owned()),
        tags: vec!["sample".to_owned()],
        first: None,
        hide: crate::args::HideArgs { root: Vec::new(), home: None, config: None, no_env: true },
        file,
    });
    let _ = std::fs::remove_dir_all(at);
    done?;
    writeln!(stdout().lock(), "`narrows show sample` shows it, `narrows rm sample` removes it")
        .map_err(Fault::new("standard output"))
}

/// Lines that say which file and line they are of; those that are known are left out.
fn wrapped(file: &Path, known: &HashMap<u32, u64>, mut out: impl Write) -> Result<(), Fault> {
    let new = |source: u32, line: u64| known.get(&source).is_none_or(|last| line > *last);
    let len = std::fs::metadata(file).map_or(u64::MAX, |file| file.len());
    let mut torn = None;
    pieces(Some(file), |piece| {
        let line = match piece {
            Piece::Pause => return Ok(()),
            Piece::Output(name, text) => Wrapped {
                output: Some(name.to_owned()),
                text: Some(text.to_owned()),
                ..Wrapped::default()
            },
            // A line that is just being written: it is read when it is whole.
            Piece::Given(Given::Packet(p)) if is_torn(&p, len) => {
                torn = Some(p.position.line);
                return Ok(());
            }
            Piece::Given(Given::Packet(p)) if new(p.source, p.position.line) => {
                Wrapped::line(p.source, p.position.line, p.position.offset, p.parent, p.bytes)
            }
            Piece::Given(Given::Fault(f)) if new(f.source, f.position.line) => Wrapped {
                source: f.source,
                line: Some(f.position.line),
                offset: Some(f.position.offset),
                too_long: Some(f.length),
                ..Wrapped::default()
            },
            Piece::Given(_) => return Ok(()),
        };
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")
    })?;
    if let Some(line) = torn {
        let file = file.display();
        // The message is all there is to lose.
        let _ = writeln!(
            io::stderr(),
            "narrows: {file}: line {line} is not whole: it is left out until the file is read again"
        );
    }
    out.flush().map_err(Fault::new("the store"))
}

/// Whether a packet is the last line of a file of so many bytes, without an end.
fn is_torn(packet: &Packet<'_>, len: u64) -> bool {
    let ends = packet.position.offset.saturating_add(packet.bytes.len() as u64);
    packet.source == 0
        && ends >= len
        && serde_json::from_slice::<serde::de::IgnoredAny>(packet.bytes).is_err()
}

fn to_server(
    args: &IngestArgs,
    client: &Client,
    label: Option<&str>,
    live: bool,
    seen: &mut Probe,
) -> Result<(String, PacketAnswer), Fault> {
    let body = serde_json::json!({ "label": label, "tags": args.tags });
    let session: Session = client.post("/api/sessions", &body)?;
    let mut path =
        format!("/api/sessions/{}/packets?format={}", session.id, format(args.from).name());
    if !args.hide.root.is_empty() {
        path.push_str("&root=");
        path.push_str(&escaped(&args.hide.root.join("\n")));
    }
    if live {
        path.push_str("&end=true");
        path.extend(args.first.map(|first| format!("&first={first}")));
        let input = Watched { input: io::stdin().lock(), seen };
        return Ok((session.id, client.stream(&path, input)?));
    }
    path.push_str("&wrapped=true&arrived=none&end=true");
    let state: PacketState = client.get(&format!("/api/sessions/{}/packets", session.id))?;
    let known: HashMap<u32, u64> =
        state.sources.iter().map(|s| (s.number, s.acknowledged)).collect();
    let (reader, writer) = io::pipe().map_err(Fault::new("pipe"))?;
    let answer = std::thread::scope(|scope| {
        let reading =
            scope.spawn(|| wrapped(&args.file, &known, BufWriter::with_capacity(CHUNK, writer)));
        let answer = client.stream(&path, reader);
        match (reading.join(), answer) {
            // A server that refuses closes the pipe: what it said is the reason.
            (_, Err(fault)) => Err(fault),
            (Ok(Err(fault)), _) => Err(fault),
            (Err(_), _) => Err(Fault::new("")(Error::other("reading the file failed"))),
            (Ok(Ok(())), Ok(answer)) => Ok(answer),
        }
    })?;
    Ok((session.id, answer))
}

pub(crate) fn escaped(text: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-_.~/".contains(&b);
    text.bytes()
        .map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

async fn to_store(
    args: &IngestArgs,
    data: &Path,
    label: Option<String>,
    live: bool,
    seen: &mut Probe,
) -> Result<(String, PacketAnswer), Fault> {
    let failed = |e: narrows_store::Error| Fault::new("")(Error::other(e));
    let store = Store::open(data, &Options::default()).map_err(failed)?;
    let mut hidden = hide::Hidden::read(&args.hide)?;
    hidden.secrets.set_key(store.mark_key());
    let hidden = Hidden { paths: hidden.paths, secrets: Arc::new(hidden.secrets) };
    let intake = Intake::new(store.clone(), Hub::new(store.clone()), hidden);
    let (session, _) =
        store.create(NewSession { label, tags: args.tags.clone() }).await.map_err(failed)?;
    let reading = Reading {
        format: format(args.from),
        arrival: if live { Arrival::Now } else { Arrival::None },
        wrapped: !live,
        first: args.first,
        end: true,
        roots: args.hide.root.clone(),
        ..Reading::default()
    };
    let known = store.sources(session.key).await.map_err(failed)?;
    let known: HashMap<u32, u64> = known.iter().map(|s| (s.number, s.rest)).collect();
    let mut take = intake.open(&session, reading).await.map_err(failed)?;
    let (mut reader, writer) = io::pipe().map_err(Fault::new("pipe"))?;
    let file = args.file.clone();
    let source = std::thread::spawn(move || -> Result<(), Fault> {
        let mut writer = BufWriter::with_capacity(CHUNK, writer);
        if live {
            // As it comes: a follower waits for it.
            let mut input = io::stdin().lock();
            let mut chunk = vec![0; CHUNK];
            loop {
                let n = input.read(&mut chunk).map_err(Fault::new("standard input"))?;
                if n == 0 {
                    return Ok(());
                }
                writer
                    .write_all(&chunk[..n])
                    .and_then(|()| writer.flush())
                    .map_err(Fault::new("the store"))?;
            }
        }
        wrapped(&file, &known, writer)
    });
    let mut chunk = vec![0; CHUNK];
    loop {
        let n =
            tokio::task::block_in_place(|| reader.read(&mut chunk)).map_err(Fault::new("pipe"))?;
        if n == 0 {
            break;
        }
        if live {
            seen.push(&chunk[..n]);
        }
        take.push(&chunk[..n]).await.map_err(failed)?;
    }
    source.join().map_err(|_| Fault::new("")(Error::other("reading the file failed")))??;
    let answer = take.finish().await.map_err(failed)?;
    intake.close().await;
    store.close().await;
    Ok((session.id, answer))
}
