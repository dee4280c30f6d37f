//! `narrows completions` and `narrows man`.

use crate::args::{self, CompletionsArgs, ManArgs};
use crate::error::CliError;
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), CliError> {
    // Into memory first: the generator panics if a write fails.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "narrows", &mut text);
    print(&text)
}

pub(crate) fn man(args: &ManArgs) -> Result<(), CliError> {
    // `help` needs no page.
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        return print(&render_page(command)?);
    };
    let name = dir.display();
    fs::create_dir_all(dir).map_err(CliError::cannot(format!("create {name}")))?;
    let count = write_pages(&command, dir)?;
    print(format!("{count} pages written to {name}\n").as_bytes())
}

/// Writes the page of a command and of each of its subcommands. Returns how many.
fn write_pages(command: &Command, dir: &Path) -> Result<usize, CliError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = dir.join(format!("{name}.1"));
    let page = render_page(command.clone())?;
    fs::write(&file, page).map_err(CliError::cannot(format!("write {}", file.display())))?;
    let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
    visible.map(|sub| write_pages(sub, dir)).try_fold(1, |sum, count| Ok(sum + count?))
}

fn render_page(command: Command) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    let source = concat!("narrows ", env!("CARGO_PKG_VERSION"));
    Man::new(command)
        .source(source)
        .render(&mut text)
        .map_err(CliError::cannot("render the man page"))?;
    // clap_mangen calls the text after the options EXTRA; man pages call it NOTES.
    let text = String::from_utf8_lossy(&text).replace("\n.SH EXTRA\n", "\n.SH NOTES\n");
    Ok(text.into_bytes())
}

fn print(text: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).map_err(CliError::stdout)
}
