//! `narrows parse`: packets in, JSON lines out.

use crate::args::{From, ParseArgs, View};
use crate::read::{self, When};
use crate::{Fault, hide};
use narrows::time::Time;
use narrows::view::{Activity, ActivityConfig, packets};
use narrows::{Config, Format, Items, Row, Step};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::sync::Arc;

/// Bytes that are held back at most.
const MAX_HELD: usize = 1 << 20;

pub(crate) fn run(args: &ParseArgs) -> Result<(), Fault> {
    // Items are printed at the end: how many steps made them does not show.
    let items = args.view == View::Items || args.view == View::Session;
    // Whether a text was told before shows in what it changes.
    let events_only = !items && args.view != View::Packets;
    let mut config = Config { events_only, join: items, ..Config::default() };
    config.format = match args.from {
        From::Auto => Format::Auto,
        From::Acp => Format::Acp,
        From::ClaudeStream => Format::ClaudeStream,
        From::ClaudeHistory => Format::ClaudeHistory,
    };
    let hidden = hide::Hidden::read(&args.hide)?;
    (config.paths, config.secrets) = (hidden.paths, Arc::new(hidden.secrets));
    let mut printer = Printer::new(args);
    let outcome = read::session(args.file.as_deref(), config, |steps, when, tally| {
        printer.steps(steps)?;
        let pause = when == When::Pause;
        if tally.decided || pause && tally.is_understood() {
            printer.out.release()?;
        }
        if pause { printer.out.flush() } else { Ok(()) }
    })?;
    let checked = outcome.check();
    // What only seems to fit is not shown as a session.
    if checked.is_ok() || args.view == View::Events {
        printer.finish().map_err(Fault::new("standard output"))?;
    }
    if let Some(left) = outcome.leftover() {
        let _ = writeln!(io::stderr(), "narrows: {left}");
    }
    checked
}

/// Standard output. As long as it is not known what the input is, a bounded part is held back.
struct Out {
    held: Option<Vec<u8>>,
    out: BufWriter<StdoutLock<'static>>,
}

impl Out {
    /// Nothing is held back any more.
    fn release(&mut self) -> io::Result<()> {
        self.held.take().map_or(Ok(()), |held| self.out.write_all(&held))
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.held {
            Some(held) if held.len() + bytes.len() <= MAX_HELD => {
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
    out: Out,
    items: Items,
    activity: Activity,
    messages: Vec<narrows::view::Message>,
    seq: u64,
}

impl<'a> Printer<'a> {
    fn new(args: &'a ParseArgs) -> Self {
        Printer {
            args,
            out: Out {
                // Events say themselves what is not known.
                held: (args.view != View::Events).then(Vec::new),
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

    fn steps(&mut self, steps: &mut Vec<Step>) -> io::Result<()> {
        for mut step in steps.drain(..) {
            self.seq += 1;
            match self.args.view {
                View::Events => {
                    let row = Row::new(self.seq, &self.args.session, &step.event);
                    line(&mut self.out, &row)?;
                }
                View::Items | View::Session => {
                    step.changes.into_iter().for_each(|c| self.items.apply(c))
                }
                View::Activity => {
                    self.activity.push(self.seq, &step.event, &mut self.messages);
                    self.messages()?;
                }
                View::Packets => {
                    // These front ends read a time in every packet: that of its arrival, if need be.
                    step.event.time.get_or_insert_with(now);
                    for packet in packets(&step.event, || step.changes.clone()) {
                        line(&mut self.out, &packet)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn messages(&mut self) -> io::Result<()> {
        for message in self.messages.drain(..) {
            line(&mut self.out, &message)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.release()?;
        match self.args.view {
            View::Items => {
                self.items.settle();
                for item in self.items.ordered() {
                    line(&mut self.out, item)?;
                }
            }
            View::Session => line(&mut self.out, self.items.info())?,
            View::Activity => {
                self.activity.finish(self.seq, &mut self.messages);
                self.messages()?;
            }
            View::Events | View::Packets => {}
        }
        self.out.flush()
    }
}

fn now() -> Time {
    Time::from_millis(narrows_store::now())
}

fn line(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = Vec::with_capacity(512);
    narrows::json::print(&mut text, value).map_err(io::Error::other)?;
    text.push(b'\n');
    out.write_all(&text)
}
