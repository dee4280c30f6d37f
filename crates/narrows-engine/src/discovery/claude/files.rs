//! The files of one Claude Code session: its main file, its subagents' files and offloaded outputs.

use crate::discovery::scan::{age, fingerprint};
use narrows::adapter::launched;
use narrows::{Beside, NOBODY};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a file that are read to find the session id.
const HEADER_SCAN_BYTES: u64 = 1 << 20;
/// Depth and number of entries to which a directory is searched.
const MAX_DEPTH: usize = 5;
const MAX_ENTRIES: usize = 20_000;
/// An older subagent file without a call will never get one.
const ORPHAN_AFTER: Duration = Duration::from_hours(24);
/// Bytes of subagent files that are read.
const MAX_SUBAGENT_BYTES: u64 = 1 << 30;

/// The files of one session.
#[derive(Debug, Default)]
pub struct SessionFiles {
    /// The main file.
    pub main: PathBuf,
    /// The session id, if the file has one.
    pub session: Option<String>,
    /// Subagents' files and the calls that started them; [`narrows::NOBODY`] where no call did. The program
    /// warms up with some: they are not shown, but their usage was paid for.
    pub(in crate::discovery) agents: Vec<(PathBuf, String)>,
    /// Offloaded outputs.
    pub(in crate::discovery) outputs: Vec<PathBuf>,
    /// Subagents' files without a known call.
    pub(in crate::discovery) orphans: Vec<PathBuf>,
}

impl SessionFiles {
    /// Reads the subagents' files.
    pub fn beside(&self) -> io::Result<Beside> {
        let mut beside = Beside::default();
        let mut left = MAX_SUBAGENT_BYTES;
        for (path, call) in &self.agents {
            let bytes = read(path, left)?;
            left -= bytes.len() as u64;
            beside.add(call.as_str(), bytes);
        }
        Ok(beside)
    }

    /// The subagents' files that are read with the session.
    pub fn subagents(&self) -> impl Iterator<Item = &Path> {
        self.agents.iter().map(|(path, _)| path.as_path())
    }

    /// Reads the offloaded outputs one by one: name and text.
    pub fn outputs(&self) -> impl Iterator<Item = io::Result<(String, String)>> {
        self.outputs.iter().map(|path| {
            let name = name(path);
            Ok((name, String::from_utf8_lossy(&read(path, MAX_SUBAGENT_BYTES)?).into_owned()))
        })
    }

    /// Total bytes of the files other than the main file.
    pub fn len_beside(&self) -> u64 {
        let paths = self.agents.iter().map(|(path, _)| path).chain(&self.outputs);
        paths.filter_map(|p| fs::metadata(p).ok()).map(|m| m.len()).sum()
    }
}

/// Finds the files of the session in `path`: its main file or its directory.
pub fn find(path: &Path) -> io::Result<SessionFiles> {
    let main = if path.is_dir() { main_file_in(path)? } else { path.to_owned() };
    let mut found = SessionFiles { session: session_id(&main)?, main, ..SessionFiles::default() };
    let Some(session) = found.session.clone() else { return Ok(found) };
    let folder = match found.main.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut files = Vec::new();
    let own = folder.join(&session);
    if own.is_dir() {
        walk(&own, 0, &mut files);
    } else if stem(&found.main) != session {
        // A copy of the file under another name: the session's directory may lie deeper.
        walk(&folder, 0, &mut files);
        let inside = |p: &PathBuf| p.components().any(|c| c.as_os_str() == session.as_str());
        files.retain(|p| inside(p) || is_agent(p));
    }
    files.extend(entries(&folder).into_iter().filter(|p| is_agent(p)));
    files.sort();
    files.dedup();
    // The files are complete: a subagent without a call will not get one.
    classify(files, &mut found, |_| true)?;
    Ok(found)
}

/// Finds the files of a session where the agent stores it: the file name is the session id.
pub(in crate::discovery) fn session_files(main: &Path) -> io::Result<SessionFiles> {
    let mut found = SessionFiles {
        session: session_id(main)?,
        main: main.to_owned(),
        ..SessionFiles::default()
    };
    let (own, id) = (main.with_extension(""), stem(main));
    let mut files = Vec::new();
    walk(&own, 0, &mut files);
    // Older versions store subagents of all sessions next to them; the records name the session.
    let folder = main.parent().unwrap_or(main);
    let all = entries(folder);
    let mut homeless = Vec::new();
    for path in all.iter().filter(|p| is_agent(p)) {
        match session_id(path).ok().flatten() {
            Some(id_found) if id_found == id => files.push(path.clone()),
            Some(id_found) if is_empty(&folder.join(format!("{id_found}.jsonl"))) => {
                homeless.push(path)
            }
            _ => {}
        }
    }
    files.sort();
    classify(files, &mut found, |path| is_warm_up(path) || is_old(path))?;
    // When the program resumes a session, it warms up under a session id without any other file.
    let warm = homeless
        .into_iter()
        .filter(|path| is_warm_up(path) && next_session(path, &all) == Some(main));
    found.agents.extend(warm.map(|path| (path.clone(), NOBODY.to_owned())));
    Ok(found)
}

/// Returns whether a subagent's file is a session of its own: no file of the session that it names exists,
/// no other session takes it as a warm-up, and the named session has not just begun.
pub(super) fn is_alone(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let is_homeless = session_id(path)
        .ok()
        .flatten()
        .is_some_and(|id| is_empty(&folder.join(format!("{id}.jsonl"))));
    is_homeless
        && (is_old(path) || begins_long_ago(path))
        && !(is_warm_up(path) && next_session(path, &entries(folder)).is_some())
}

/// Returns whether the first record is old; the file may be a newer copy.
fn begins_long_ago(path: &Path) -> bool {
    let time = |root: narrows::json::Json<'_>| {
        let time = root.text("timestamp").and_then(|t| narrows::time::Time::parse(&t));
        time.map(|time| time.millis().saturating_mul(1000))
    };
    first_in_records(path, time).is_ok_and(|at| at.is_some_and(|at| age(at) > ORPHAN_AFTER))
}

/// Returns whether a file is missing or empty.
fn is_empty(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |about| about.len() == 0)
}

/// The session file that was modified first after a file, otherwise last before it.
fn next_session<'a>(path: &Path, all: &'a [PathBuf]) -> Option<&'a Path> {
    let at = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    let written = at(path);
    let sessions = all.iter().filter(|p| has_ending(p, "jsonl") && !is_agent(p) && !is_empty(p));
    let order = |p: &&PathBuf| {
        let late = at(p) >= written;
        let time = at(p).and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        let nanos = time.map_or(0, |t| i128::try_from(t.as_nanos()).unwrap_or(0));
        (!late, if late { nanos } else { -nanos }, name(p))
    };
    sessions.min_by_key(order).map(PathBuf::as_path)
}

/// Separates this session's subagents from those of others and from outputs. A subagent without a call
/// belongs to no call if `is_orphan` says that none will come.
fn classify(
    files: Vec<PathBuf>,
    found: &mut SessionFiles,
    is_orphan: impl Fn(&Path) -> bool,
) -> io::Result<()> {
    let mut orphans = Vec::new();
    for path in files {
        if is_agent(&path) {
            match parent_call(&path) {
                Some(call) => found.agents.push((path, call)),
                None => orphans.push(path),
            }
        } else if path.parent().is_some_and(|p| p.ends_with("tool-results")) {
            found.outputs.push(path);
        }
    }
    if orphans.is_empty() {
        return Ok(());
    }
    // Older versions name the call only in the main file, after the subagent has ended.
    let calls = calls(&found.main)?;
    for path in orphans {
        let id = stem(&path);
        match id.strip_prefix("agent-").and_then(|id| calls.get(id)) {
            Some(call) => found.agents.push((path, call.clone())),
            None if found.session.is_some()
                && session_id(&path)? == found.session
                && is_orphan(&path) =>
            {
                found.agents.push((path, NOBODY.to_owned()));
            }
            None => found.orphans.push(path),
        }
    }
    // Files with calls come first: their numbers do not depend on the others.
    found.agents.sort_by(|a, b| (a.1 == NOBODY, &a.0).cmp(&(b.1 == NOBODY, &b.0)));
    Ok(())
}

/// Returns whether a subagent only warms up the program.
fn is_warm_up(path: &Path) -> bool {
    let asked = |root: narrows::json::Json<'_>| {
        root.path(&["message", "content"]).map(|c| c.str().unwrap_or_default().into_owned())
    };
    first_in_records(path, asked).is_ok_and(|asked| asked.as_deref() == Some("Warmup"))
}

/// Returns whether a file is so old that its call has ended or will never come.
fn is_old(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| age(fingerprint(&about).2) > ORPHAN_AFTER)
}

/// The main file in a directory.
fn main_file_in(folder: &Path) -> io::Result<PathBuf> {
    // The file next to the directory with the same name.
    let sibling = folder.with_extension("jsonl");
    if sibling.is_file() {
        return Ok(sibling);
    }
    let is_main = |p: &PathBuf| has_ending(p, "jsonl") && !is_agent(p) && p.is_file();
    let mut files: Vec<PathBuf> = entries(folder).into_iter().filter(is_main).collect();
    files.sort();
    if let Some(history) = files.iter().find(|p| stem(p) == "history") {
        return Ok(history.clone());
    }
    match files.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            Err(io::Error::new(io::ErrorKind::NotFound, "no session file (.jsonl) in this folder"))
        }
        [first, ..] => {
            let text = format!(
                "{} sessions in this folder: name one of them, as {}",
                files.len(),
                first.display()
            );
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

/// The session id of a file; `None` if it is not a session file.
pub(in crate::discovery) fn session_id(path: &Path) -> io::Result<Option<String>> {
    first_in_records(path, |root| {
        root.text("sessionId").filter(|id| is_plain(id)).map(Cow::into_owned)
    })
}

/// The agent's working directory according to the records.
pub(in crate::discovery) fn working_dir(path: &Path) -> io::Result<Option<String>> {
    first_in_records(path, |root| root.text("cwd").map(Cow::into_owned))
}

/// The first value that `ask` finds in the records at the beginning of a file.
fn first_in_records<T>(
    path: &Path,
    ask: impl Fn(narrows::json::Json<'_>) -> Option<T>,
) -> io::Result<Option<T>> {
    let mut reader = BufReader::new(File::open(path)?);
    let (mut line, mut read) = (Vec::new(), 0);
    // The first record may hold an image and exceed the limit, so it is always read.
    while read < HEADER_SCAN_BYTES {
        line.clear();
        let limit = narrows::lines::MAX_LINE as u64;
        match reader.by_ref().take(limit).read_until(b'\n', &mut line)? {
            0 => break,
            n => read += n as u64,
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        let mut index = narrows::json::Index::default();
        let Ok(doc) = index.read(text.trim()) else { continue };
        if let Some(answer) = ask(doc.root()) {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// Returns whether an id is a plain name, not a path.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
}

/// The call that started a subagent, from the metadata next to its file.
fn parent_call(agent: &Path) -> Option<String> {
    let note = fs::read(agent.with_extension("meta.json")).ok()?;
    let text = String::from_utf8(note).ok()?;
    let mut index = narrows::json::Index::default();
    let doc = index.read(text.trim()).ok()?;
    doc.root().text("toolUseId").map(Cow::into_owned)
}

/// The calls that started subagents, from the main file.
fn calls(main: &Path) -> io::Result<HashMap<String, String>> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(main)?);
    let mut calls = HashMap::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = narrows::lines::MAX_LINE as u64;
        if reader.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(calls);
        }
        calls.extend(launched(&line));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(folder).into_iter().flatten().flatten();
    list.take(MAX_ENTRIES).map(|e| e.path()).collect()
}

/// All files below a directory. Links are not followed.
fn walk(folder: &Path, depth: usize, out: &mut Vec<PathBuf>) {
    walk_some(folder, depth, &mut MAX_ENTRIES.clone(), out);
}

fn walk_some(folder: &Path, depth: usize, left: &mut usize, out: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return;
        }
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_dir() && depth < MAX_DEPTH {
            walk_some(&path, depth + 1, left, out);
        } else if about.is_file() {
            out.push(path);
        }
    }
}

pub(in crate::discovery) fn is_agent(path: &Path) -> bool {
    let named = has_ending(path, "jsonl") && name(path).starts_with("agent-");
    // Reading a pipe of that name would never end.
    named && fs::symlink_metadata(path).is_ok_and(|m| m.is_file())
}

pub(in crate::discovery) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e == ending)
}

pub(in crate::discovery) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(in crate::discovery) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads up to `max_bytes` of a file.
fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}
