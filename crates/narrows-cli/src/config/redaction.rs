//! What to redact: options, `[sanitize]` in the config file, secrets in the environment.

use super::file::{self, ConfigFile};
use crate::args::RedactionArgs;
use crate::error::CliError;
use narrows::sanitize::{MIN_KNOWN, UserRule};
use narrows::{Paths, Secrets};
use narrows_engine::run::AgentSpec;
use serde::Deserialize;
use std::env;

/// The paths and secrets to redact.
#[derive(Debug, Default)]
pub(crate) struct RedactionSettings {
    pub(crate) paths: Paths,
    pub(crate) secrets: Secrets,
}

/// The `[sanitize]` section of the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RedactionSection {
    roots: Vec<String>,
    home: Option<String>,
    allow: Vec<String>,
    known: Vec<String>,
    rule: Vec<RuleSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleSection {
    kind: String,
    keyword: String,
    regex: String,
}

impl RedactionSettings {
    /// Loads the settings for input of unknown origin.
    pub(crate) fn load(args: &RedactionArgs) -> Result<RedactionSettings, CliError> {
        RedactionSettings::from_file(args, ConfigFile::load(args)?)
    }

    /// Loads the settings for sessions of this machine: `~` defaults to the home of this user.
    pub(crate) fn load_for_this_machine(
        args: &RedactionArgs,
    ) -> Result<RedactionSettings, CliError> {
        let file = ConfigFile::load(args)?;
        let has_home = args.home.is_some() || file.sanitize.home.is_some();
        let mut settings = RedactionSettings::from_file(args, file)?;
        if !has_home && let Some(home) = env::var_os("HOME").as_ref().and_then(|h| h.to_str()) {
            settings.paths.set_home(home);
        }
        Ok(settings)
    }

    fn from_file(args: &RedactionArgs, file: ConfigFile) -> Result<RedactionSettings, CliError> {
        let mut settings = RedactionSettings::default();
        settings.add_section(file.sanitize).map_err(|what| {
            let path = file::path(args).map(|p| p.display().to_string()).unwrap_or_default();
            CliError::new(format!("invalid [sanitize] section in {path}: {what}"))
        })?;
        // Agents may print the secrets that they are configured with.
        file.agents
            .iter()
            .flat_map(AgentSpec::values)
            .for_each(|(name, value)| settings.add_agent_value(name, value));
        args.root.iter().for_each(|root| settings.paths.add_root(root));
        if let Some(home) = &args.home {
            settings.paths.set_home(home);
        }
        if !args.no_env {
            settings.add_environment();
        }
        Ok(settings)
    }

    fn add_section(&mut self, section: RedactionSection) -> Result<(), String> {
        section.roots.iter().for_each(|root| self.paths.add_root(root));
        if let Some(home) = &section.home {
            self.paths.set_home(home);
        }
        section.allow.iter().for_each(|value| self.secrets.allow(value));
        for (i, value) in section.known.iter().enumerate() {
            if !self.secrets.add_known(value) {
                return Err(format!(
                    "known value {} is shorter than {MIN_KNOWN} characters",
                    i + 1
                ));
            }
        }
        for RuleSection { kind, keyword, regex } in section.rule {
            let added = self.secrets.add_rule(UserRule { kind, keyword, regex });
            added.map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn add_environment(&mut self) {
        for (name, value) in env::vars_os() {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            self.add_if_secret(name, value);
        }
    }

    /// Adds a value configured for an agent, which may be a secret under any name.
    fn add_agent_value(&mut self, name: &str, value: &str) {
        self.add_if_secret(name, value);
        if Secrets::is_secret_value(value) {
            self.secrets.add_known(value);
        }
    }

    fn add_if_secret(&mut self, name: &str, value: &str) {
        // A path to a key file is not a secret.
        if Secrets::is_secret_name(name) && !value.starts_with(['/', '.']) {
            self.secrets.add_known(value);
        }
    }
}
