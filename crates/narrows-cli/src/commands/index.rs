//! `narrows index`, and what the other commands do of it by themselves.

mod bar;

use crate::args::{DataArgs, HideArgs, IndexArgs};
use crate::settings::{data_dir, sources};
use crate::{Fault, fault, hide, serve};
use bar::Bar;
use narrows_server::hub::Hub;
use narrows_server::intake::{Hidden, Intake};
use narrows_server::source::spool::{self, Spools};
use narrows_server::source::{Follower, Progress, SourceOptions, Sums, catch_up};
use narrows_store::{ADDRESS_FILE, DataDir, Error, ListFilter, Options, Store};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a store that somebody is just making is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Times that reading is tried, when somebody else comes and goes.
const TRIES: u32 = 5;

pub(crate) fn run(args: &IndexArgs) -> Result<(), Fault> {
    let data = data_dir(&args.data)?;
    let Some(options) = sources(&args.hide)? else {
        return Err(fault("the config file says that sessions are not followed: [sources] follow"));
    };
    let read = if is_followed(&data)? {
        None
    } else {
        unless_taken(read_new(&data, &args.hide, Some(options.clone()), !args.quiet))?
    };
    let Some(news) = read else {
        let what = "a running narrows reads sessions already: `narrows ls` lists them";
        return if args.quiet { Ok(()) } else { say(what) };
    };
    if !args.quiet {
        say(&told(news.sums))?;
    }
    if args.follow {
        news.complain();
        return follow(&data, &args.hide, options);
    }
    news.failed().map_or(Ok(()), |what| Err(fault(what)))
}

/// What came of reading.
struct News {
    sums: Sums,
    /// The last thing that went wrong.
    fault: Option<String>,
}

impl News {
    /// What could not be read, and why.
    fn failed(&self) -> Option<String> {
        let many = match self.sums.failed {
            0 => return None,
            1 => "a session".to_owned(),
            n => format!("{n} sessions"),
        };
        let why = self.fault.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("{many} could not be read{why}"))
    }

    fn complain(&self) {
        if let Some(what) = self.failed() {
            let _ = writeln!(io::stderr(), "narrows: {what}");
        }
    }
}

/// None when somebody else has just begun to write the store.
pub(crate) fn unless_taken<T>(done: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match done {
        Err(fault) if fault.error.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

fn say(what: &str) -> Result<(), Fault> {
    writeln!(io::stdout().lock(), "{what}").map_err(Fault::new("standard output"))
}

fn told(sums: Sums) -> String {
    let failed = match sums.failed {
        0 => String::new(),
        n => format!(", {n} could not be read"),
    };
    match sums.fresh {
        0 => format!("nothing new{failed}"),
        n => {
            let (ending, events) = (if n == 1 { "" } else { "s" }, sums.events);
            format!("{n} session{ending} read, {events} new events{failed}")
        }
    }
}

/// Whether somebody writes the store already: a server that follows, or another command.
pub(crate) fn is_followed(data: &Path) -> Result<bool, Fault> {
    let dir = DataDir::open(data).map_err(|e| fault(e.to_string()))?;
    Ok(dir.is_in_use())
}

/// Looks for new sessions before something is shown, unless somebody else does.
pub(crate) fn before_showing(data: &DataArgs, hide: &HideArgs) -> Result<(), Fault> {
    let data = data_dir(data)?;
    let options = sources(hide)?;
    // What was recorded is read in any case; to look whether there is something costs nothing.
    if options.is_none() && !spool::folder(&data).exists() {
        return Ok(());
    }
    for _ in 0..TRIES {
        if !is_followed(&data)?
            && let Some(news) = unless_taken(read_new(&data, hide, options.clone(), true))?
        {
            news.complain();
            return Ok(());
        }
        if is_read_by_another(&data)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether somebody else reads. Waits for the first session while there is none: somebody may just
/// be making the store.
fn is_read_by_another(data: &Path) -> Result<bool, Fault> {
    let until = Instant::now() + PATIENCE;
    let runtime = serve::runtime()?;
    while is_followed(data)? {
        // A server has looked.
        if data.join(ADDRESS_FILE).exists() || Instant::now() > until {
            return Ok(true);
        }
        let there = runtime.block_on(async {
            let one = ListFilter { limit: 1, ..ListFilter::default() };
            Store::open_read_only(data)?.list(one).await.map(|page| !page.sessions.is_empty())
        });
        if there.unwrap_or(false) {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(false)
}

/// The parts that read sessions into a store.
pub(crate) fn parts(data: &Path, hide: &HideArgs) -> Result<(Store, Intake, Hub), Fault> {
    let store = Store::open(data, &Options::default()).map_err(|e| match e {
        // Whoever can do without it sees it by the kind.
        Error::Locked(_) => Fault::new("")(io::Error::new(ErrorKind::WouldBlock, e.to_string())),
        e => fault(e.to_string()),
    })?;
    let mut hidden = hide::Hidden::at_home(hide)?;
    hidden.secrets.set_key(store.mark_key());
    if let Ok(secret) = std::fs::read_to_string(data.join(narrows_store::TOKEN_FILE)) {
        hidden.secrets.add_known(secret.trim());
    }
    let hidden = Hidden { paths: hidden.paths, secrets: Arc::new(hidden.secrets) };
    let hub = Hub::new(store.clone());
    let intake = Intake::new(store.clone(), hub.clone(), hidden);
    Ok((store, intake, hub))
}

/// Reads everything that is new.
fn read_new(
    data: &Path,
    hide: &HideArgs,
    options: Option<SourceOptions>,
    shown: bool,
) -> Result<News, Fault> {
    serve::runtime()?.block_on(async {
        let (store, intake, hub) = parts(data, hide)?;
        let spools = Spools::new(data, store.clone(), intake.clone(), hub.clone()).with_live(true);
        let progress = Arc::<Progress>::default();
        let bar = Bar::new(shown && io::stderr().is_terminal());
        let done = match options {
            Some(options) => {
                let progress = Arc::clone(&progress);
                let reading =
                    catch_up(store.clone(), intake.clone(), hub, options, Arc::clone(&progress));
                bar.over(reading, &progress).await
            }
            None => Ok(Sums::default()),
        };
        let spooled = spools.read().await;
        intake.close().await;
        // What was read can be searched when the command ends.
        bar.indexing(&store).await;
        store.close().await;
        bar.end();
        let mut sums = done.map_err(|e| fault(e.to_string()))?;
        sums.fresh += spooled.sessions;
        sums.events += spooled.events;
        sums.failed += spooled.failed;
        Ok(News { sums, fault: progress.fault() })
    })
}

/// Follows until somebody ends it.
fn follow(data: &Path, hide: &HideArgs, options: SourceOptions) -> Result<(), Fault> {
    serve::runtime()?.block_on(async {
        let (store, intake, hub) = parts(data, hide)?;
        let spools = Spools::new(data, store.clone(), intake.clone(), hub.clone()).with_live(true);
        let follower = Follower::start(store.clone(), intake.clone(), hub, options);
        let mut every = tokio::time::interval(Duration::from_secs(1));
        let ended = serve::wait();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                done = &mut ended => {
                    done.map_err(Fault::new("signals"))?;
                    break;
                }
                _ = every.tick() => {
                    spools.read().await;
                    intake.tidy().await;
                }
            }
        }
        follower.stop().await;
        intake.close().await;
        store.close().await;
        Ok(())
    })
}
