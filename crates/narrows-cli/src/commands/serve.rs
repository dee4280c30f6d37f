//! `narrows serve` and `narrows openapi`.

use crate::args::{LogFormat, ServeArgs};
use crate::config::{RedactionSettings, serve_config};
use crate::error::CliError;
use crate::output::display_path;
use crate::runtime::{file_size_signal, runtime, wait_for_shutdown};
use narrows_engine::discovery::{agents, look};
use narrows_server::{HiddenOptions, Server};
use narrows_store::ListFilter;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;

pub(crate) fn run(args: &ServeArgs) -> Result<(), CliError> {
    let config = serve_config(args)?;
    let settings = RedactionSettings::load_for_this_machine(&args.redaction)?;
    init_logging(args.log_format);
    let runtime = runtime()?;
    runtime.block_on(async {
        let hidden = HiddenOptions { paths: settings.paths, secrets: settings.secrets };
        let mut file_size_exceeded =
            file_size_signal().map_err(CliError::cannot("listen for signals"))?;
        tokio::spawn(async move {
            while file_size_exceeded.recv().await.is_some() {
                tracing::warn!("a file reached the size limit of this process (ulimit -f)");
            }
        });
        let server = Server::start(config, hidden).await.map_err(CliError::from)?;
        match print_banner(&server).await {
            // Serves even if standard output is closed.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            printed => printed.map_err(CliError::stdout)?,
        }
        tracing::info!(address = %server.address(), "listening");
        wait_for_shutdown().await.map_err(CliError::cannot("listen for signals"))?;
        tracing::info!("shutting down");
        server.stop().await;
        Ok(())
    })
}

async fn print_banner(server: &Server) -> io::Result<()> {
    let (sessions, url) = (describe_sessions(server).await, server.ticket_url().await?);
    let mut out = io::stdout().lock();
    let data = &server.app().config.data;
    let token = data.join(narrows_store::TOKEN_FILE);
    writeln!(out, "narrows {} listens on http://{}", env!("CARGO_PKG_VERSION"), server.address())?;
    writeln!(out, "  found  {sessions}")?;
    writeln!(out, "  page   {url}  (works once; `narrows login-url` prints another)")?;
    writeln!(out, "  data   {}", display_path(data))?;
    writeln!(out, "  token  {}", display_path(&token))?;
    out.flush()
}

/// One line about the sessions that there are to serve.
async fn describe_sessions(server: &Server) -> String {
    let app = server.app();
    let one = ListFilter { limit: 1, ..ListFilter::default() };
    let is_empty = app.store.list(one).await.is_ok_and(|page| page.sessions.is_empty());
    let Some(options) = app.config.sources.clone() else {
        if app.config.store.is_some() {
            return "the sessions of a shared store".to_owned();
        }
        return "discovery of sessions is turned off".to_owned();
    };
    let scanned = tokio::task::spawn_blocking(move || look(&agents(&options))).await;
    let counts = scanned.unwrap_or_default().into_iter().map(|s| s.sessions.len());
    match counts.sum::<usize>() {
        0 if is_empty => "no sessions yet; `narrows demo` imports a sample session".to_owned(),
        0 => "no sessions in the directories of agents".to_owned(),
        1 => "1 session of an agent on this machine".to_owned(),
        n => format!("{n} sessions of agents on this machine; new ones are being imported"),
    }
}

/// Logs to standard error. Logs never contain session text.
fn init_logging(format: LogFormat) {
    let filter = EnvFilter::try_from_env("NARROWS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// `narrows openapi`.
pub(crate) fn openapi() -> Result<(), CliError> {
    let document = narrows_server::openapi();
    let text = serde_json::to_string_pretty(&document).map_err(CliError::new)?;
    writeln!(io::stdout().lock(), "{text}").map_err(CliError::stdout)
}
