//! The overview of `narrows --help`, with the commands in groups.
//!
//! clap lists all subcommands in one block, so the overview is a template that is built from the
//! commands themselves.

use super::Args;
use clap::{Command, CommandFactory, FromArgMatches};
use std::fmt::Write;

/// Every visible command, in the order of the overview.
const GROUPS: &[(&str, &[&str])] = &[
    ("Sessions", &["ls", "show", "search", "watch", "export", "stats", "rm", "demo"]),
    ("Server", &["serve", "login-url", "token", "ingest", "openapi"]),
    ("Agents", &["run", "agents", "acp"]),
    ("Files", &["parse", "sanitize", "check", "usage"]),
    (
        "Maintenance",
        &[
            "index",
            "service",
            "doctor",
            "prune",
            "backup",
            "restore",
            "repair",
            "completions",
            "man",
            "help",
        ],
    ),
];

/// Parses the command line. Usage errors exit the process with code 2.
pub(crate) fn parse() -> Args {
    let matches = command().get_matches();
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The command line with the grouped overview.
pub(crate) fn command() -> Command {
    let command = Args::command();
    let header = *command.get_styles().get_header();
    let name = *command.get_styles().get_literal();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = write!(template, "\n{header}{title}:{header:#}\n");
        for command_name in *names {
            let _ = writeln!(
                template,
                "  {name}{command_name}{name:#}{:pad$}{}",
                "",
                about(&command, command_name),
                pad = 13_usize.saturating_sub(command_name.len()),
            );
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}\n\n");
    template.push_str(
        "`narrows help <command>` or `narrows <command> --help` prints details and examples.\n",
    );
    command.help_template(template)
}

fn about(command: &Command, name: &str) -> String {
    match command.find_subcommand(name) {
        Some(found) => {
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = found.get_visible_aliases().collect();
            if aliases.is_empty() {
                about
            } else {
                format!("{about} (alias: {})", aliases.join(", "))
            }
        }
        // clap adds it only when the command line is parsed.
        None => "Print the help of a command".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let command = Args::command();
        let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
    }

    #[test]
    fn overview_lists_commands_and_options() {
        let help = command().render_long_help().to_string();
        for line in ["Sessions:\n  ls           List sessions (alias: list)\n", "  -V, --version"] {
            assert!(help.contains(line), "{help}");
        }
        assert!(!help.contains("__supervise"), "{help}");
    }
}
