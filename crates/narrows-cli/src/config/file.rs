//! The config file.

use super::env_path;
use super::redaction::RedactionSection;
use super::run::RunSection;
use super::serve::ServeSection;
use super::sources::SourcesSection;
use crate::args::RedactionArgs;
use crate::error::CliError;
use narrows_engine::run::AgentSpec;
use serde::Deserialize;
use std::path::PathBuf;

/// The whole config file; every section may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConfigFile {
    pub(super) sanitize: RedactionSection,
    pub(super) serve: ServeSection,
    pub(super) sources: SourcesSection,
    pub(super) run: RunSection,
    #[serde(rename = "agent")]
    pub(super) agents: Vec<AgentSpec>,
}

impl ConfigFile {
    pub(super) fn load(args: &RedactionArgs) -> Result<ConfigFile, CliError> {
        let Some(path) = path(args) else { return Ok(ConfigFile::default()) };
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(&path).map_err(CliError::cannot(format!("read {name}")))?;
        // The parser's own message quotes the line, which may hold a secret.
        toml::from_str(&text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            CliError::new(format!("cannot parse {name}: line {line}: {}", e.message()))
        })
    }
}

/// The path of the config file. An explicit path must exist, the default one need not.
pub(super) fn path(args: &RedactionArgs) -> Option<PathBuf> {
    if let Some(path) = args.config.clone().or_else(|| env_path("NARROWS_CONFIG")) {
        return Some(path);
    }
    let base = env_path("XDG_CONFIG_HOME")
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))?;
    Some(base.join("narrows/config.toml")).filter(|path| path.exists())
}

/// The error of a value that parses but makes no sense.
pub(super) fn invalid(what: impl std::fmt::Display) -> CliError {
    CliError::new(format!("invalid config file: {what}"))
}
