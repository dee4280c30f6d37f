//! `narrows service`: `narrows serve` in the background, run by systemd or launchd.

mod launchd;
mod manager;
mod plist;
mod spec;
mod systemd;
mod unit;
mod unit_file;

use crate::args::{DataArgs, ServiceArgs, ServiceCommand};
use crate::error::CliError;
use manager::{ManagerError, ServiceManager};
use spec::ServiceSpec;
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use unit_file::UnitFile;

/// Starts the first comment of every unit file that narrows wrote.
const UNIT_FILE_MARKER: &str = "Written by narrows";

pub(crate) fn run(args: &ServiceArgs) -> Result<bool, CliError> {
    let host = ServiceHost::detect()?;
    let report = match &args.command {
        ServiceCommand::Install { data, print: true, .. } => {
            return print(&host.render(&host.spec(data)?)).map(|()| true);
        }
        ServiceCommand::Install { data, no_start, .. } => host.install(data, !no_start)?,
        ServiceCommand::Status => host.status()?,
        ServiceCommand::Remove => host.remove()?,
    };
    print(&report.text)?;
    Ok(report.success)
}

/// Whether the unit file exists.
pub(crate) fn is_installed() -> bool {
    let file = ServiceHost::detect().and_then(|host| unit_file::read(&host.unit_path()));
    file.is_ok_and(|file| !matches!(file, UnitFile::Missing))
}

/// What to print, and whether the service is as wanted.
#[derive(Debug)]
struct ServiceReport {
    text: String,
    success: bool,
}

impl ServiceReport {
    fn ok(text: impl Into<String>) -> ServiceReport {
        ServiceReport { text: text.into(), success: true }
    }

    fn failed(text: impl Into<String>) -> ServiceReport {
        ServiceReport { text: text.into(), success: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ManagerKind {
    Systemd,
    Launchd,
}

#[derive(Debug)]
enum ServiceState {
    Running,
    /// With the manager's word for the state.
    Stopped(String),
    Unknown(ManagerError),
}

/// Where services of this user are installed, and the program that manages them.
#[derive(Debug)]
struct ServiceHost {
    kind: ManagerKind,
    home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    config: PathBuf,
    manager: ServiceManager,
}

impl ServiceHost {
    fn detect() -> Result<ServiceHost, CliError> {
        let kind = if cfg!(target_os = "macos") {
            ManagerKind::Launchd
        } else if cfg!(target_os = "linux") {
            ManagerKind::Systemd
        } else {
            return Err(CliError::new(
                "cannot install a service: this system has no systemd or launchd",
            )
            .hint("run `narrows serve` from a login script"));
        };
        let var = |name| env::var_os(name).filter(|p| !p.is_empty()).map(PathBuf::from);
        let home = var("HOME")
            .ok_or_else(|| CliError::new("cannot find the home directory: HOME is not set"))?;
        // The XDG specification ignores relative paths.
        let config = var("XDG_CONFIG_HOME").filter(|p| p.is_absolute());
        let config = config.unwrap_or_else(|| home.join(".config"));
        Ok(ServiceHost { kind, home, config, manager: ServiceManager::default() })
    }

    fn unit_path(&self) -> PathBuf {
        match self.kind {
            ManagerKind::Systemd => self.config.join("systemd/user").join(systemd::UNIT),
            ManagerKind::Launchd => {
                self.home.join("Library/LaunchAgents").join(format!("{}.plist", launchd::LABEL))
            }
        }
    }

    fn spec(&self, data: &DataArgs) -> Result<ServiceSpec, CliError> {
        ServiceSpec::for_this_program(data.data.as_deref(), &self.home)
    }

    fn render(&self, spec: &ServiceSpec) -> String {
        match self.kind {
            ManagerKind::Systemd => unit::render(spec),
            ManagerKind::Launchd => plist::render(spec),
        }
    }

    fn install(&self, data: &DataArgs, start: bool) -> Result<ServiceReport, CliError> {
        let spec = self.spec(data)?;
        let (file, text) = (self.unit_path(), self.render(&spec));
        let shown = self.display_path(&file);
        let existing = unit_file::read(&file)?;
        if matches!(existing, UnitFile::Foreign) {
            return Err(CliError::new(format!(
                "cannot write {shown}: the file exists and was not written by narrows"
            ))
            .hint("move it away"));
        }
        if let Some(location) = spec::temporary_location(Path::new(&spec.exe)) {
            warn(&format!(
                "{} is in a {location}, and the service fails when it is gone; move narrows to a \
                 permanent path such as ~/.local/bin and install the service from there",
                self.display_path(Path::new(&spec.exe))
            ));
        }
        let is_unchanged = matches!(&existing, UnitFile::Ours(old) if *old == text);
        if !is_unchanged {
            unit_file::write(&file, &text)?;
        }
        let action = if is_unchanged { "unchanged" } else { "written" };
        if !start {
            let command = match self.kind {
                ManagerKind::Systemd => systemd::MANUAL_START.to_owned(),
                ManagerKind::Launchd => launchd::manual_start(&file),
            };
            return Ok(ServiceReport::ok(format!(
                "{shown}: {action}, service not started. To start it:\n{command}\n"
            )));
        }
        let restart = matches!(existing, UnitFile::Ours(_)) && !is_unchanged;
        let started = match self.kind {
            ManagerKind::Systemd => systemd::start(&self.manager, restart),
            ManagerKind::Launchd => launchd::start(&self.manager, &file, restart),
        };
        let state = started.map(|()| self.state(&file));
        match state.unwrap_or_else(ServiceState::Unknown) {
            ServiceState::Running => Ok(ServiceReport::ok(format!(
                "{shown}: {action}\n\
                 narrows runs in the background, now and after every login.\n\n  \
                 narrows login-url         print a login URL for the browser\n  \
                 narrows service status    show whether the service runs\n  \
                 narrows service remove    remove the service; sessions stay\n\n{}\n",
                self.hints(is_unchanged)
            ))),
            ServiceState::Stopped(word) => Err(CliError::new(format!(
                "cannot start the service ({shown}: {action}): it is {word}"
            ))
            .hint(self.log_hint())),
            ServiceState::Unknown(error) => {
                Err(CliError::new(format!("cannot start the service ({shown}: {action}): {error}"))
                    .hint(format!(
                        "run `narrows serve` from a login script instead, with this line in \
                 ~/.profile:\n  {} >/dev/null 2>&1 &",
                        spec.shell_command()
                    )))
            }
        }
    }

    fn status(&self) -> Result<ServiceReport, CliError> {
        let file = self.unit_path();
        let shown = self.display_path(&file);
        let origin = match unit_file::read(&file)? {
            UnitFile::Missing => {
                return Ok(ServiceReport::failed(
                    "not installed; `narrows service install` installs it\n",
                ));
            }
            UnitFile::Ours(_) => "",
            UnitFile::Foreign => " (not written by narrows)",
        };
        let state = self.state(&file);
        let is_running = matches!(state, ServiceState::Running);
        let summary = match state {
            ServiceState::Running => "running".to_owned(),
            ServiceState::Stopped(word) => {
                format!("installed, not running ({word}); {}", self.log_hint())
            }
            ServiceState::Unknown(error) => format!("installed, state unknown: {error}"),
        };
        let at_login = match self.kind {
            ManagerKind::Systemd => systemd::starts_at_login(&self.manager),
            ManagerKind::Launchd => None,
        };
        let at_login = at_login.map_or(String::new(), |starts| {
            format!("  at login  {}\n", if starts { "starts" } else { "does not start" })
        });
        let text = format!("{summary}\n  file      {shown}{origin}\n{at_login}");
        Ok(ServiceReport { text, success: is_running })
    }

    fn remove(&self) -> Result<ServiceReport, CliError> {
        let file = self.unit_path();
        let shown = self.display_path(&file);
        match unit_file::read(&file)? {
            UnitFile::Missing => {
                return Ok(ServiceReport::ok("not installed, nothing to remove\n"));
            }
            UnitFile::Foreign => {
                return Err(CliError::new(format!(
                    "cannot remove {shown}: it was not written by narrows"
                ))
                .hint("remove it yourself"));
            }
            UnitFile::Ours(_) => {}
        }
        let stopped = match self.kind {
            ManagerKind::Systemd => systemd::stop(&self.manager),
            ManagerKind::Launchd => launchd::stop(&self.manager, &file),
        };
        unit_file::remove(&file)?;
        if self.kind == ManagerKind::Systemd {
            systemd::unregister(&self.manager, &self.config)?;
        }
        let removed = format!("removed {shown}; sessions stay\n");
        match stopped {
            Ok(()) => Ok(ServiceReport::ok(format!("stopped; {removed}"))),
            // Without a manager, nothing can run.
            Err(ManagerError::Missing(_)) => Ok(ServiceReport::ok(removed)),
            Err(error) => {
                warn(&format!("cannot stop the service, it may still run: {error}"));
                Ok(ServiceReport::failed(removed))
            }
        }
    }

    fn state(&self, file: &Path) -> ServiceState {
        match self.kind {
            ManagerKind::Systemd => systemd::state(&self.manager),
            ManagerKind::Launchd => launchd::state(&self.manager, file),
        }
    }

    /// Hints for a running service.
    fn hints(&self, is_unchanged: bool) -> String {
        let (restart, more) = match self.kind {
            ManagerKind::Systemd => (systemd::RESTART_COMMAND, systemd::LINGER_HINT),
            ManagerKind::Launchd => (launchd::RESTART_COMMAND, ""),
        };
        let restart = if is_unchanged {
            format!("After an update of narrows: {restart}\n")
        } else {
            String::new()
        };
        format!("{restart}{more}").trim_end().to_owned()
    }

    /// Where to find the log of the service.
    fn log_hint(&self) -> String {
        match self.kind {
            ManagerKind::Systemd => systemd::LOG_HINT.to_owned(),
            ManagerKind::Launchd => format!("see ~/{}", launchd::LOG_FILE),
        }
    }

    /// A path for people: `~` stands for the home directory.
    fn display_path(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::stdout)
}

/// Prints a warning. A closed standard error is ignored.
fn warn(message: &str) {
    let _ = writeln!(io::stderr().lock(), "narrows: warning: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A host with a fake launchctl, on any system.
    fn launchd_host(dir: &Path) -> ServiceHost {
        let bin = dir.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/bin/launchctl");
        symlink(fake, bin.join("launchctl")).unwrap();
        let home = dir.join("home");
        let manager = ServiceManager { path: Some(bin.into()) };
        let config = home.join(".config");
        ServiceHost { kind: ManagerKind::Launchd, config, home, manager }
    }

    /// The subcommands that the fake launchctl got since the last call.
    fn subcommands(dir: &Path) -> Vec<String> {
        let file = dir.join("bin/asked");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().map(|l| l.split(' ').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn launchd_starts_restarts_and_stops() {
        let dir = tempfile::tempdir().unwrap();
        let host = launchd_host(dir.path());
        let data = |name: &str| DataArgs { data: Some(name.into()) };
        assert!(!host.status().unwrap().success);
        let report = host.install(&data("/one"), true).unwrap();
        assert!(
            report.success
                && report.text.starts_with("~/Library/LaunchAgents/dev.narrows.plist: w")
        );
        assert_eq!(subcommands(dir.path()), ["print", "enable", "bootstrap", "print"]);
        // The unit file is unchanged: the service is not restarted.
        assert!(host.install(&data("/one"), true).unwrap().success);
        assert_eq!(subcommands(dir.path()), ["print", "print"]);
        // The unit file has changed: restarted as soon as the old process is gone.
        assert!(host.install(&data("/two"), true).unwrap().success);
        let restart = ["print", "bootout", "enable", "bootstrap", "bootstrap", "print"];
        assert_eq!(subcommands(dir.path()), restart);
        assert_eq!(host.status().unwrap().text.lines().next(), Some("running"));
        subcommands(dir.path());
        assert!(host.remove().unwrap().success);
        assert_eq!(subcommands(dir.path()), ["print", "bootout"]);
        assert!(!host.unit_path().exists());
        assert!(host.remove().unwrap().success);
    }
}
