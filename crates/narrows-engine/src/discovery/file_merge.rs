//! Merges the lines of a session's files in order of time and pushes them to one ingest request.
//! `session_reader` opens the files and stores what was read.

use super::offloaded::OffloadedOutputs;
use super::session_reader::{SessionReader, read_error};
use super::source_file::{CHUNK_BYTES, MAX_LINE_BYTES, SkipRange, SourceFile, hole_len};
use crate::ingest::IngestRequest;
use narrows::event::Position;
use narrows::{Beside, Given, Packets};
use narrows_store::Error;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

impl SessionReader {
    /// Pushes the lines of all files in the order of time.
    pub(super) async fn push_files(
        &self,
        request: &mut IngestRequest,
        files: &mut [SourceFile],
        outputs: &mut OffloadedOutputs,
        is_over: bool,
    ) -> Result<(), Error> {
        let Some((main, agents)) = files.split_first_mut() else { return Ok(()) };
        // Lines that were read before come first, so that new ones are recognized.
        let (mut reread, mut new_subagents) = (Beside::default(), Beside::default());
        for file in agents.iter_mut() {
            let lines = file.unread_lines(is_over);
            let (before, new) = lines.map_err(read_error(&file.path))?;
            self.progress.add(|s| s.read += (before.len() + new.len()) as u64);
            let call = file.parent.clone().unwrap_or_default();
            let lines = memchr::memchr_iter(b'\n', &before).count() as u64;
            let (line, offset) = (file.from.line + lines, file.from.offset + before.len() as u64);
            if !before.is_empty() {
                reread.add_rest(call.clone(), file.number, file.from, before);
            }
            new_subagents.add_rest(call, file.number, Position { line, column: 0, offset }, new);
        }
        let (number, read_before) = (main.number, main.read);
        let skips: HashMap<u32, SkipRange> = std::iter::once((number, main.skip.take()))
            .chain(agents.iter_mut().map(|a| (a.number, a.skip.take())))
            .filter_map(|(number, skip)| Some((number, skip?)))
            .collect();
        let push = |request: &mut IngestRequest, framed: Given<'_>| {
            if let Given::Packet(packet) = &framed
                && let Some(skip) = skips.get(&packet.source)
                && skip.contains(packet.position.line, packet.bytes)
            {
                request.skip(packet);
            } else {
                request.give(framed);
            }
        };
        let path = main.path.clone();
        let mut packets = Packets::after(MAX_LINE_BYTES, main.from);
        let mut chunk = vec![0; CHUNK_BYTES.min(main.size as usize + 1)];
        main.file.seek(SeekFrom::Start(main.from.offset)).map_err(read_error(&path))?;
        let mut read = main.from.offset;
        let caught_up = Cell::new(false);
        let mut push_numbered =
            |mut framed: Given<'_>, request: &mut IngestRequest, new_subagents: &mut Beside| {
                let (source, line) = match &mut framed {
                    Given::Packet(packet) => (&mut packet.source, packet.position.line),
                    Given::Fault(fault) => (&mut fault.source, fault.position.line),
                };
                *source = number;
                let is_new = line > read_before;
                if is_new {
                    reread.rest(|framed| push(request, framed));
                    caught_up.set(true);
                }
                if let Given::Packet(packet) = &framed {
                    let new_subagents = if is_new { new_subagents } else { &mut reread };
                    new_subagents.before(packet.bytes, |framed| push(request, framed));
                }
                push(request, framed);
            };
        // Lines that are written from here on are read the next time.
        while read < main.size {
            let max = chunk.len().min((main.size - read) as usize);
            let n = main.file.read(&mut chunk[..max]).map_err(read_error(&path))?;
            if n == 0 {
                break;
            }
            read += n as u64;
            let hole_bytes =
                hole_len(&main.file, &chunk[..n], read, main.size).map_err(read_error(&path))?;
            packets.push(&chunk[..n], |framed| push_numbered(framed, request, &mut new_subagents));
            request.ends_at(number, packets.ended());
            outputs.note_names(&chunk[..n]);
            if caught_up.get() {
                outputs.push_ready(request, false).map_err(read_error(&path))?;
            }
            if hole_bytes > 0 {
                packets.pass_zeros(hole_bytes);
                read += hole_bytes;
            }
            self.progress.add(|s| s.read += n as u64 + hole_bytes);
            request.flush().await?;
        }
        let ended = packets.ended();
        if ended.offset < read {
            let last = main.last_line(ended.offset, read).map_err(read_error(&path))?;
            if main.accepts_last_line(&last, is_over) {
                packets.finish(|framed| push_numbered(framed, request, &mut new_subagents));
            }
        }
        main.end = packets.ended();
        reread.rest(|framed| push(request, framed));
        new_subagents.rest(|framed| push(request, framed));
        for file in std::iter::once(&*main).chain(agents.iter()) {
            request.ends_at(file.number, file.end);
        }
        outputs.push_ready(request, true).map_err(read_error(&path))?;
        request.flush().await
    }
}
