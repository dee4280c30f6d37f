//! Settings from the command line, the environment and the config file, in this order of precedence.
//!
//! Knows the options but no command.

mod file;
mod redaction;
mod run;
mod serve;
mod sources;

pub(crate) use redaction::RedactionSettings;
pub(crate) use run::run_options;
pub(crate) use serve::{retention, serve_config};
pub(crate) use sources::source_options;

use crate::args::DataArgs;
use crate::error::CliError;
use std::env;
use std::path::PathBuf;

/// The data directory.
pub(crate) fn data_dir(args: &DataArgs) -> Result<PathBuf, CliError> {
    if let Some(data) = &args.data {
        return Ok(data.clone());
    }
    let home = || env_path("HOME").map(|home| home.join(".local/share"));
    let base = env_path("XDG_DATA_HOME").or_else(home);
    let base = base.ok_or_else(|| {
        CliError::new("cannot find the data directory: HOME is not set").hint("use --data")
    })?;
    Ok(base.join("narrows"))
}

/// The value of an environment variable; none if it is unset or empty.
fn env_path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
