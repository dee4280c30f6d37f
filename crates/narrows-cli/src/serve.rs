//! `narrows serve`.

use crate::args::{LogFormat, ServeArgs};
use crate::settings::serve_config;
use crate::{Fault, hide};
use narrows_server::{HiddenOptions, Server};
use std::io::{self, Write};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

pub(crate) fn run(args: &ServeArgs) -> Result<(), Fault> {
    let config = serve_config(args)?;
    let hidden = hide::Hidden::read(&args.hide)?;
    logs(args.log_format);
    let runtime = runtime()?;
    runtime.block_on(async {
        let hidden = HiddenOptions { paths: hidden.paths, secrets: hidden.secrets };
        let server = Server::start(config, hidden).await.map_err(Fault::new(""))?;
        greet(&server).map_err(Fault::new("standard output"))?;
        tracing::info!(address = %server.address(), "listening");
        wait().await.map_err(Fault::new("signals"))?;
        tracing::info!("closing");
        server.stop().await;
        Ok(())
    })
}

fn greet(server: &Server) -> io::Result<()> {
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
    writeln!(
        out,
        "  page   {}  (works once; `narrows open` prints another)",
        server.ticket_url()?
    )?;
    writeln!(out, "  data   {}", shown(data))?;
    writeln!(out, "  token  {}", shown(&data.join(narrows_store::TOKEN_FILE)))?;
    out.flush()
}

/// Waits for somebody to end it.
async fn wait() -> io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
}

pub(crate) fn runtime() -> Result<Runtime, Fault> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Fault::new("the runtime cannot start"))
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
