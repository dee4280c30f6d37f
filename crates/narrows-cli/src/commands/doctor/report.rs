//! What the doctor says, in words.

use super::{AgentReport, Drift, Report, SOON_DAYS, StoreReport};
use crate::Fault;
use crate::args::When;
use crate::table::Look;
use crate::when::Clock;
use narrows_show::escape;
use narrows_show::pen::{BOLD, DIM, GREEN, PLAIN, YELLOW};
use narrows_show::words::{amount, bytes, count};
use narrows_show::wrap::{span, wrap};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Versions of agents that are listed.
const VERSIONS: usize = 8;

/// Damaged places that are listed.
const PLACES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Good,
    /// Worth knowing, and as it may be.
    Note,
    Bad,
}

#[derive(Debug)]
pub(super) struct Said {
    pub(super) mark: Mark,
    pub(super) text: String,
}

fn good(text: impl Into<String>) -> Said {
    Said { mark: Mark::Good, text: text.into() }
}

fn note(text: impl Into<String>) -> Said {
    Said { mark: Mark::Note, text: text.into() }
}

fn bad(text: impl Into<String>) -> Said {
    Said { mark: Mark::Bad, text: text.into() }
}

pub(super) type Section = (&'static str, Vec<Said>);

pub(super) fn told(report: &Report, follows: bool, clock: &Clock) -> Vec<Section> {
    let (mut found, mut kept, mut risk) = (Vec::new(), Vec::new(), Vec::new());
    if !follows {
        found.push(note("sessions of agents are not looked for: the config file says so"));
    }
    for agent in &report.agents {
        found.extend(of_places(agent));
        kept.extend(of_reading(agent));
        risk.extend(of_risk(agent, clock));
    }
    if report.store.exists {
        kept.push(good(format!("{} in the store", count(report.sessions, "session"))));
    }
    if report.archived > 0 {
        let many = count(report.archived, "session");
        let are = if report.archived == 1 { "is" } else { "are" };
        kept.push(note(format!("{many} {are} only in narrows: the agent's own file is gone")));
    }
    let follow = match (&report.running.url, report.running.running) {
        (Some(url), _) => good(format!("a server runs at {url}")),
        (None, true) => good("another narrows writes the store"),
        (None, false) if report.running.service => {
            bad("the service is installed and does not run: `narrows service status` tells more")
        }
        (None, false) => note(
            "nothing runs in the background: sessions are read when a command asks for them; \
             `narrows service install` changes that",
        ),
    };
    let mut sections = vec![
        ("Found", found),
        ("Kept", kept),
        ("At risk", risk),
        ("Following", vec![follow]),
        ("Understood", if report.store.exists { of_drift(&report.drift) } else { Vec::new() }),
        ("Store", of_disk(&report.store)),
    ];
    sections.retain(|(_, said)| !said.is_empty());
    sections
}

fn of_places(agent: &AgentReport) -> Vec<Said> {
    let name = &agent.agent;
    let mut said = Vec::new();
    for (place, why) in agent.refused.iter().take(PLACES) {
        said.push(bad(format!("{name}: {} cannot be read: {why}", shown(place))));
    }
    if agent.refused.len() > PLACES {
        said.push(bad(format!("{name}: and {} more", agent.refused.len() - PLACES)));
    }
    if agent.places.is_empty() {
        said.push(note(format!("{name}: no sessions on this machine")));
    } else {
        let places: Vec<String> = agent.places.iter().map(|p| shown(p)).collect();
        let (sessions, files) = (count(agent.sessions, "session"), count(agent.files, "file"));
        let (size, places) = (bytes(agent.bytes), places.join(", "));
        said.push(good(format!("{name}: {sessions}, {files}, {size} in {places}")));
    }
    said
}

fn of_reading(agent: &AgentReport) -> Vec<Said> {
    let mut said = Vec::new();
    if agent.unread > 0 {
        let all = agent.sessions;
        let text = format!(
            "{}: {} of {all} sessions not read yet, or not all of them: `narrows index`",
            agent.agent, agent.unread
        );
        said.push(bad(text));
    } else if agent.refused.is_empty() && agent.sessions > agent.left_out {
        said.push(good(format!("{}: all that was found has been read", agent.agent)));
    }
    if agent.left_out > 0 {
        let many = count(agent.left_out, "session");
        said.push(note(format!("{}: {many} left out, as you asked for", agent.agent)));
    }
    said
}

fn of_risk(agent: &AgentReport, clock: &Clock) -> Option<Said> {
    let (days, next) = (agent.keeps_days?, agent.next_at?);
    let when = if next <= clock.now() {
        "when it is started again".to_owned()
    } else {
        format!("on {}", clock.day_of(next))
    };
    let soon = match agent.soon {
        0 => "none".to_owned(),
        n => count(n, "file"),
    };
    let text = format!(
        "{} deletes files {days} days after their last change: {soon} within {SOON_DAYS} days, \
         the first {when}",
        agent.agent
    );
    // What has been read stays.
    let lost = agent.soon > 0 && agent.unread > 0;
    Some(if lost { bad(text) } else { good(text + "; what was read stays in narrows") })
}

fn of_drift(drift: &[Drift]) -> Vec<Said> {
    if drift.is_empty() {
        return vec![good("every event is of a known kind, every line could be read")];
    }
    let mut said: Vec<Said> = drift.iter().take(VERSIONS).map(of_version).collect();
    if drift.len() > VERSIONS {
        said.push(bad(format!("and {} more versions", drift.len() - VERSIONS)));
    }
    said.push(note("a newer narrows may know them; `narrows drift` names them"));
    said
}

fn of_version(drift: &Drift) -> Said {
    let agent = escape::line(&format!("{} {}", drift.agent, drift.version));
    let agent = if agent.is_empty() { "an agent without a name".to_owned() } else { agent };
    let sessions = count(usize::try_from(drift.sessions).unwrap_or(usize::MAX), "session");
    let mut what = Vec::new();
    if drift.unknown > 0 {
        let events = if drift.unknown == 1 { "event" } else { "events" };
        what.push(format!("{} {events} of unknown kinds", amount(drift.unknown)));
    }
    if drift.malformed > 0 {
        let lines = if drift.malformed == 1 { "line" } else { "lines" };
        what.push(format!("{} unreadable {lines}", amount(drift.malformed)));
    }
    bad(format!("{agent}: {} in {sessions}", what.join(" and ")))
}

fn of_disk(store: &StoreReport) -> Vec<Said> {
    let folder = shown(&store.folder);
    if let Some(error) = &store.error {
        let mut said = vec![bad(format!("{folder}: {}", escape::line(error)))];
        let damage = of_damage(store);
        // One that cannot even be opened names no places.
        if damage.is_empty() && store.exists && error.contains("the store is damaged") {
            said.push(note(
                "`narrows repair` keeps all that can be read, `narrows restore` puts a copy in its place",
            ));
        }
        said.extend(damage);
        return said;
    }
    if store.is_missing {
        let text = "there is no such folder: nothing was kept yet, or it was deleted";
        return vec![note(format!("{folder}: {text}"))];
    }
    if !store.exists {
        return vec![note(format!("{folder}: nothing yet"))];
    }
    let (size, wal) = (bytes(store.database_bytes), store.wal_bytes);
    let wal =
        if wal > 0 { format!(" and {} to be moved into it", bytes(wal)) } else { String::new() };
    let mut said = vec![good(format!("{folder}: {size}{wal}, schema {}", store.schema))];
    if store.is_new {
        said.push(note("there was no such folder before: this is a new store"));
    }
    said.extend(of_damage(store));
    if store.damage.is_empty() {
        said.push(if store.checked {
            good("the database is whole")
        } else {
            note("no damage was found so far: there was no time to look at everything")
        });
    }
    said.push(if store.indexed {
        good("everything is in the index of search")
    } else {
        note("something waits for the index: it is found, but more slowly")
    });
    said
}

/// What cannot be read.
fn of_damage(store: &StoreReport) -> Vec<Said> {
    let mut said: Vec<Said> =
        store.damage.iter().take(PLACES).map(|what| bad(escape::line(what))).collect();
    if store.damage.len() > PLACES {
        said.push(bad(format!("and {} more places", store.damage.len() - PLACES)));
    }
    if !said.is_empty() {
        said.push(note(
            "what cannot be read is marked where it stands; `narrows repair` keeps all that can be read, \
             `narrows restore` puts a copy in its place",
        ));
    }
    said
}

/// A path as people write it.
fn shown(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|h| !h.is_empty()).map(PathBuf::from);
    let short = match home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    };
    escape::line(&short)
}

pub(super) fn print(sections: &[Section], out: &mut impl Write) -> Result<(), Fault> {
    let look = Look::new(When::Auto);
    let room = if look.terminal { look.columns().saturating_sub(4).max(20) } else { usize::MAX };
    for (at, (head, said)) in sections.iter().enumerate() {
        if at > 0 {
            look.line(out, &[])?;
        }
        look.line(out, &[span(BOLD, *head)])?;
        for one in said {
            let (sign, pen) = match one.mark {
                Mark::Good => ("✓", GREEN),
                Mark::Note => ("·", DIM),
                Mark::Bad => ("!", YELLOW.bold()),
            };
            for (at, mut line) in wrap(&[span(PLAIN, &*one.text)], room).into_iter().enumerate() {
                let (sign, pen) = if at == 0 { (sign, pen) } else { (" ", PLAIN) };
                line.splice(0..0, [span(PLAIN, "  "), span(pen, sign), span(PLAIN, " ")]);
                look.line(out, &line)?;
            }
        }
    }
    Ok(())
}
