//! `narrows doctor`: discovered sessions, upcoming deletions, store health.

mod report;

use super::session_index::{HeaderFields, SessionIndex};
use crate::args::DoctorArgs;
use crate::client::Client;
use crate::config::{data_dir, source_options};
use crate::error::CliError;
use crate::local_store::{self, LocalStore, is_store_in_use, no_sessions};
use crate::output::{Clock, json_line};
use narrows_engine::discovery::{Lying, Seen, SourceOptions, agents, has_line, label_of, look};
use narrows_store::{Checked, DataDir, Error, FileMark, SCHEMA, Store, gone};
use report::{Severity, print, sections};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const DAY_MS: i64 = 24 * 3600 * 1000;
/// Files that the agent deletes within this time are at risk.
const AT_RISK_DAYS: i64 = 7;
const CHECK_TIMEOUT: Duration = Duration::from_mins(1);
/// A file changed within this time need not have been imported yet.
const IMPORT_GRACE_MS: i64 = 60 * 1000;

/// The whole report, as --json prints it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct DoctorReport {
    /// Whether nothing needs attention.
    well: bool,
    /// What needs attention, for people.
    attention: Vec<String>,
    agents: Vec<AgentReport>,
    running: ServerStatus,
    /// Sessions in the store.
    sessions: usize,
    /// Sessions whose agent file no longer exists.
    archived: usize,
    drift: Vec<VersionDrift>,
    store: StoreReport,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentReport {
    agent: String,
    places: Vec<PathBuf>,
    /// Paths that cannot be read, and why.
    refused: Vec<(PathBuf, String)>,
    sessions: usize,
    files: usize,
    bytes: u64,
    /// Sessions that are not completely in the store.
    unread: usize,
    /// Sessions that the user deleted, or whose project is excluded.
    left_out: usize,
    keeps_days: Option<u32>,
    /// Files that the agent deletes within [`AT_RISK_DAYS`], and when it deletes the first file.
    soon: usize,
    next_at: Option<i64>,
}

#[derive(Debug, Default, Serialize)]
struct ServerStatus {
    /// Whether a process writes the store.
    running: bool,
    /// Whether the service is installed.
    service: bool,
    url: Option<String>,
    /// Why the running server cannot write its store, or the damage that it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct VersionDrift {
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
    /// Whether there is no data directory.
    is_missing: bool,
    /// Whether this command created it.
    is_new: bool,
    schema: u32,
    database_bytes: u64,
    wal_bytes: u64,
    /// Whether the search index is complete.
    indexed: bool,
    /// Descriptions of what cannot be read.
    damage: Vec<String>,
    /// Whether the check completed in time.
    checked: bool,
    error: Option<String>,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<bool, CliError> {
    let clock = Clock::local();
    let data = data_dir(&args.local.data)?;
    let options = source_options(&args.local.redaction)?;
    let existed = data.exists();
    // A store that cannot be opened is reported, too. With --no-scan no directory is created.
    let opened =
        if existed || !args.local.no_scan { open(args, &data) } else { Err(no_sessions()) };
    let missing_database = match &opened {
        Err(error) if existed => {
            DataDir::open(&data).ok().and_then(|dir| gone(&dir)).map(|_| error.to_string())
        }
        _ => None,
    };
    let mut report = DoctorReport { running: server_status(&data), ..DoctorReport::default() };
    report.store.is_missing = !data.exists();
    report.store.is_new = !existed;
    report.store.exists =
        data.exists() && DataDir::open(&data).is_ok_and(|dir| dir.database().exists());
    report.store.folder = data;
    let mut stored = StoredFiles { now: clock.now(), ..StoredFiles::default() };
    let add_store = |(local, checked)| add_store(&local, &checked, &mut report, &mut stored);
    match opened.and_then(add_store) {
        Err(error) if report.store.exists => report.store.error = Some(error.to_string()),
        _ => report.store.error = missing_database,
    }
    let discovers = options.is_some();
    if let Some(options) = options {
        let seen = look(&agents(&options));
        stored.options = options;
        report.agents = seen.iter().map(|seen| stored.agent_report(seen)).collect();
    }
    let sections = sections(&report, discovers, &clock);
    let findings = sections.iter().flat_map(|(_, findings)| findings);
    let problems = findings.filter(|f| f.severity == Severity::Problem);
    report.attention = problems.map(|f| f.text.clone()).collect();
    report.well = report.attention.is_empty();
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        json_line(&mut out, &report)?;
    } else {
        print(&sections, &mut out)?;
    }
    out.flush().map_err(CliError::stdout)?;
    Ok(report.well)
}

fn server_status(data: &Path) -> ServerStatus {
    let running = data.exists() && is_store_in_use(data).unwrap_or(false);
    let client = if running { Client::find(data).ok().flatten() } else { None };
    let service = super::service::is_installed();
    // The server has the files open; other files may have their names now.
    let health = client.as_ref().and_then(Client::health);
    let trouble = health.and_then(|health| match (health.reason, health.damaged) {
        (Some(reason), _) => Some(format!("it cannot write its store: {reason}")),
        (None, Some(1)) => Some("one place of its store cannot be read".to_owned()),
        (None, Some(n)) => Some(format!("{n} places of its store cannot be read")),
        (None, None) => None,
    });
    ServerStatus { running, service, url: client.map(|c| c.url().to_owned()), trouble }
}

/// Checks the store, then imports new sessions. A damaged store is only read.
fn open(args: &DoctorArgs, data: &Path) -> Result<(LocalStore, Checked), CliError> {
    // An import would create a new database in place of the missing one.
    if let Some(error) = DataDir::open(data).ok().and_then(|dir| gone(&dir)) {
        let has_wal = std::fs::metadata(data.join("narrows.db-wal")).is_ok_and(|wal| wal.len() > 0);
        let repair = if has_wal { "`narrows repair` recovers its write-ahead log, " } else { "" };
        return Err(
            CliError::new(error).hint(format!("{repair}`narrows restore` restores a backup"))
        );
    }
    let exists = DataDir::open(data).is_ok_and(|dir| dir.database().exists());
    let needs_migration = || matches!(Store::open_read_only(data), Err(Error::Older { .. }));
    if !exists || needs_migration() {
        refresh(args)?;
    }
    let local = LocalStore::open_without_scan(&args.local)?;
    let checked = local.block_on(local.store.check(CHECK_TIMEOUT, Duration::ZERO))?;
    if checked.damage.is_empty() && exists {
        refresh(args)?;
    }
    Ok((local, checked))
}

fn refresh(args: &DoctorArgs) -> Result<(), CliError> {
    if args.local.no_scan {
        return Ok(());
    }
    local_store::refresh(&args.local.data, &args.local.redaction)
}

/// Adds what the store knows to the report.
fn add_store(
    local: &LocalStore,
    checked: &Checked,
    report: &mut DoctorReport,
    stored: &mut StoredFiles,
) -> Result<(), CliError> {
    // First, because the queries below may fail on damaged rows.
    report.store.damage = checked.damage.iter().map(|(d, session)| d.words(session)).collect();
    report.store.checked = checked.complete;
    let marks = local.block_on(local.store.files())?;
    stored.marks = marks.into_iter().map(|mark| (mark.path.clone(), mark)).collect();
    stored.deleted = local.block_on(local.store.forgotten())?.into_iter().collect();
    let index = SessionIndex::load(local)?;
    report.sessions = index.rows.len();
    report.archived = index.rows.iter().filter(|row| row.file_exists == Some(false)).count();
    let mut versions: BTreeMap<(String, String), VersionDrift> = BTreeMap::new();
    let headers = index.rows.iter().map(HeaderFields::of);
    for header in headers.filter(|h| h.unknown + h.malformed > 0) {
        let name = (header.agent, header.version);
        let drift = versions.entry(name).or_default();
        drift.sessions += 1;
        drift.unknown += header.unknown;
        drift.malformed += header.malformed;
    }
    report.drift = versions
        .into_iter()
        .map(|((agent, version), d)| VersionDrift { agent, version, ..d })
        .collect();
    report.drift.sort_by_key(|d| std::cmp::Reverse(d.unknown + d.malformed));
    let size = local.store.size();
    report.store.schema = SCHEMA;
    (report.store.database_bytes, report.store.wal_bytes) = (size.database, size.wal);
    report.store.indexed = local.block_on(local.store.is_settled())?;
    Ok(())
}

/// What the store knows of agent files.
#[derive(Debug, Default)]
struct StoredFiles {
    marks: HashMap<String, FileMark>,
    /// Labels of sessions that the user deleted.
    deleted: HashSet<String>,
    options: SourceOptions,
    now: i64,
}

impl StoredFiles {
    fn agent_report(&self, seen: &Seen) -> AgentReport {
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
            if files.iter().any(|file| self.is_behind(main, file)) {
                let unreadable: Vec<_> = files
                    .iter()
                    .filter_map(|f| Some((&f.path, File::open(&f.path).err()?)))
                    .filter(|(_, e)| e.kind() != io::ErrorKind::NotFound)
                    .map(|(path, e)| (path.clone(), e.to_string()))
                    .collect();
                let is_current = |file| self.is_new(file) || !self.is_behind(main, file);
                if !unreadable.is_empty() {
                    report.refused.extend(unreadable);
                } else if files.iter().all(is_current) {
                    // The import will catch up in a moment.
                } else if self.is_left_out(seen, main) {
                    report.left_out += 1;
                } else {
                    report.unread += usize::from(has_line(main).unwrap_or(true));
                }
            }
            for file in files {
                let Some(days) = report.keeps_days else { break };
                let deleted_at = changed_ms(file) + i64::from(days) * DAY_MS;
                report.soon += usize::from(deleted_at < self.now + AT_RISK_DAYS * DAY_MS);
                let next = report.next_at.unwrap_or(deleted_at);
                report.next_at = Some(next.min(deleted_at));
            }
        }
        report
    }

    fn is_new(&self, file: &Lying) -> bool {
        self.now - changed_ms(file) < IMPORT_GRACE_MS
    }

    /// Whether the store does not have all of a file.
    fn is_behind(&self, main: &Path, file: &Lying) -> bool {
        match self.marks.get(&*file.path.to_string_lossy()) {
            Some(mark) => mark.size != file.size || mark.changed != file.changed,
            // Files of subagents that no session mentions are not imported.
            None => file.path == main,
        }
    }

    fn is_left_out(&self, seen: &Seen, main: &Path) -> bool {
        let is_excluded =
            |cwd: String| self.options.exclude.iter().any(|e| Path::new(&cwd).starts_with(e));
        self.deleted.contains(&label_of(main)) || seen.agent.cwd(main).is_some_and(is_excluded)
    }
}

/// The time of the last change, in milliseconds since the Unix epoch.
fn changed_ms(file: &Lying) -> i64 {
    file.changed / 1000
}
