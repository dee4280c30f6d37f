//! `narrows serve`.

use crate::args::{LogFormat, ServeArgs};
use crate::settings::serve_config;
use crate::{Fault, hide};
use narrows_server::source::{agents, look};
use narrows_server::{HiddenOptions, Server};
use narrows_store::ListFilter;
use std::io::{self, Write};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

pub(crate) fn run(args: &ServeArgs) -> Result<(), Fault> {
    let config = serve_config(args)?;
    let hidden = hide::Hidden::at_home(&args.hide)?;
    logs(args.log_format);
    let runtime = runtime()?;
    runtime.block_on(async {
        let hidden = HiddenOptions { paths: hidden.paths, secrets: hidden.secrets };
        let mut too_large = too_large().map_err(Fault::new("signals"))?;
        tokio::spawn(async move {
            while too_large.recv().await.is_some() {
                tracing::warn!(
                    "a file reached the largest size that this process may write (ulimit -f)"
                );
            }
        });
        let server = Server::start(config, hidden).await.map_err(Fault::new(""))?;
        match greet(&server).await {
            // Nobody reads it: the server serves nevertheless.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            done => done.map_err(Fault::new("standard output"))?,
        }
        tracing::info!(address = %server.address(), "listening");
        wait().await.map_err(Fault::new("signals"))?;
        tracing::info!("closing");
        server.stop().await;
        Ok(())
    })
}

async fn greet(server: &Server) -> io::Result<()> {
    let (found, page) = (found(server).await, server.ticket_url().await?);
    let mut out = io::stdout().lock();
    let shown = |path: &std::path::Path| {
        let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
        match home.as_ref().and_then(|h| path.strip_prefix(h).ok()) {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    };
    let data = &server.app().config.data;
    writeln!(out, "narrows {} listens on http://{}", env!("CARGO_PKG_VERSION"), server.address())?;
    writeln!(out, "  found  {found}")?;
    writeln!(out, "  page   {page}  (works once; `narrows open` prints another)")?;
    writeln!(out, "  data   {}", shown(data))?;
    writeln!(out, "  token  {}", shown(&data.join(narrows_store::TOKEN_FILE)))?;
    out.flush()
}

/// What there is to see, in a few words.
async fn found(server: &Server) -> String {
    let app = server.app();
    let one = ListFilter { limit: 1, ..ListFilter::default() };
    let empty = app.store.list(one).await.is_ok_and(|page| page.sessions.is_empty());
    let Some(options) = app.config.sources.clone() else {
        if app.config.store.is_some() {
            return "a store that other nodes may use too".to_owned();
        }
        return "nothing is looked for on this machine (--no-follow)".to_owned();
    };
    let seen = tokio::task::spawn_blocking(move || look(&agents(&options))).await;
    let counts = seen.unwrap_or_default().into_iter().map(|s| s.sessions.len());
    match counts.sum::<usize>() {
        0 if empty => {
            "no sessions of agents yet: `narrows sample` puts one in to look at".to_owned()
        }
        0 => "no sessions in the agents' own folders".to_owned(),
        1 => "one session of an agent on this machine".to_owned(),
        n => format!("{n} sessions of agents on this machine; what is new is being read"),
    }
}

/// Waits for somebody to end it.
pub(crate) async fn wait() -> io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
}

pub(crate) fn runtime() -> Result<Runtime, Fault> {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = built.map_err(Fault::new("the runtime cannot start"))?;
    let entered = runtime.enter();
    // From here on the write fails instead, for as long as the process lives.
    drop(too_large().map_err(Fault::new("signals"))?);
    drop(entered);
    Ok(runtime)
}

/// Tells when a file may not grow further. Unless somebody listens, the signal ends the process
/// without a word.
fn too_large() -> io::Result<Signal> {
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
}

/// Logs on standard error. They never hold what a session says.
fn logs(format: LogFormat) {
    let filter = EnvFilter::try_from_env("NARROWS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// `narrows openapi`.
pub(crate) fn openapi() -> Result<(), Fault> {
    let document = narrows_server::openapi();
    let text =
        serde_json::to_string_pretty(&document).map_err(|e| Fault::new("document")(e.into()))?;
    writeln!(io::stdout().lock(), "{text}").map_err(Fault::new("standard output"))
}
