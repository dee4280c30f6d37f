//! `narrows completions` and `narrows man`.

use crate::Fault;
use crate::args::{Args, CompletionsArgs, ManArgs};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Fault> {
    // Into memory first: the generator panics where writing fails.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "narrows", &mut text);
    print(&text)
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Fault> {
    // `help` is no command that needs a page.
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        return print(&page(command)?);
    };
    let what = dir.display().to_string();
    fs::create_dir_all(dir).map_err(Fault::new(what.as_str()))?;
    let written = pages(&command, dir)?;
    print(format!("{written} pages written to {what}\n").as_bytes())
}

/// Writes the page of a command and of each command below it; tells how many.
fn pages(command: &Command, dir: &Path) -> Result<usize, Fault> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = dir.join(format!("{name}.1"));
    let what = file.display().to_string();
    fs::write(&file, page(command.clone())?).map_err(Fault::new(what))?;
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    shown.map(|below| pages(below, dir)).try_fold(1, |sum, written| Ok(sum + written?))
}

fn page(command: Command) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::new();
    let source = concat!("narrows ", env!("CARGO_PKG_VERSION"));
    Man::new(command).source(source).render(&mut text).map_err(Fault::new("manual page"))?;
    // What stands below `--help` is called EXTRA by the generator, and NOTES in other manuals.
    let text = String::from_utf8_lossy(&text).replace("\n.SH EXTRA\n", "\n.SH NOTES\n");
    Ok(text.into_bytes())
}

fn print(text: &[u8]) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).map_err(Fault::new("standard output"))
}
