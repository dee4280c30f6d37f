//! `narrows parse`: prints packets as JSON lines of a view.

use crate::args::{ParseArgs, ParseView};
use crate::config::RedactionSettings;
use crate::error::CliError;
use crate::input::{Boundary, parse_session};
use narrows::time::Time;
use narrows::view::{Activity, ActivityConfig, packets};
use narrows::{Config, Items, Row, Step};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::sync::Arc;

/// Output held back until the format of the input is known.
const MAX_HELD_BYTES: usize = 1 << 20;

pub(crate) fn run(args: &ParseArgs) -> Result<(), CliError> {
    // Items are printed at the end, so text chunks may be joined.
    let join = args.view == ParseView::Items || args.view == ParseView::Session;
    // Packets need the changes: they show whether a text was already emitted.
    let events_only = !join && args.view != ParseView::Packets;
    let format = args.format;
    let mut config = Config { format, events_only, join, ..Config::default() };
    let settings = RedactionSettings::load(&args.redaction)?;
    (config.paths, config.secrets) = (settings.paths, Arc::new(settings.secrets));
    let mut printer = Printer::new(args);
    let outcome = parse_session(args.file.as_deref(), config, |steps, boundary, tally| {
        printer.push(steps)?;
        let pause = boundary == Boundary::Chunk;
        if tally.decided || pause && tally.is_understood() {
            printer.out.release()?;
        }
        if pause { printer.out.flush() } else { Ok(()) }
    })?;
    let checked = outcome.check();
    // Input that only resembles a known format is not printed as a session.
    if checked.is_ok() || args.view == ParseView::Events {
        printer.finish().map_err(CliError::stdout)?;
    }
    if let Some(unparsed) = outcome.unparsed() {
        let _ = writeln!(io::stderr(), "narrows: not parsed: {unparsed}");
    }
    checked
}

/// Standard output. Holds back a bounded part until the format of the input is known.
struct HeldOutput {
    held: Option<Vec<u8>>,
    out: BufWriter<StdoutLock<'static>>,
}

impl HeldOutput {
    /// Writes what is held back, and holds back nothing more.
    fn release(&mut self) -> io::Result<()> {
        self.held.take().map_or(Ok(()), |held| self.out.write_all(&held))
    }
}

impl Write for HeldOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.held {
            Some(held) if held.len() + bytes.len() <= MAX_HELD_BYTES => {
                held.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            _ => self.release()?,
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Prints one view.
struct Printer<'a> {
    args: &'a ParseArgs,
    out: HeldOutput,
    items: Items,
    activity: Activity,
    messages: Vec<narrows::view::Message>,
    seq: u64,
}

impl<'a> Printer<'a> {
    fn new(args: &'a ParseArgs) -> Self {
        Printer {
            args,
            out: HeldOutput {
                // Events are printed for any input: unknown packets are events too.
                held: (args.view != ParseView::Events).then(Vec::new),
                out: BufWriter::with_capacity(64 << 10, io::stdout().lock()),
            },
            items: Items::new(),
            activity: Activity::new(ActivityConfig {
                work_order_id: args.session.clone(),
                run_id: args.session.clone(),
                interval_ms: args.interval.saturating_mul(1000),
            }),
            messages: Vec::new(),
            seq: 0,
        }
    }

    fn push(&mut self, steps: &mut Vec<Step>) -> io::Result<()> {
        for mut step in steps.drain(..) {
            self.seq += 1;
            match self.args.view {
                ParseView::Events => {
                    let row = Row::new(self.seq, &self.args.session, &step.event);
                    print_line(&mut self.out, &row)?;
                }
                ParseView::Items | ParseView::Session => {
                    step.changes.into_iter().for_each(|c| self.items.apply(c))
                }
                ParseView::Activity => {
                    self.activity.push(self.seq, &step.event, &mut self.messages);
                    self.print_messages()?;
                }
                ParseView::Packets => {
                    // ACP front ends expect a time in every packet; the default is the time of arrival.
                    step.event.time.get_or_insert_with(now);
                    for packet in packets(&step.event, || step.changes.clone()) {
                        print_line(&mut self.out, &packet)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn print_messages(&mut self) -> io::Result<()> {
        for message in self.messages.drain(..) {
            print_line(&mut self.out, &message)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.release()?;
        match self.args.view {
            ParseView::Items => {
                self.items.settle();
                for item in self.items.ordered() {
                    print_line(&mut self.out, item)?;
                }
            }
            ParseView::Session => print_line(&mut self.out, self.items.info())?,
            ParseView::Activity => {
                self.activity.finish(self.seq, &mut self.messages);
                self.print_messages()?;
            }
            ParseView::Events | ParseView::Packets => {}
        }
        self.out.flush()
    }
}

fn now() -> Time {
    Time::from_millis(narrows_store::now())
}

fn print_line(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = Vec::with_capacity(512);
    narrows::json::print(&mut text, value).map_err(io::Error::other)?;
    text.push(b'\n');
    out.write_all(&text)
}
