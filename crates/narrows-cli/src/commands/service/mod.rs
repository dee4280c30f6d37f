//! `narrows service`: `narrows serve` in the background, kept by the system's own service manager.

mod file;
mod job;
mod launchd;
mod plist;
mod systemd;
mod tool;
mod unit;

use crate::args::{DataArgs, ServiceArgs, ServiceCommand};
use crate::{Fault, fault};
use file::Present;
use job::Job;
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tool::{Tools, Why};

/// Stands in the first comment of every file that narrows wrote, and in no other.
const MARK: &str = "Written by narrows";

pub(crate) fn run(args: &ServiceArgs) -> Result<bool, Fault> {
    let place = Place::here()?;
    let told = match &args.what {
        ServiceCommand::Install { data, print: true, .. } => {
            return print(&place.text(&place.job(data)?)).map(|()| true);
        }
        ServiceCommand::Install { data, no_start, .. } => place.install(data, !no_start)?,
        ServiceCommand::Status => place.status()?,
        ServiceCommand::Remove => place.remove()?,
    };
    print(&told.text)?;
    Ok(told.well)
}

/// Whether the service's file is there.
pub(crate) fn is_installed() -> bool {
    let present = Place::here().and_then(|place| file::present(&place.file()));
    present.is_ok_and(|present| !matches!(present, Present::Nothing))
}

/// What is said at the end, and whether that is as wished.
#[derive(Debug)]
struct Told {
    text: String,
    well: bool,
}

impl Told {
    fn well(text: impl Into<String>) -> Told {
        Told { text: text.into(), well: true }
    }

    fn ill(text: impl Into<String>) -> Told {
        Told { text: text.into(), well: false }
    }
}

/// Who keeps services on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    Systemd,
    Launchd,
}

/// How the service is.
#[derive(Debug)]
enum State {
    Running,
    /// In the keeper's own word.
    Stopped(String),
    Unknown(Why),
}

/// Where services are, and who is asked about them.
#[derive(Debug)]
struct Place {
    keeper: Keeper,
    home: PathBuf,
    /// What is `~/.config` usually.
    config: PathBuf,
    tools: Tools,
}

impl Place {
    fn here() -> Result<Place, Fault> {
        let keeper = if cfg!(target_os = "macos") {
            Keeper::Launchd
        } else if cfg!(target_os = "linux") {
            Keeper::Systemd
        } else {
            return Err(fault(
                "only systemd and launchd are known: run `narrows serve` from a login script",
            ));
        };
        let given = |name| env::var_os(name).filter(|p| !p.is_empty()).map(PathBuf::from);
        let home = given("HOME").ok_or_else(|| fault("there is no home directory"))?;
        // The specification has relative paths ignored.
        let config = given("XDG_CONFIG_HOME").filter(|p| p.is_absolute());
        let config = config.unwrap_or_else(|| home.join(".config"));
        Ok(Place { keeper, home, config, tools: Tools::default() })
    }

    fn file(&self) -> PathBuf {
        match self.keeper {
            Keeper::Systemd => self.config.join("systemd/user").join(systemd::UNIT),
            Keeper::Launchd => {
                self.home.join("Library/LaunchAgents").join(format!("{}.plist", launchd::LABEL))
            }
        }
    }

    fn job(&self, data: &DataArgs) -> Result<Job, Fault> {
        Job::of_this_program(data.data.as_deref(), &self.home)
    }

    fn text(&self, job: &Job) -> String {
        match self.keeper {
            Keeper::Systemd => unit::text(job),
            Keeper::Launchd => plist::text(job),
        }
    }

    fn install(&self, data: &DataArgs, start: bool) -> Result<Told, Fault> {
        let job = self.job(data)?;
        let (file, text) = (self.file(), self.text(&job));
        let shown = self.shown(&file);
        let before = file::present(&file)?;
        if matches!(before, Present::Foreign) {
            return Err(fault(format!(
                "{shown} is there, and narrows did not write it: move it away first"
            )));
        }
        if let Some(why) = job::fleeting(Path::new(&job.exe)) {
            warn(&format!(
                "{} is in a {why} and may go away, and the service with it: put narrows in a \
                 lasting place, like ~/.local/bin, and install the service from there",
                self.shown(Path::new(&job.exe))
            ));
        }
        let same = matches!(&before, Present::Ours(old) if *old == text);
        if !same {
            file::write(&file, &text)?;
        }
        let wrote = if same { "already there" } else { "written" };
        if !start {
            let by_hand = match self.keeper {
                Keeper::Systemd => systemd::BY_HAND.to_owned(),
                Keeper::Launchd => launchd::by_hand(&file),
            };
            return Ok(Told::well(format!(
                "{shown}: {wrote}; nothing was started. To start it:\n{by_hand}\n"
            )));
        }
        let again = matches!(before, Present::Ours(_)) && !same;
        let started = match self.keeper {
            Keeper::Systemd => systemd::start(&self.tools, again),
            Keeper::Launchd => launchd::start(&self.tools, &file, again),
        };
        let state = started.map(|()| self.state(&file));
        match state.unwrap_or_else(State::Unknown) {
            State::Running => Ok(Told::well(format!(
                "{shown}: {wrote}\n\
                 narrows runs in the background now, and after every login.\n\n  \
                 narrows open              an address for your browser\n  \
                 narrows service status    how it is\n  \
                 narrows service remove    ends it; sessions stay\n\n{}\n",
                self.hint(same)
            ))),
            State::Stopped(word) => Err(fault(format!(
                "{shown}: {wrote}, and started, but it does not run ({word}): {}",
                self.tells_why()
            ))),
            State::Unknown(why) => Err(fault(format!(
                "{shown}: {wrote}, but it was not started: {why}.\n\
                 Without it, run `narrows serve` from a login script, like this line in \
                 ~/.profile:\n  {} >/dev/null 2>&1 &",
                job.for_shell()
            ))),
        }
    }

    fn status(&self) -> Result<Told, Fault> {
        let file = self.file();
        let shown = self.shown(&file);
        let whose = match file::present(&file)? {
            Present::Nothing => {
                return Ok(Told::ill("not installed: `narrows service install` does it\n"));
            }
            Present::Ours(_) => "",
            Present::Foreign => " (not written by narrows)",
        };
        let state = self.state(&file);
        let well = matches!(state, State::Running);
        let head = match state {
            State::Running => "running".to_owned(),
            State::Stopped(word) => {
                format!("installed, not running ({word}): {}", self.tells_why())
            }
            State::Unknown(why) => format!("installed; whether it runs is not known: {why}"),
        };
        let at_login = match self.keeper {
            Keeper::Systemd => systemd::at_login(&self.tools),
            Keeper::Launchd => None,
        };
        let at_login = at_login.map_or(String::new(), |starts| {
            format!("  at login  {}\n", if starts { "starts" } else { "does not start" })
        });
        let text = format!("{head}\n  file      {shown}{whose}\n{at_login}");
        Ok(if well { Told::well(text) } else { Told::ill(text) })
    }

    fn remove(&self) -> Result<Told, Fault> {
        let file = self.file();
        let shown = self.shown(&file);
        match file::present(&file)? {
            Present::Nothing => {
                return Ok(Told::well("not installed: there is nothing to remove\n"));
            }
            Present::Foreign => {
                return Err(fault(format!(
                    "{shown} was not written by narrows: remove it yourself"
                )));
            }
            Present::Ours(_) => {}
        }
        let stopped = match self.keeper {
            Keeper::Systemd => systemd::stop(&self.tools),
            Keeper::Launchd => launchd::stop(&self.tools, &file),
        };
        file::remove(&file)?;
        if self.keeper == Keeper::Systemd {
            systemd::forget(&self.tools, &self.config)?;
        }
        let gone = format!("{shown} is removed; sessions stay\n");
        match stopped {
            Ok(()) => Ok(Told::well(format!("stopped; {gone}"))),
            // Who is not there keeps nothing running.
            Err(Why::Missing(_)) => Ok(Told::well(gone)),
            Err(why) => {
                warn(&format!("whether it still runs is not known: {why}"));
                Ok(Told::ill(gone))
            }
        }
    }

    fn state(&self, file: &Path) -> State {
        match self.keeper {
            Keeper::Systemd => systemd::state(&self.tools),
            Keeper::Launchd => launchd::state(&self.tools, file),
        }
    }

    fn hint(&self, same: bool) -> String {
        let (restart, more) = match self.keeper {
            Keeper::Systemd => (systemd::RESTART, systemd::LINGER),
            Keeper::Launchd => (launchd::RESTART, ""),
        };
        let restart =
            if same { format!("After an update of narrows: {restart}\n") } else { String::new() };
        format!("{restart}{more}").trim_end().to_owned()
    }

    fn tells_why(&self) -> String {
        match self.keeper {
            Keeper::Systemd => systemd::TELLS_WHY.to_owned(),
            Keeper::Launchd => format!("~/{} tells why", launchd::LOG),
        }
    }

    /// A path as people write it.
    fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Fault::new("standard output"))
}

/// A warning that cannot be told is no reason to end.
fn warn(what: &str) {
    let _ = writeln!(io::stderr().lock(), "narrows: warning: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A home with a launchd that is asked; on any system.
    fn mac(dir: &Path) -> Place {
        let bin = dir.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/bin/launchctl");
        symlink(fake, bin.join("launchctl")).unwrap();
        let home = dir.join("home");
        let tools = Tools { path: Some(bin.into()) };
        Place { keeper: Keeper::Launchd, config: home.join(".config"), home, tools }
    }

    fn asked(dir: &Path) -> Vec<String> {
        let file = dir.join("bin/asked");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().map(|l| l.split(' ').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn launchd_starts_restarts_and_stops() {
        let dir = tempfile::tempdir().unwrap();
        let place = mac(dir.path());
        let data = |name: &str| DataArgs { data: Some(name.into()) };
        assert!(!place.status().unwrap().well);
        let told = place.install(&data("/one"), true).unwrap();
        assert!(told.well && told.text.starts_with("~/Library/LaunchAgents/dev.narrows.plist: w"));
        assert_eq!(asked(dir.path()), ["print", "enable", "bootstrap", "print"]);
        // Nothing is new: it goes on.
        assert!(place.install(&data("/one"), true).unwrap().well);
        assert_eq!(asked(dir.path()), ["print", "print"]);
        // Another file: it begins anew, as soon as the old one is gone.
        assert!(place.install(&data("/two"), true).unwrap().well);
        let again = ["print", "bootout", "enable", "bootstrap", "bootstrap", "print"];
        assert_eq!(asked(dir.path()), again);
        assert_eq!(place.status().unwrap().text.lines().next(), Some("running"));
        asked(dir.path());
        assert!(place.remove().unwrap().well);
        assert_eq!(asked(dir.path()), ["print", "bootout"]);
        assert!(!place.file().exists());
        assert!(place.remove().unwrap().well);
    }
}
