//! What was typed.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Options {
    pub no_load: bool,
    pub config_options: bool,
    pub mute: bool,
    /// Nothing is done before a login: at the session, or at the first prompt.
    pub login: bool,
    pub login_late: bool,
    /// Sessions can be resumed and closed.
    pub newer: bool,
    /// Sessions are listed with their folders, and loaded.
    pub lists: bool,
    /// The last page of sessions leads back to the first.
    pub loops: bool,
    /// Turns are cancelled by `$/cancel_request` only.
    pub stubborn: bool,
    pub state: Option<PathBuf>,
    pub model: Option<String>,
    pub mode: Option<String>,
    pub resume: Option<String>,
    pub session: Option<String>,
    pub partial: bool,
    pub replay: bool,
    pub asks: bool,
    /// A prompt that was typed: the only one.
    pub prompt: Option<String>,
}

/// Flags of Claude Code that have a value and change nothing here.
const WITH_VALUE: &[&str] = &[
    "--input-format",
    "--output-format",
    "--max-turns",
    "--mcp-config",
    "--allowedTools",
    "--disallowedTools",
    "--append-system-prompt",
    "--settings",
    "--setting-sources",
    "--add-dir",
    "--fallback-model",
];

impl Options {
    /// Reads the command line, and does at once what is to be done at the start.
    pub fn read(name: &str, version: &str) -> Options {
        let mut options = Options::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next();
            match word.as_str() {
                "--version" | "-v" => {
                    super::wire::raw(&format!("{version} ({name})\n"));
                    std::process::exit(0);
                }
                "--sleep" => super::acts::sleep(words.any(|word| word == "--deaf")),
                "--daemon" => super::acts::detach(words.any(|word| word == "--deaf")),
                "--exit-at-start" => std::process::exit(number(value())),
                // The first process of all ends at once.
                "--exit-once" => {
                    let mark = value().unwrap_or_default();
                    if std::fs::File::create_new(mark).is_ok() {
                        std::process::exit(1);
                    }
                }
                "--slow-start" => {
                    std::thread::sleep(Duration::from_millis(number::<u64>(value())));
                }
                "--no-load" => options.no_load = true,
                "--config-options" => options.config_options = true,
                "--mute" => options.mute = true,
                "--login" => options.login = true,
                "--login-late" => options.login_late = true,
                "--newer" => options.newer = true,
                "--lists" => options.lists = true,
                "--loops" => (options.lists, options.loops) = (true, true),
                "--stubborn" => options.stubborn = true,
                "--state" => options.state = value().map(PathBuf::from),
                "--model" => options.model = value(),
                "--permission-mode" => options.mode = value(),
                "--resume" | "-r" => options.resume = value(),
                "--session-id" => options.session = value(),
                "--include-partial-messages" => options.partial = true,
                "--replay-user-messages" => options.replay = true,
                "--permission-prompt-tool" => options.asks = value().is_some(),
                flag if WITH_VALUE.contains(&flag) => drop(value()),
                flag if flag.starts_with('-') => {}
                prompt => options.prompt = Some(prompt.to_owned()),
            }
        }
        options
    }
}

fn number<T: std::str::FromStr + Default>(word: Option<String>) -> T {
    word.and_then(|word| word.parse().ok()).unwrap_or_default()
}
