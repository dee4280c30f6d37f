//! Where everything lies: the agent's folder, the data directory, a home.

use super::measure::size_of;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A word that stands in one item of one session.
pub(crate) const PLANTED: &str = "quinsigamond_lattice";

pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    /// What the agent keeps: it holds `projects`.
    pub(crate) claude: PathBuf,
    /// An empty one, so that nothing of this machine is read or written.
    pub(crate) home: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) bytes: u64,
}

impl Place {
    /// The corpus under another name, with one word that no other session has.
    pub(crate) fn make(folder: &Path, corpus: &[PathBuf]) -> Place {
        let _ = fs::remove_dir_all(folder);
        let claude = folder.join("claude");
        let files = copies(corpus.iter(), &claude, true);
        let middle = files.len() / 2;
        plant(&corpus[middle], &files[middle]);
        let home = folder.join("home");
        fs::create_dir_all(&home).expect("a folder");
        let bytes = files.iter().map(|f| size_of(f)).sum();
        let (folder, data) = (folder.to_owned(), folder.join("data"));
        Place { folder, claude, home, data, files, bytes }
    }

    /// Another place beside it, with real copies of other files.
    pub(crate) fn beside<'a>(&self, name: &str, files: impl Iterator<Item = &'a PathBuf>) -> Place {
        let folder = self.folder.join(name);
        let claude = folder.join("claude");
        let files = copies(files, &claude, false);
        let bytes = files.iter().map(|f| size_of(f)).sum();
        let (home, data) = (self.home.clone(), folder.join("data"));
        Place { folder, claude, home, data, files, bytes }
    }

    /// A program that sees this place and nothing else of the machine.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", &self.home).env("CLAUDE_CONFIG_DIR", &self.claude);
        command.env("NARROWS_DATA", &self.data).current_dir(&self.folder);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    pub(crate) fn narrows(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_narrows"));
        command.args(args);
        command
    }

    pub(crate) fn projects(&self) -> PathBuf {
        self.claude.join("projects")
    }

    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn copies<'a>(
    files: impl Iterator<Item = &'a PathBuf>,
    claude: &Path,
    linked: bool,
) -> Vec<PathBuf> {
    let copy = |file: &'a PathBuf| {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let project = claude.join("projects").join(name(file.parent().expect("a project")));
        fs::create_dir_all(&project).expect("a folder");
        let to = project.join(name(file));
        // A second name costs nothing; narrows does not see that it is one.
        if !linked || fs::hard_link(file, &to).is_err() {
            fs::copy(file, &to).expect("a copy");
        }
        to
    };
    files.map(copy).collect()
}

/// Puts a copy with one more line in the place of a link: the corpus itself stays as it is.
fn plant(from: &Path, to: &Path) {
    let text = fs::read(from).expect("a session");
    fs::remove_file(to).expect("a link");
    let mut file = File::create(to).expect("a copy");
    file.write_all(&text).expect("a copy");
    file.write_all(&line(&text, &format!("It is called `{PLANTED}` there."), "planted"))
        .expect("a line");
}

/// A line as the agent adds it to a session: the last prompt's record, with another text.
pub(crate) fn line(session: &[u8], text: &str, id: &str) -> Vec<u8> {
    let last = session
        .split(|c| *c == b'\n')
        .rev()
        .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok())
        .find(|record| record["type"] == "user" && record["promptSource"] == "sdk");
    let mut record = last.expect("a prompt");
    record["message"]["content"] = json!(text);
    record["uuid"] = json!(format!("{id}-{}", record["uuid"].as_str().unwrap_or_default()));
    let mut line = record.to_string().into_bytes();
    line.push(b'\n');
    line
}
