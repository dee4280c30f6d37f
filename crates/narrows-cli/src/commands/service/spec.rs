//! What the service runs: which program, on which data, with which places.

use super::launchd;
use crate::{Fault, fault};
use std::env;
use std::ffi::OsStr;
use std::path::{self, Component, Path, PathBuf};

/// Variables that say where things are. A service does not get them from the shell, and would look
/// elsewhere than the commands that are typed there.
const PLACES: &[&str] =
    &["XDG_CONFIG_HOME", "XDG_DATA_HOME", "NARROWS_CONFIG", "CLAUDE_CONFIG_DIR", "CODEX_HOME"];

/// All paths are absolute, and hold no control characters: both kinds of file can say them.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) exe: String,
    /// `None` leaves it to the config file, or to the usual place.
    pub(super) data: Option<String>,
    pub(super) places: Vec<(String, String)>,
    /// For launchd, which keeps no logs by itself.
    pub(super) log: String,
}

impl Job {
    pub(super) fn of_this_program(data: Option<&Path>, home: &Path) -> Result<Job, Fault> {
        let exe = env::current_exe().map_err(Fault::new("the path of narrows"))?;
        let path = env::var_os("PATH").unwrap_or_default();
        let exe = lasting(&exe, &path, stays).unwrap_or(exe);
        let mut places = Vec::new();
        for name in PLACES {
            if let Some(place) = env::var_os(name).filter(|p| !p.is_empty()) {
                places.push(((*name).to_owned(), place_of(name, Path::new(&place))?));
            }
        }
        Ok(Job {
            exe: plain(&exe)?,
            data: data.map(plain).transpose()?,
            places,
            log: plain(&home.join(launchd::LOG))?,
        })
    }

    /// The words of the command.
    pub(super) fn words(&self) -> Vec<&str> {
        let mut words = vec![self.exe.as_str(), "serve"];
        if let Some(data) = &self.data {
            words.extend(["--data", data]);
        }
        words
    }

    /// The command as it is typed.
    pub(super) fn for_shell(&self) -> String {
        let safe = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
        let typed = |word: &str| {
            if word.chars().all(safe) {
                return word.to_owned();
            }
            format!("'{}'", word.replace('\'', r"'\''"))
        };
        self.words().into_iter().map(typed).collect::<Vec<_>>().join(" ")
    }
}

/// What a variable says, with whole paths.
fn place_of(name: &str, value: &Path) -> Result<String, Fault> {
    // This one may name several folders, with `~` in them.
    let (true, Some(folders)) = (name == "CLAUDE_CONFIG_DIR", value.to_str()) else {
        return plain(value);
    };
    let whole = |folder: &str| match folder.trim() {
        home if home == "~" || home.starts_with("~/") => {
            plain(&Path::new("/").join(home)).map(|path| path[1..].to_owned())
        }
        folder => plain(Path::new(folder)),
    };
    let folders: Result<Vec<String>, Fault> = folders.split(',').map(whole).collect();
    Ok(folders?.join(","))
}

/// A path as text, from the root on.
fn plain(path: &Path) -> Result<String, Fault> {
    let whole = path::absolute(path).map_err(Fault::new(path.display().to_string()))?;
    match whole.into_os_string().into_string() {
        Ok(text) if !text.contains(char::is_control) => Ok(text),
        _ => Err(fault(format!(
            "{}: a service cannot use a path that is not UTF-8 or has control characters",
            path.display()
        ))),
    }
}

/// The name under which the shell finds the program, if that is a link to it: package managers
/// put each version in a folder of its own, and the link stays.
fn lasting(exe: &Path, path: &OsStr, stays: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let real = exe.canonicalize().ok().filter(|real| stays(real))?;
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("narrows"))
        .find(|link| stays(link) && link.canonicalize().is_ok_and(|to| to == real))
}

/// Whether a path is there after the next start of the machine, as far as can be told.
fn stays(path: &Path) -> bool {
    // Some shells have links below /run, for as long as they are open.
    fleeting(path).is_none() && !path.starts_with("/run")
}

/// In what kind of folder a program is that may be gone soon.
pub(super) fn fleeting(exe: &Path) -> Option<&'static str> {
    let temporary = ["/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/folders"];
    if temporary.iter().any(|t| exe.starts_with(t)) || exe.starts_with(env::temp_dir()) {
        return Some("temporary folder");
    }
    let mut below = exe.components().skip_while(|c| *c != Component::Normal("target".as_ref()));
    let built = |c: Component<'_>| {
        ["debug", "release"].iter().any(|profile| c == Component::Normal(profile.as_ref()))
    };
    below.any(built).then_some("build folder")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_program_that_may_go_away_is_told_from_one_that_stays() {
        for (exe, why) in [
            ("/home/ada/narrows/target/debug/narrows", Some("build folder")),
            (
                "/home/ada/narrows/target/x86_64-unknown-linux-musl/release/narrows",
                Some("build folder"),
            ),
            ("/tmp/narrows", Some("temporary folder")),
            ("/private/var/folders/zz/narrows", Some("temporary folder")),
            ("/home/ada/.local/bin/narrows", None),
            ("/home/ada/release/narrows", None),
            ("/srv/target/bin/narrows", None),
        ] {
            assert_eq!(fleeting(Path::new(exe)), why, "{exe}");
        }
    }

    #[test]
    fn a_link_in_the_path_is_named_instead_of_a_version() {
        let dir = tempfile::tempdir().unwrap();
        let version = dir.path().join("narrows-0.1.0");
        let bin = dir.path().join("bin");
        fs::create_dir_all(&version).unwrap();
        fs::create_dir_all(&bin).unwrap();
        let exe = version.join("narrows");
        fs::write(&exe, "").unwrap();
        let path = env::join_paths([Path::new("relative"), &bin]).unwrap();
        let found = || lasting(&exe, &path, |_| true);
        assert_eq!(found(), None);
        symlink(&exe, bin.join("narrows")).unwrap();
        assert_eq!(found(), Some(bin.join("narrows")));
        assert_eq!(lasting(&exe, &path, |to| !to.starts_with(&version)), None);
    }

    #[test]
    fn paths_are_whole_and_can_be_written() {
        assert!(plain(Path::new("data")).unwrap().ends_with("/data"));
        assert!(plain(Path::new("/data\nExecStart=/bin/sh")).is_err());
        let claude = |value: &str| place_of("CLAUDE_CONFIG_DIR", Path::new(value));
        assert_eq!(claude("~/.claude, /srv/work").unwrap(), "~/.claude,/srv/work");
        assert!(claude("here,~/x\ny").is_err());
        let job = |exe: &str, data: Option<&str>| {
            let (exe, data) = (exe.to_owned(), data.map(str::to_owned));
            Job { exe, data, places: vec![], log: String::new() }.for_shell()
        };
        assert_eq!(job("/usr/bin/narrows", None), "/usr/bin/narrows serve");
        let nasty = job("/a b'c/narrows", Some("/$d"));
        assert_eq!(nasty, r"'/a b'\''c/narrows' serve --data '/$d'");
    }
}
