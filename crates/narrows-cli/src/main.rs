//! The `narrows` command. The only place that prints.

mod args;
mod parse;
mod sanitize;

use args::{Args, Command};
use clap::Parser;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Usage errors leave here with exit code 2.
    let args = Args::parse();
    let done = match &args.command {
        Command::Parse(args) => parse::run(args),
        Command::Sanitize(args) => sanitize::run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has had enough: that is no failure.
        Err(fault) if fault.error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(fault) => {
            let _ = writeln!(std::io::stderr(), "narrows: {}: {}", fault.what, fault.error);
            ExitCode::FAILURE
        }
    }
}

/// An I/O error and what was being done.
#[derive(Debug)]
struct Fault {
    what: String,
    error: std::io::Error,
}

impl Fault {
    fn new(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Fault {
        let what = what.into();
        move |error| Fault { what, error }
    }
}
