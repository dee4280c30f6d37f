//! The `narrows` command. The only place that prints.

mod acp;
mod args;
mod backup;
mod client;
mod completions;
mod doctor;
mod drift;
mod export;
mod hide;
mod index;
mod ingest;
mod keep;
mod library;
mod ls;
mod parity;
mod parse;
mod prune;
mod read;
mod repair;
mod rm;
mod run;
mod running;
mod sample;
mod sanitize;
mod search;
mod serve;
mod service;
mod settings;
mod show;
mod stats;
mod table;
mod token;
mod usage;
mod watch;
mod when;

use args::{Args, Command};
use clap::Parser;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Usage errors leave here with exit code 2.
    let args = Args::parse();
    let done = match &args.command {
        // Its code is the agent's.
        Command::Acp(args) => return acp::run(args),
        Command::Parse(args) => parse::run(args).map(|()| true),
        Command::Parity(args) => parity::run(args),
        Command::Drift(args) => drift::run(args),
        Command::Usage(args) => usage::run(args).map(|()| true),
        Command::Sanitize(args) => sanitize::run(args).map(|()| true),
        Command::Serve(args) => serve::run(args).map(|()| true),
        Command::Ingest(args) => ingest::run(args).map(|()| true),
        Command::Token(args) => token::run(args).map(|()| true),
        Command::Open(args) => token::open(args).map(|()| true),
        Command::Prune(args) => prune::run(args).map(|()| true),
        Command::Backup(args) => backup::backup(args).map(|()| true),
        Command::Repair(args) => repair::run(args),
        Command::Restore(args) => backup::restore(args).map(|()| true),
        Command::Ls(args) => ls::run(args).map(|()| true),
        Command::Show(args) => show::run(args).map(|()| true),
        Command::Search(args) => search::run(args),
        Command::Watch(args) => watch::run(args).map(|()| true),
        Command::Export(args) => export::run(args).map(|()| true),
        Command::Stats(args) => stats::run(args).map(|()| true),
        Command::Rm(args) => rm::run(args).map(|()| true),
        Command::Index(args) => index::run(args).map(|()| true),
        Command::Service(args) => service::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::completions(args).map(|()| true),
        Command::Man(args) => completions::man(args).map(|()| true),
        Command::Sample(args) => ingest::sample(args).map(|()| true),
        Command::Openapi => serve::openapi().map(|()| true),
        // Its code is the agent's.
        // Its codes say how the turn ended.
        Command::Run(args) => return run::run(args),
        Command::Agents(args) => running::list(args).map(|()| true),
        Command::Keep(args) => return keep::run(args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever read our output has had enough: that is no failure.
        Err(fault) if fault.error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = writeln!(std::io::stderr(), "narrows: {}", fault.words());
            ExitCode::from(fault.code)
        }
    }
}

/// The exit code for an input of which nothing was understood.
const NOT_UNDERSTOOD: u8 = 3;

/// An I/O error and what was being done.
#[derive(Debug)]
struct Fault {
    what: String,
    error: std::io::Error,
    /// The exit code that it ends in.
    code: u8,
}

impl Fault {
    fn new(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Fault {
        let what = what.into();
        move |error| Fault { what, error, code: 1 }
    }

    /// What was being done, and what came of it.
    fn words(&self) -> String {
        let Fault { what, error, .. } = self;
        if what.is_empty() { error.to_string() } else { format!("{what}: {error}") }
    }
}

/// Something that is not as it should be, in words.
fn fault(what: impl Into<String>) -> Fault {
    Fault::new("")(std::io::Error::other(what.into()))
}

/// A command line that asks for nothing sensible: it ends as one that cannot be parsed.
fn misused(what: impl Into<String>) -> Fault {
    Fault { code: 2, ..fault(what) }
}

/// A file, or standard input for `-` and nothing, with its name for messages.
fn open(file: Option<&Path>) -> Result<(Box<dyn Read>, String), Fault> {
    match file {
        Some(path) if path.as_os_str() != "-" => {
            let name = path.display().to_string();
            Ok((Box::new(File::open(path).map_err(Fault::new(name.as_str()))?), name))
        }
        _ => Ok((Box::new(std::io::stdin().lock()), "standard input".to_owned())),
    }
}
