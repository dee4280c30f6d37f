//! What the service runs: program, data directory and environment.

use super::launchd;
use crate::error::CliError;
use std::env;
use std::ffi::OsStr;
use std::path::{self, Component, Path, PathBuf};

/// Variables that locate files. A service does not inherit them from the shell, and would otherwise
/// use other paths than commands in the shell.
const PATH_VARIABLES: &[&str] =
    &["XDG_CONFIG_HOME", "XDG_DATA_HOME", "NARROWS_CONFIG", "CLAUDE_CONFIG_DIR", "CODEX_HOME"];

/// All paths are absolute UTF-8 without control characters, so unit files and plists can hold them.
#[derive(Debug)]
pub(super) struct ServiceSpec {
    pub(super) exe: String,
    /// None: as in the config file, or the default.
    pub(super) data: Option<String>,
    pub(super) environment: Vec<(String, String)>,
    /// For launchd, which has no journal.
    pub(super) log_file: String,
}

impl ServiceSpec {
    /// The spec for the running executable.
    pub(super) fn for_this_program(
        data: Option<&Path>,
        home: &Path,
    ) -> Result<ServiceSpec, CliError> {
        let exe = env::current_exe().map_err(CliError::cannot("find the path of narrows"))?;
        let path = env::var_os("PATH").unwrap_or_default();
        let exe = stable_link(&exe, &path, is_permanent_path).unwrap_or(exe);
        let mut environment = Vec::new();
        for name in PATH_VARIABLES {
            if let Some(value) = env::var_os(name).filter(|p| !p.is_empty()) {
                environment.push(((*name).to_owned(), absolute_value(name, Path::new(&value))?));
            }
        }
        Ok(ServiceSpec {
            exe: absolute_path(&exe)?,
            data: data.map(absolute_path).transpose()?,
            environment,
            log_file: absolute_path(&home.join(launchd::LOG_FILE))?,
        })
    }

    /// The command of the service.
    pub(super) fn argv(&self) -> Vec<&str> {
        let mut words = vec![self.exe.as_str(), "serve"];
        if let Some(data) = &self.data {
            words.extend(["--data", data]);
        }
        words
    }

    /// The command, quoted for a shell.
    pub(super) fn shell_command(&self) -> String {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
        let quote = |word: &str| {
            if word.chars().all(is_plain) {
                return word.to_owned();
            }
            format!("'{}'", word.replace('\'', r"'\''"))
        };
        self.argv().into_iter().map(quote).collect::<Vec<_>>().join(" ")
    }
}

/// The value of a path variable, made absolute.
fn absolute_value(name: &str, value: &Path) -> Result<String, CliError> {
    // This one is a list of directories that may start with `~`.
    let (true, Some(dirs)) = (name == "CLAUDE_CONFIG_DIR", value.to_str()) else {
        return absolute_path(value);
    };
    let absolute = |dir: &str| match dir.trim() {
        home if home == "~" || home.starts_with("~/") => {
            absolute_path(&Path::new("/").join(home)).map(|path| path[1..].to_owned())
        }
        dir => absolute_path(Path::new(dir)),
    };
    let dirs: Result<Vec<String>, CliError> = dirs.split(',').map(absolute).collect();
    Ok(dirs?.join(","))
}

/// A path as absolute text without control characters.
fn absolute_path(path: &Path) -> Result<String, CliError> {
    let absolute =
        path::absolute(path).map_err(CliError::cannot(format!("resolve {}", path.display())))?;
    match absolute.into_os_string().into_string() {
        Ok(text) if !text.contains(char::is_control) => Ok(text),
        _ => Err(CliError::new(format!(
            "cannot use {} in a service: the path is not UTF-8 or has control characters",
            path.display()
        ))),
    }
}

/// Finds a link to the program in `PATH`. Package managers put each version into a directory of its
/// own, and the link outlives it.
fn stable_link(exe: &Path, path: &OsStr, is_permanent: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let real = exe.canonicalize().ok().filter(|real| is_permanent(real))?;
    env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("narrows"))
        .find(|link| is_permanent(link) && link.canonicalize().is_ok_and(|to| to == real))
}

/// Whether a path probably survives a reboot.
fn is_permanent_path(path: &Path) -> bool {
    // Some shells create links in /run for the time they are open.
    temporary_location(path).is_none() && !path.starts_with("/run")
}

/// The kind of directory of a program that may be gone soon; none if the path is permanent.
pub(super) fn temporary_location(exe: &Path) -> Option<&'static str> {
    let temporary = ["/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/folders"];
    if temporary.iter().any(|t| exe.starts_with(t)) || exe.starts_with(env::temp_dir()) {
        return Some("temporary directory");
    }
    let mut in_target = exe.components().skip_while(|c| *c != Component::Normal("target".as_ref()));
    let is_profile = |c: Component<'_>| {
        ["debug", "release"].iter().any(|profile| c == Component::Normal(profile.as_ref()))
    };
    in_target.any(is_profile).then_some("build directory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn temporary_location_detects_build_and_temporary_directories() {
        for (exe, why) in [
            ("/home/ada/narrows/target/debug/narrows", Some("build directory")),
            (
                "/home/ada/narrows/target/x86_64-unknown-linux-musl/release/narrows",
                Some("build directory"),
            ),
            ("/tmp/narrows", Some("temporary directory")),
            ("/private/var/folders/zz/narrows", Some("temporary directory")),
            ("/home/ada/.local/bin/narrows", None),
            ("/home/ada/release/narrows", None),
            ("/srv/target/bin/narrows", None),
        ] {
            assert_eq!(temporary_location(Path::new(exe)), why, "{exe}");
        }
    }

    #[test]
    fn stable_link_prefers_a_permanent_link_in_path() {
        let dir = tempfile::tempdir().unwrap();
        let version = dir.path().join("narrows-0.1.0");
        let bin = dir.path().join("bin");
        fs::create_dir_all(&version).unwrap();
        fs::create_dir_all(&bin).unwrap();
        let exe = version.join("narrows");
        fs::write(&exe, "").unwrap();
        let path = env::join_paths([Path::new("relative"), &bin]).unwrap();
        let found = || stable_link(&exe, &path, |_| true);
        assert_eq!(found(), None);
        symlink(&exe, bin.join("narrows")).unwrap();
        assert_eq!(found(), Some(bin.join("narrows")));
        assert_eq!(stable_link(&exe, &path, |to| !to.starts_with(&version)), None);
    }

    #[test]
    fn paths_are_absolute_and_quoted() {
        assert!(absolute_path(Path::new("data")).unwrap().ends_with("/data"));
        assert!(absolute_path(Path::new("/data\nExecStart=/bin/sh")).is_err());
        let claude = |value: &str| absolute_value("CLAUDE_CONFIG_DIR", Path::new(value));
        assert_eq!(claude("~/.claude, /srv/work").unwrap(), "~/.claude,/srv/work");
        assert!(claude("here,~/x\ny").is_err());
        let command = |exe: &str, data: Option<&str>| {
            let (exe, data) = (exe.to_owned(), data.map(str::to_owned));
            ServiceSpec { exe, data, environment: vec![], log_file: String::new() }.shell_command()
        };
        assert_eq!(command("/usr/bin/narrows", None), "/usr/bin/narrows serve");
        let nasty = command("/a b'c/narrows", Some("/$d"));
        assert_eq!(nasty, r"'/a b'\''c/narrows' serve --data '/$d'");
    }
}
