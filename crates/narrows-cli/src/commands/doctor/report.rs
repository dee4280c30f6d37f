//! The report as text: sections of findings.

use super::{AT_RISK_DAYS, AgentReport, DoctorReport, StoreReport, VersionDrift};
use crate::args::ColorChoice;
use crate::error::CliError;
use crate::output::{Clock, TerminalInfo, display_path};
use narrows_render::escape;
use narrows_render::pen::{BOLD, DIM, GREEN, PLAIN, YELLOW};
use narrows_render::words::{amount, bytes, count};
use narrows_render::wrap::{span, wrap};
use std::io::Write;
use std::path::Path;

/// Agent versions that are listed.
const MAX_VERSIONS: usize = 8;
/// Unreadable paths and damaged rows that are listed.
const MAX_PLACES: usize = 20;
const MIN_TEXT_COLUMNS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    Ok,
    /// Worth knowing, but no problem.
    Note,
    Problem,
}

#[derive(Debug)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) text: String,
}

fn ok(text: impl Into<String>) -> Finding {
    Finding { severity: Severity::Ok, text: text.into() }
}

fn note(text: impl Into<String>) -> Finding {
    Finding { severity: Severity::Note, text: text.into() }
}

fn problem(text: impl Into<String>) -> Finding {
    Finding { severity: Severity::Problem, text: text.into() }
}

/// A title and its findings.
pub(super) type Section = (&'static str, Vec<Finding>);

pub(super) fn sections(report: &DoctorReport, discovers: bool, clock: &Clock) -> Vec<Section> {
    let (mut discovered, mut stored, mut risk) = (Vec::new(), Vec::new(), Vec::new());
    if !discovers {
        discovered.push(note("discovery is disabled in the config file"));
    }
    for agent in &report.agents {
        discovered.extend(discovery_findings(agent));
        stored.extend(import_findings(agent));
        risk.extend(retention_finding(agent, clock));
    }
    if report.store.exists {
        stored.push(ok(format!("{} in the store", count(report.sessions, "session"))));
    }
    if report.archived > 0 {
        let sessions = count(report.archived, "session");
        stored.push(note(format!("{sessions} only in narrows: the agent has deleted its files")));
    }
    let server = match (&report.running.url, report.running.running) {
        (Some(url), _) => ok(format!("a server runs at {url}")),
        (None, true) => ok("another narrows process writes the store"),
        (None, false) if report.running.service => {
            problem("the service is installed but does not run; see `narrows service status`")
        }
        (None, false) => note(
            "no server runs: sessions are imported when a command needs them; \
             `narrows service install` installs a server",
        ),
    };
    let trouble = report.running.trouble.as_deref();
    let is_well = trouble.is_none();
    let trouble = trouble
        .map(|detail| problem(format!("the running server reports: {}", escape::line(detail))));
    let mut sections = vec![
        ("Discovered", discovered),
        ("Stored", stored),
        ("At risk", risk),
        ("Server", [Some(server), trouble].into_iter().flatten().collect()),
        ("Drift", if report.store.exists { drift_findings(&report.drift) } else { Vec::new() }),
        ("Store", store_findings(&report.store, is_well)),
    ];
    sections.retain(|(_, findings)| !findings.is_empty());
    sections
}

fn discovery_findings(agent: &AgentReport) -> Vec<Finding> {
    let name = &agent.agent;
    let mut findings = Vec::new();
    for (place, why) in agent.refused.iter().take(MAX_PLACES) {
        findings.push(problem(format!("{name}: cannot read {}: {why}", escaped_path(place))));
    }
    if agent.refused.len() > MAX_PLACES {
        findings.push(problem(format!("{name}: and {} more", agent.refused.len() - MAX_PLACES)));
    }
    if agent.places.is_empty() {
        findings.push(note(format!("{name}: no sessions on this machine")));
    } else {
        let places: Vec<String> = agent.places.iter().map(|p| escaped_path(p)).collect();
        let (sessions, files) = (count(agent.sessions, "session"), count(agent.files, "file"));
        let (size, places) = (bytes(agent.bytes), places.join(", "));
        findings.push(ok(format!("{name}: {sessions}, {files}, {size} in {places}")));
    }
    findings
}

fn import_findings(agent: &AgentReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    if agent.unread > 0 {
        let all = agent.sessions;
        let text = format!(
            "{}: {} of {all} sessions not completely imported; run `narrows index`",
            agent.agent, agent.unread
        );
        findings.push(problem(text));
    } else if agent.refused.is_empty() && agent.sessions > agent.left_out {
        findings.push(ok(format!("{}: all sessions are imported", agent.agent)));
    }
    if agent.left_out > 0 {
        let sessions = count(agent.left_out, "session");
        findings.push(note(format!("{}: {sessions} excluded or deleted by you", agent.agent)));
    }
    findings
}

fn retention_finding(agent: &AgentReport, clock: &Clock) -> Option<Finding> {
    let (days, next) = (agent.keeps_days?, agent.next_at?);
    let when = if next <= clock.now() {
        "at its next start".to_owned()
    } else {
        format!("on {}", clock.format_day(next))
    };
    let at_risk = match agent.soon {
        0 => "no file".to_owned(),
        n => count(n, "file"),
    };
    let text = format!(
        "{} deletes files {days} days after their last change: {at_risk} within {AT_RISK_DAYS} days, \
         the first {when}",
        agent.agent
    );
    // Imported sessions stay in the store.
    let loses_data = agent.soon > 0 && agent.unread > 0;
    Some(if loses_data { problem(text) } else { ok(text + "; imported sessions stay in narrows") })
}

fn drift_findings(drift: &[VersionDrift]) -> Vec<Finding> {
    if drift.is_empty() {
        return vec![ok("all events are of known kinds, and all lines are readable")];
    }
    let mut findings: Vec<Finding> = drift.iter().take(MAX_VERSIONS).map(version_finding).collect();
    if drift.len() > MAX_VERSIONS {
        findings.push(problem(format!("and {} more versions", drift.len() - MAX_VERSIONS)));
    }
    findings.push(note("a newer narrows may know them; `narrows check drift` lists them"));
    findings
}

fn version_finding(drift: &VersionDrift) -> Finding {
    let agent = escape::line(&format!("{} {}", drift.agent, drift.version));
    let agent = if agent.is_empty() { "unnamed agent".to_owned() } else { agent };
    let sessions = count(usize::try_from(drift.sessions).unwrap_or(usize::MAX), "session");
    let mut parts = Vec::new();
    if drift.unknown > 0 {
        let events = if drift.unknown == 1 { "event" } else { "events" };
        parts.push(format!("{} {events} of unknown kinds", amount(drift.unknown)));
    }
    if drift.malformed > 0 {
        let lines = if drift.malformed == 1 { "line" } else { "lines" };
        parts.push(format!("{} unreadable {lines}", amount(drift.malformed)));
    }
    problem(format!("{agent}: {} in {sessions}", parts.join(" and ")))
}

fn store_findings(store: &StoreReport, is_well: bool) -> Vec<Finding> {
    let folder = escaped_path(&store.folder);
    if let Some(error) = &store.error {
        let mut findings = vec![problem(format!("{folder}: {}", escape::line(error)))];
        let damage = damage_findings(store);
        // A store that cannot even be opened lists no damage.
        if damage.is_empty() && store.exists && error.contains("the store is damaged") {
            findings.push(note(
                "`narrows repair` recovers what is readable, `narrows restore` restores a backup",
            ));
        }
        findings.extend(damage);
        return findings;
    }
    if store.is_missing {
        return vec![note(format!("{folder}: the directory does not exist"))];
    }
    if !store.exists {
        return vec![note(format!("{folder}: no store yet"))];
    }
    let (size, wal) = (bytes(store.database_bytes), store.wal_bytes);
    let wal = if wal > 0 { format!(" and a WAL of {}", bytes(wal)) } else { String::new() };
    let mut findings = vec![ok(format!("{folder}: {size}{wal}, schema {}", store.schema))];
    if store.is_new {
        findings.push(note("this command created the store"));
    }
    findings.extend(damage_findings(store));
    if store.damage.is_empty() {
        findings.push(if store.checked && is_well {
            ok("the database is intact")
        } else if store.checked {
            note("no damage found in the files in the data directory")
        } else {
            note("no damage found in the part that was checked before the time limit")
        });
    }
    findings.push(if store.indexed {
        ok("the search index is complete")
    } else {
        note("the search index is behind: search is slower but complete")
    });
    findings
}

fn damage_findings(store: &StoreReport) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        store.damage.iter().take(MAX_PLACES).map(|text| problem(escape::line(text))).collect();
    if store.damage.len() > MAX_PLACES {
        findings.push(problem(format!("and {} more places", store.damage.len() - MAX_PLACES)));
    }
    if !findings.is_empty() {
        findings.push(note(
            "transcripts mark what cannot be read; `narrows repair` recovers what is readable, \
             `narrows restore` restores a backup",
        ));
    }
    findings
}

fn escaped_path(path: &Path) -> String {
    escape::line(&display_path(path))
}

pub(super) fn print(sections: &[Section], out: &mut impl Write) -> Result<(), CliError> {
    let terminal = TerminalInfo::stdout(ColorChoice::Auto);
    let room = if terminal.is_terminal {
        terminal.columns().saturating_sub(4).max(MIN_TEXT_COLUMNS)
    } else {
        usize::MAX
    };
    for (at, (title, findings)) in sections.iter().enumerate() {
        if at > 0 {
            terminal.write_line(out, &[])?;
        }
        terminal.write_line(out, &[span(BOLD, *title)])?;
        for finding in findings {
            let (sign, style) = match finding.severity {
                Severity::Ok => ("✓", GREEN),
                Severity::Note => ("·", DIM),
                Severity::Problem => ("!", YELLOW.bold()),
            };
            for (at, mut line) in wrap(&[span(PLAIN, &*finding.text)], room).into_iter().enumerate()
            {
                let (sign, style) = if at == 0 { (sign, style) } else { (" ", PLAIN) };
                line.splice(0..0, [span(PLAIN, "  "), span(style, sign), span(PLAIN, " ")]);
                terminal.write_line(out, &line)?;
            }
        }
    }
    Ok(())
}
