//! Agents that can be run: the presets and those of the config file.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The protocol of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The Agent Client Protocol over stdio.
    Acp,
    /// Claude Code's stream-json in both directions.
    Claude,
}

/// An agent that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The name that clients request.
    pub name: String,
    /// The display name.
    #[serde(default)]
    pub title: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The protocol.
    #[serde(default = "acp")]
    pub protocol: Protocol,
    /// Names of environment variables that are passed in addition to the default ones, unless all are
    /// passed; a trailing `*` matches any suffix. `NAME=value` sets a value. The config file may also have
    /// a table: `env = {NAME = "value"}`.
    #[serde(default, deserialize_with = "env")]
    pub env: Vec<String>,
    /// The command of an interactive login in a terminal.
    #[serde(default)]
    pub login: Vec<String>,
    /// Absolute paths of more directories in which it may work.
    #[serde(default)]
    pub directories: Vec<PathBuf>,
}

fn acp() -> Protocol {
    Protocol::Acp
}

/// Deserializes names, or names with values.
fn env<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Env {
        RequestNames(Vec<String>),
        Values(std::collections::BTreeMap<String, String>),
    }
    let list = match Env::deserialize(from)? {
        Env::RequestNames(names) => names,
        Env::Values(map) => {
            if let Some(name) = map.keys().find(|name| name.is_empty() || name.contains('=')) {
                let what = format!("`env`: {name:?} is no name of a variable");
                return Err(serde::de::Error::custom(what));
            }
            map.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
        }
    };
    Ok(list)
}

/// Variables that are never inherited by an agent: narrows' own settings and secrets, variables that make
/// programs load foreign code, and those that describe only the process that started narrows.
const DENIED_ENV: [&str; 26] = [
    "NARROWS_*",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_*",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_*",
    "PROMPT_COMMAND",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "LISTEN_*",
    "NOTIFY_SOCKET",
    "WATCHDOG_*",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "CREDENTIALS_DIRECTORY",
    // With these an agent takes itself for a part of another agent.
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
];

/// Variables that every agent inherits: programs need them for files, locale and network.
const DEFAULT_ENV: [&str; 17] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "TERM",
    "XDG_*",
    "SSH_AUTH_SOCK",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_*",
];

/// The built-in agents, each with the variables that configure its models.
pub fn presets() -> Vec<AgentSpec> {
    let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    let spec = |name: &str, title: &str, argv: &[&str], login: &[&str], env: &[&str]| AgentSpec {
        name: name.to_owned(),
        title: title.to_owned(),
        argv: texts(argv),
        protocol: if name == "claude" { Protocol::Claude } else { Protocol::Acp },
        env: texts(env),
        login: texts(login),
        directories: Vec::new(),
    };
    let claude = ["ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "AWS_*", "GOOGLE_*", "API_TIMEOUT_MS"];
    let any = ["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "OPENROUTER_*"];
    vec![
        spec("claude", "Claude Code", &["claude"], &["claude", "auth", "login"], &claude),
        spec("opencode", "opencode", &["opencode", "acp"], &["opencode", "auth", "login"], &any),
        spec("codex", "Codex", &["codex-acp"], &["codex", "login"], &["OPENAI_*", "CODEX_*"]),
        spec("gemini", "Gemini", &["gemini", "--acp"], &["gemini"], &["GEMINI_*", "GOOGLE_*"]),
    ]
}

impl AgentSpec {
    /// Resolves the additional directories of the agent and of the session; returns those that exist and
    /// those that are missing.
    pub(crate) fn directories(&self, own: &[String]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut existing, mut missing) = (Vec::new(), Vec::new());
        let own: Vec<PathBuf> = own.iter().map(PathBuf::from).collect();
        for path in self.directories.iter().chain(&own) {
            let real = path.is_absolute().then(|| path.canonicalize().ok()).flatten();
            match real.filter(|real| real.is_dir() && real.to_str().is_some()) {
                Some(real) if !existing.contains(&real) => existing.push(real),
                Some(_) => {}
                None => missing.push(path.clone()),
            }
        }
        (existing, missing)
    }

    /// The display name.
    pub fn title(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }

    /// Finds the program; the error says why it cannot be started.
    pub fn program(&self, path: Option<&OsStr>) -> Result<PathBuf, String> {
        let Some(name) = self.argv.first().filter(|n| !n.is_empty()) else {
            return Err("no program is given".to_owned());
        };
        let program = Path::new(name);
        if program.components().count() > 1 {
            return if is_program(program) {
                Ok(program.to_owned())
            } else {
                Err(format!("there is no program {name}"))
            };
        }
        let folders = path.map(std::env::split_paths).into_iter().flatten();
        let mut found = folders.filter(|f| f.is_absolute()).map(|f| f.join(program));
        found
            .find(|p| is_program(p))
            .ok_or_else(|| format!("`{name}` is not installed (not in PATH)"))
    }

    /// Returns whether the agent inherits an environment variable.
    pub(crate) fn env_allows(&self, variable: &str, all: bool) -> bool {
        let matches = |rule: &str| match rule.strip_suffix('*') {
            Some(start) => variable.starts_with(start),
            None => variable.eq_ignore_ascii_case(rule),
        };
        let is_own = variable.starts_with("NARROWS_");
        let is_named = self.env.iter().filter(|r| !r.contains('=')).any(|r| matches(r));
        if is_own || is_named {
            return !is_own;
        }
        let is_denied = DENIED_ENV.iter().any(|r| matches(r));
        if all { !is_denied } else { DEFAULT_ENV.iter().any(|r| matches(r)) }
    }

    /// The variables that the spec sets, with their values.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().filter_map(|rule| rule.split_once('='))
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_inherits_only_listed_variables() {
        let presets = presets();
        let claude = presets.iter().find(|p| p.name == "claude").expect("claude");
        for name in
            ["HOME", "PATH", "LC_ALL", "ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "https_proxy"]
        {
            assert!(claude.env_allows(name, false), "{name}");
        }
        for name in
            ["OPENAI_API_KEY", "NARROWS_TOKEN", "LD_PRELOAD", "DATABASE_URL", "NODE_OPTIONS"]
        {
            assert!(!claude.env_allows(name, false), "{name}");
        }
    }

    #[test]
    fn whole_env_excludes_dangerous_variables() {
        let presets = presets();
        let opencode = presets.iter().find(|p| p.name == "opencode").expect("opencode");
        for name in ["GROQ_API_KEY", "DATABASE_URL", "LD_LIBRARY_PATH", "HOME", "NVM_DIR"] {
            assert!(opencode.env_allows(name, true), "{name}");
        }
        for name in ["NARROWS_TOKEN", "LD_PRELOAD", "NODE_OPTIONS", "BASH_FUNC_x%%", "PWD", "_"] {
            assert!(!opencode.env_allows(name, true), "{name}");
        }
    }

    #[test]
    fn program_is_found_in_path() {
        let spec = |argv: &str| AgentSpec {
            name: "x".to_owned(),
            title: String::new(),
            argv: vec![argv.to_owned()],
            protocol: Protocol::Acp,
            env: Vec::new(),
            login: Vec::new(),
            directories: Vec::new(),
        };
        let path = Some(OsStr::new("relative:/usr/bin:/bin"));
        assert!(spec("sh").program(path).is_ok());
        assert!(spec("/bin/sh").program(None).is_ok());
        assert!(spec("no-such-agent").program(path).expect_err("none").contains("not installed"));
        assert!(spec("/etc/passwd").program(path).is_err());
        assert!(spec("").program(path).is_err());
    }
}
