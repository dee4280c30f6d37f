//! `narrows doctor`: what is found, what is at risk, how the store is.

mod told;

use crate::args::DoctorArgs;
use crate::client::Client;
use crate::index::{self, is_followed};
use crate::library::{Library, NOTHING};
use crate::ls::{About, Known};
use crate::settings::{data_dir, sources};
use crate::table::{json_line, unwritten};
use crate::when::Clock;
use crate::{Fault, fault};
use narrows_server::source::{Lying, Seen, SourceOptions, agents, has_line, label_of, look};
use narrows_store::{Checked, DataDir, Error, FileMark, SCHEMA, Store, gone};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use told::{Mark, print, told};

const DAY_MS: i64 = 24 * 3600 * 1000;
/// What is deleted within so many days is at risk.
const SOON_DAYS: i64 = 7;
/// The store is looked at for so long.
const PATIENCE: Duration = Duration::from_mins(1);
/// What has just been written need not have been read.
const FRESH_MS: i64 = 60 * 1000;

/// Everything that is told, for a program.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    /// Whether nothing needs attention.
    well: bool,
    /// What does, in words.
    attention: Vec<String>,
    agents: Vec<AgentReport>,
    running: Running,
    /// Sessions in the store.
    sessions: usize,
    /// Those of which the agent's own file is gone.
    archived: usize,
    drift: Vec<Drift>,
    store: StoreReport,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentReport {
    agent: String,
    places: Vec<PathBuf>,
    /// Places, folders and files that cannot be read, and why.
    refused: Vec<(PathBuf, String)>,
    sessions: usize,
    files: usize,
    bytes: u64,
    /// Sessions of which something is not in the store.
    unread: usize,
    /// Sessions that were deleted here, or are of projects that are left out.
    left_out: usize,
    keeps_days: Option<u32>,
    /// Files that the agent deletes soon, and when it deletes the first.
    soon: usize,
    next_at: Option<i64>,
}

#[derive(Debug, Default, Serialize)]
struct Running {
    running: bool,
    /// Whether the service is installed.
    service: bool,
    url: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Drift {
    agent: String,
    version: String,
    sessions: u64,
    unknown: u64,
    malformed: u64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoreReport {
    folder: PathBuf,
    exists: bool,
    /// Whether the folder was not there.
    is_missing: bool,
    /// Whether it was not there before this command.
    is_new: bool,
    schema: u32,
    database_bytes: u64,
    wal_bytes: u64,
    /// Whether nothing waits for the index.
    indexed: bool,
    /// What cannot be read, in words.
    damage: Vec<String>,
    /// Whether all of it was looked at in the time that there is.
    checked: bool,
    error: Option<String>,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<bool, Fault> {
    let clock = Clock::here();
    let data = data_dir(&args.library.data)?;
    let options = sources(&args.library.hide)?;
    // A store that cannot be opened is told of as well.
    let was_there = data.exists();
    // Looking makes no folder.
    let opened =
        if was_there || !args.library.no_scan { open(args, &data) } else { Err(fault(NOTHING)) };
    let gone = match &opened {
        Err(error) if was_there => {
            DataDir::open(&data).ok().and_then(|dir| gone(&dir)).map(|_| error)
        }
        _ => None,
    };
    let gone = gone.map(|fault| fault.error.to_string());
    let mut report = Report { running: running(&data), ..Report::default() };
    report.store.is_missing = !data.exists();
    report.store.is_new = !was_there;
    report.store.exists =
        data.exists() && DataDir::open(&data).is_ok_and(|dir| dir.database().exists());
    report.store.folder = data;
    let mut kept = Kept { now: clock.now(), ..Kept::default() };
    let of_store = |(library, checked)| of_store(&library, &checked, &mut report, &mut kept);
    match opened.and_then(of_store) {
        Err(fault) if report.store.exists => report.store.error = Some(fault.error.to_string()),
        _ => report.store.error = gone,
    }
    let follows = options.is_some();
    if let Some(options) = options {
        let seen = look(&agents(&options));
        kept.options = options;
        report.agents = seen.iter().map(|seen| kept.of(seen)).collect();
    }
    let sections = told(&report, follows, &clock);
    let bad = sections.iter().flat_map(|(_, said)| said).filter(|s| s.mark == Mark::Bad);
    report.attention = bad.map(|s| s.text.clone()).collect();
    report.well = report.attention.is_empty();
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        json_line(&mut out, &report)?;
    } else {
        print(&sections, &mut out)?;
    }
    out.flush().map_err(unwritten)?;
    Ok(report.well)
}

fn running(data: &Path) -> Running {
    let running = data.exists() && is_followed(data).unwrap_or(false);
    let client = if running { Client::find(data).ok().flatten() } else { None };
    let service = crate::service::is_installed();
    Running { running, service, url: client.map(|c| c.url().to_owned()) }
}

/// Looks whether the store is whole, then for new sessions: what is damaged is only read.
fn open(args: &DoctorArgs, data: &Path) -> Result<(Library, Checked), Fault> {
    // Looking for new sessions would make another one in its place.
    if let Some(what) = DataDir::open(data).ok().and_then(|dir| gone(&dir)) {
        let wal = std::fs::metadata(data.join("narrows.db-wal")).is_ok_and(|wal| wal.len() > 0);
        let keep = if wal { "`narrows repair` keeps what its write-ahead log holds, " } else { "" };
        return Err(fault(format!("{what}: {keep}`narrows restore` puts a copy in its place")));
    }
    let there = DataDir::open(data).is_ok_and(|dir| dir.database().exists());
    let is_older = || matches!(Store::open_read_only(data), Err(Error::Older { .. }));
    if !there || is_older() {
        before_showing(args)?;
    }
    let library = Library::as_it_is(&args.library)?;
    let checked = library.wait(library.store.check(PATIENCE, Duration::ZERO))?;
    if checked.damage.is_empty() && there {
        before_showing(args)?;
    }
    Ok((library, checked))
}

fn before_showing(args: &DoctorArgs) -> Result<(), Fault> {
    if args.library.no_scan {
        return Ok(());
    }
    index::before_showing(&args.library.data, &args.library.hide)
}

/// Adds what the store tells.
fn of_store(
    library: &Library,
    checked: &Checked,
    report: &mut Report,
    kept: &mut Kept,
) -> Result<(), Fault> {
    // First of all: what comes after may fail on what is damaged.
    report.store.damage = checked.damage.iter().map(|(d, session)| d.words(session)).collect();
    report.store.checked = checked.complete;
    let marks = library.wait(library.store.files())?;
    kept.marks = marks.into_iter().map(|mark| (mark.path.clone(), mark)).collect();
    kept.forgotten = library.wait(library.store.forgotten())?.into_iter().collect();
    let known = Known::read(library)?;
    report.sessions = known.rows.len();
    report.archived = known.rows.iter().filter(|row| row.file_exists == Some(false)).count();
    let mut versions: BTreeMap<(String, String), Drift> = BTreeMap::new();
    for about in known.rows.iter().map(About::of).filter(|a| a.unknown + a.malformed > 0) {
        let name = (about.agent, about.version);
        let drift = versions.entry(name).or_default();
        drift.sessions += 1;
        drift.unknown += about.unknown;
        drift.malformed += about.malformed;
    }
    let named = versions.into_iter().map(|((agent, version), d)| Drift { agent, version, ..d });
    report.drift = named.collect();
    report.drift.sort_by_key(|d| std::cmp::Reverse(d.unknown + d.malformed));
    let size = library.store.size();
    report.store.schema = SCHEMA;
    (report.store.database_bytes, report.store.wal_bytes) = (size.database, size.wal);
    report.store.indexed = library.wait(library.store.is_settled())?;
    Ok(())
}

/// What is known of files.
#[derive(Debug, Default)]
struct Kept {
    marks: HashMap<String, FileMark>,
    forgotten: HashSet<String>,
    options: SourceOptions,
    now: i64,
}

impl Kept {
    fn of(&self, seen: &Seen) -> AgentReport {
        let mut report = AgentReport {
            agent: seen.agent.name().to_owned(),
            places: seen.places.clone(),
            refused: seen.refused.clone(),
            sessions: seen.sessions.len(),
            keeps_days: seen.agent.keeps_days(),
            ..AgentReport::default()
        };
        for (main, files) in &seen.sessions {
            report.files += files.len();
            report.bytes += files.iter().map(|f| f.size).sum::<u64>();
            if files.iter().any(|file| self.lacks(main, file)) {
                let opened = files.iter().map(|f| (&f.path, File::open(&f.path)));
                let closed = opened.filter_map(|(path, file)| Some((path, file.err()?)));
                let closed = closed.filter(|(_, e)| e.kind() != io::ErrorKind::NotFound);
                let closed: Vec<_> = closed.map(|(p, e)| (p.clone(), e.to_string())).collect();
                if !closed.is_empty() {
                    report.refused.extend(closed);
                } else if files.iter().all(|file| self.is_fresh(file) || !self.lacks(main, file)) {
                    // What is written just now is read in a moment.
                } else if self.is_left_out(seen, main) {
                    report.left_out += 1;
                } else {
                    report.unread += usize::from(has_line(main).unwrap_or(true));
                }
            }
            for file in files {
                let Some(days) = report.keeps_days else { break };
                let at = millis(file) + i64::from(days) * DAY_MS;
                report.soon += usize::from(at < self.now + SOON_DAYS * DAY_MS);
                report.next_at = Some(report.next_at.map_or(at, |next| next.min(at)));
            }
        }
        report
    }

    fn is_fresh(&self, file: &Lying) -> bool {
        self.now - millis(file) < FRESH_MS
    }

    /// Whether something of a file is not in the store.
    fn lacks(&self, main: &Path, file: &Lying) -> bool {
        match self.marks.get(&*file.path.to_string_lossy()) {
            Some(mark) => mark.size != file.size || mark.changed != file.changed,
            // Files of subagents that nobody began are in nobody's session.
            None => file.path == main,
        }
    }

    fn is_left_out(&self, seen: &Seen, main: &Path) -> bool {
        let excluded =
            |cwd: String| self.options.exclude.iter().any(|e| Path::new(&cwd).starts_with(e));
        self.forgotten.contains(&label_of(main)) || seen.agent.cwd(main).is_some_and(excluded)
    }
}

/// When a file was written last.
fn millis(file: &Lying) -> i64 {
    file.changed / 1000
}
