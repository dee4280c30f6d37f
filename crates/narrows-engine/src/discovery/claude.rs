//! The files of one session of Claude Code: its own, those of its subagents, and those into which
//! long outputs were put.

use super::look::{age, facts};
use narrows::adapter::launched;
use narrows::{Beside, NOBODY};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of a file is read to see whose it is.
const HEAD: u64 = 1 << 20;
/// How deep, and over how many entries, a folder is searched.
const MAX_DEPTH: usize = 5;
const MAX_ENTRIES: usize = 20_000;
/// A subagent whose file is older was begun by no call.
const UNNAMED: Duration = Duration::from_hours(24);
/// How much of the files beside a session is read.
const MAX_BESIDE: u64 = 1 << 30;

/// The files of one session.
#[derive(Debug, Default)]
pub struct Found {
    /// The session's own file.
    pub main: PathBuf,
    /// The session's id, where the file tells.
    pub session: Option<String>,
    /// Files of subagents, and the calls that began them: [`narrows::NOBODY`] where nobody asked for
    /// one. The program warms itself up by some: they are not seen, but they were paid for.
    pub(super) agents: Vec<(PathBuf, String)>,
    /// Files of long outputs.
    pub(super) outputs: Vec<PathBuf>,
    /// Files of subagents that nobody asked for, as far as is known.
    pub(super) orphans: Vec<PathBuf>,
}

impl Found {
    /// Reads the files of the subagents.
    pub fn beside(&self) -> io::Result<Beside> {
        let mut beside = Beside::default();
        let mut left = MAX_BESIDE;
        for (path, call) in &self.agents {
            let bytes = read(path, left)?;
            left -= bytes.len() as u64;
            beside.add(call.as_str(), bytes);
        }
        Ok(beside)
    }

    /// The files of subagents that are read with the session.
    pub fn subagents(&self) -> impl Iterator<Item = &Path> {
        self.agents.iter().map(|(path, _)| path.as_path())
    }

    /// Reads the files of long outputs one after the other: name and text.
    pub fn outputs(&self) -> impl Iterator<Item = io::Result<(String, String)>> {
        self.outputs.iter().map(|path| {
            let name = name(path);
            Ok((name, String::from_utf8_lossy(&read(path, MAX_BESIDE)?).into_owned()))
        })
    }

    /// How many bytes lie beside the session's own file.
    pub fn len_beside(&self) -> u64 {
        let paths = self.agents.iter().map(|(path, _)| path).chain(&self.outputs);
        paths.filter_map(|p| fs::metadata(p).ok()).map(|m| m.len()).sum()
    }
}

/// Finds the files of the session in `path`: its own file, or its folder.
pub fn find(path: &Path) -> io::Result<Found> {
    let main = if path.is_dir() { main_of(path)? } else { path.to_owned() };
    let mut found = Found { session: session(&main)?, main, ..Found::default() };
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
        // A copy of the file under another name: the folder may lie deeper.
        walk(&folder, 0, &mut files);
        let inside = |p: &PathBuf| p.components().any(|c| c.as_os_str() == session.as_str());
        files.retain(|p| inside(p) || is_agent(p));
    }
    files.extend(entries(&folder).into_iter().filter(|p| is_agent(p)));
    files.sort();
    files.dedup();
    // Nothing more is written: whom nobody has named is named by nobody.
    sort_out(files, &mut found, |_| true)?;
    Ok(found)
}

/// Finds the files of a session that lies where the agent put it: the file's name is its id.
pub(super) fn kept(main: &Path) -> io::Result<Found> {
    let mut found = Found { session: session(main)?, main: main.to_owned(), ..Found::default() };
    let (own, id) = (main.with_extension(""), stem(main));
    let mut files = Vec::new();
    walk(&own, 0, &mut files);
    // Older versions put subagents of all sessions beside them: they tell whose they are.
    let folder = main.parent().unwrap_or(main);
    let all = entries(folder);
    let mut homeless = Vec::new();
    for path in all.iter().filter(|p| is_agent(p)) {
        match session(path).ok().flatten() {
            Some(of) if of == id => files.push(path.clone()),
            Some(of) if is_empty(&folder.join(format!("{of}.jsonl"))) => homeless.push(path),
            _ => {}
        }
    }
    files.sort();
    sort_out(files, &mut found, |path| is_warm_up(path) || is_old(path))?;
    // When it goes on with a session, the program warms up under an id of which nothing is kept else.
    let warm =
        homeless.into_iter().filter(|path| is_warm_up(path) && next(path, &all) == Some(main));
    found.agents.extend(warm.map(|path| (path.clone(), NOBODY.to_owned())));
    Ok(found)
}

/// Whether a file is not there or holds nothing.
fn is_empty(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |about| about.len() == 0)
}

/// The session whose file was written next after another file, or last of all.
fn next<'a>(path: &Path, all: &'a [PathBuf]) -> Option<&'a Path> {
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

/// Tells files of subagents of this session from those of others, and from outputs.
/// Those of it that no call began, and that `alone` says none will, are nobody's.
fn sort_out(
    files: Vec<PathBuf>,
    found: &mut Found,
    alone: impl Fn(&Path) -> bool,
) -> io::Result<()> {
    let mut orphans = Vec::new();
    for path in files {
        if is_agent(&path) {
            match call_of(&path) {
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
    // Older versions tell only in the session's own file whose a subagent is, when it has ended.
    let calls = calls(&found.main)?;
    for path in orphans {
        let id = stem(&path);
        match id.strip_prefix("agent-").and_then(|id| calls.get(id)) {
            Some(call) => found.agents.push((path, call.clone())),
            None if found.session.is_some() && session(&path)? == found.session && alone(&path) => {
                found.agents.push((path, NOBODY.to_owned()));
            }
            None => found.orphans.push(path),
        }
    }
    // Those of calls first: their numbers do not depend on the others.
    found.agents.sort_by(|a, b| (a.1 == NOBODY, &a.0).cmp(&(b.1 == NOBODY, &b.0)));
    Ok(())
}

/// Whether a subagent only warms the program up.
fn is_warm_up(path: &Path) -> bool {
    let asked = |root: narrows::json::Json<'_>| {
        root.path(&["message", "content"]).map(|c| c.str().unwrap_or_default().into_owned())
    };
    told(path, asked).is_ok_and(|asked| asked.as_deref() == Some("Warmup"))
}

/// Whether nothing was written for so long that its call has ended, or never will.
fn is_old(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| age(facts(&about).2) > UNNAMED)
}

/// The session's own file in a folder.
fn main_of(folder: &Path) -> io::Result<PathBuf> {
    // The folder beside the file, of the same name.
    let beside = folder.with_extension("jsonl");
    if beside.is_file() {
        return Ok(beside);
    }
    let is_main = |p: &PathBuf| has_ending(p, "jsonl") && !is_agent(p) && p.is_file();
    let mut files: Vec<PathBuf> = entries(folder).into_iter().filter(is_main).collect();
    files.sort();
    if let Some(kept) = files.iter().find(|p| stem(p) == "history") {
        return Ok(kept.clone());
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

/// The id of the session that a file keeps; none of what is no such file.
pub(super) fn session(path: &Path) -> io::Result<Option<String>> {
    told(path, |root| root.text("sessionId").filter(|id| is_plain(id)).map(Cow::into_owned))
}

/// The folder in which the agent worked, as the records tell.
pub(super) fn cwd(path: &Path) -> io::Result<Option<String>> {
    told(path, |root| root.text("cwd").map(Cow::into_owned))
}

/// The first answer that a record at the beginning of a file gives.
fn told(
    path: &Path,
    ask: impl Fn(narrows::json::Json<'_>) -> Option<String>,
) -> io::Result<Option<String>> {
    let mut reader = BufReader::new(File::open(path)?);
    let (mut line, mut read) = (Vec::new(), 0);
    // The first record may hold a picture, and is longer than all that is looked at else.
    while read < HEAD {
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

/// An id that is a name and no path.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
}

/// The call that began a subagent, from the note beside its file.
fn call_of(agent: &Path) -> Option<String> {
    let note = fs::read(agent.with_extension("meta.json")).ok()?;
    let text = String::from_utf8(note).ok()?;
    let mut index = narrows::json::Index::default();
    let doc = index.read(text.trim()).ok()?;
    doc.root().text("toolUseId").map(Cow::into_owned)
}

/// The calls that began subagents, from the session's own file.
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

/// Every file below a folder. Links are not followed.
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

pub(super) fn is_agent(path: &Path) -> bool {
    let named = has_ending(path, "jsonl") && name(path).starts_with("agent-");
    // A pipe of that name would never end.
    named && fs::symlink_metadata(path).is_ok_and(|m| m.is_file())
}

pub(super) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e == ending)
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file, up to `most` bytes of it.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
