//! What is hidden: options, the config file, the environment.

use crate::Fault;
use crate::args::HideArgs;
use crate::running::RunFile;
use crate::settings::{ServeFile, SourcesFile};
use narrows::sanitize::{MIN_KNOWN, UserRule};
use narrows::{Paths, Secrets};
use narrows_server::run::AgentSpec;
use serde::Deserialize;
use std::env;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Everything to hide.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    pub(crate) paths: Paths,
    pub(crate) secrets: Secrets,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    sanitize: Section,
    #[serde(default)]
    serve: ServeFile,
    #[serde(default)]
    sources: SourcesFile,
    #[serde(default)]
    run: RunFile,
    #[serde(default)]
    agent: Vec<AgentSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Section {
    roots: Vec<String>,
    home: Option<String>,
    allow: Vec<String>,
    known: Vec<String>,
    rule: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    kind: String,
    keyword: String,
    regex: String,
}

/// The `[serve]` section of the config file.
pub(crate) fn serve_file(args: &HideArgs) -> Result<ServeFile, Fault> {
    Ok(read_file(args)?.serve)
}

/// The `[sources]` section of the config file.
pub(crate) fn sources_file(args: &HideArgs) -> Result<SourcesFile, Fault> {
    Ok(read_file(args)?.sources)
}

/// The `[run]` section and the agents of the config file.
pub(crate) fn run_file(args: &HideArgs) -> Result<(RunFile, Vec<AgentSpec>), Fault> {
    let file = read_file(args)?;
    Ok((file.run, file.agent))
}

fn read_file(args: &HideArgs) -> Result<File, Fault> {
    let Some(path) = config_path(args) else { return Ok(File::default()) };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(Fault::new(name.as_str()))?;
    // Where the fault is, not what stands there: the file may hold secrets.
    let file = toml::from_str(&text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        bad(format!("line {line}: {}", e.message()))
    });
    file.map_err(Fault::new(name))
}

fn bad(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl Hidden {
    /// The same, with this user's home as `~`: for sessions of this machine.
    pub(crate) fn at_home(args: &HideArgs) -> Result<Hidden, Fault> {
        let mut hidden = Hidden::read(args)?;
        if args.home.is_none()
            && read_file(args)?.sanitize.home.is_none()
            && let Some(home) = env::var_os("HOME").as_ref().and_then(|h| h.to_str())
        {
            hidden.paths.set_home(home);
        }
        Ok(hidden)
    }

    pub(crate) fn read(args: &HideArgs) -> Result<Hidden, Fault> {
        let mut hidden = Hidden::default();
        let name = config_path(args).map(|p| p.display().to_string()).unwrap_or_default();
        let file = read_file(args)?;
        hidden.add_section(file.sanitize).map_err(Fault::new(name))?;
        // What agents are given here, they may print.
        file.agent
            .iter()
            .flat_map(AgentSpec::values)
            .for_each(|(name, value)| hidden.add_value(name, value));
        args.root.iter().for_each(|root| hidden.paths.add_root(root));
        if let Some(home) = &args.home {
            hidden.paths.set_home(home);
        }
        if !args.no_env {
            hidden.add_environment();
        }
        Ok(hidden)
    }

    fn add_section(&mut self, section: Section) -> Result<(), Error> {
        section.roots.iter().for_each(|root| self.paths.add_root(root));
        if let Some(home) = &section.home {
            self.paths.set_home(home);
        }
        section.allow.iter().for_each(|value| self.secrets.allow(value));
        for (i, value) in section.known.iter().enumerate() {
            if !self.secrets.add_known(value) {
                let least = format!("known value {} has less than {MIN_KNOWN} characters", i + 1);
                return Err(bad(least));
            }
        }
        for Rule { kind, keyword, regex } in section.rule {
            let added = self.secrets.add_rule(UserRule { kind, keyword, regex });
            added.map_err(|e| bad(e.to_string()))?;
        }
        Ok(())
    }

    /// Values of variables that are named like secrets.
    fn add_environment(&mut self) {
        for (name, value) in env::vars_os() {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            self.add_value(name, value);
        }
    }

    fn add_value(&mut self, name: &str, value: &str) {
        if Secrets::is_secret_name(name) && !value.starts_with(['/', '.']) {
            self.secrets.add_known(value);
        }
    }
}

/// The config file: a given one must be there, the usual one may be.
fn config_path(args: &HideArgs) -> Option<PathBuf> {
    if let Some(path) = &args.config {
        return Some(path.clone());
    }
    if let Some(path) = env::var_os("NARROWS_CONFIG").filter(|p| !p.is_empty()) {
        return Some(path.into());
    }
    let base = match env::var_os("XDG_CONFIG_HOME").filter(|p| !p.is_empty()) {
        Some(base) => PathBuf::from(base),
        None => Path::new(&env::var_os("HOME")?).join(".config"),
    };
    Some(base.join("narrows/config.toml")).filter(|path| path.exists())
}
