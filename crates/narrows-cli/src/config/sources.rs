//! Where sessions of this machine are discovered.

use super::env_path;
use super::file::ConfigFile;
use crate::args::RedactionArgs;
use crate::error::CliError;
use narrows_engine::discovery::SourceOptions;
use serde::Deserialize;
use std::path::PathBuf;

/// The `[sources]` section of the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SourcesSection {
    pub(super) follow: Option<bool>,
    claude_dirs: Vec<PathBuf>,
    exclude: Vec<PathBuf>,
    poll: bool,
}

/// Where to look for sessions of this machine; none if the config file turns discovery off.
pub(crate) fn source_options(args: &RedactionArgs) -> Result<Option<SourceOptions>, CliError> {
    Ok(from_section(ConfigFile::load(args)?.sources))
}

pub(super) fn from_section(section: SourcesSection) -> Option<SourceOptions> {
    if section.follow == Some(false) {
        return None;
    }
    let home = env_path("HOME");
    let expand_home = |path: PathBuf| match (path.strip_prefix("~"), &home) {
        (Ok(relative), Some(home)) => home.join(relative),
        _ => path,
    };
    let mut claude_dirs: Vec<PathBuf> = section.claude_dirs.into_iter().map(expand_home).collect();
    if claude_dirs.is_empty()
        && let Some(dirs) = env_path("CLAUDE_CONFIG_DIR")
    {
        let dirs = dirs.to_string_lossy().into_owned();
        claude_dirs = dirs.split(',').map(|dir| expand_home(dir.trim().into())).collect();
    }
    let exclude = section.exclude.into_iter().map(expand_home).collect();
    Some(SourceOptions { home, claude_dirs, exclude, poll: section.poll, silence: None })
}
