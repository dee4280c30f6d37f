//! The tokio runtime of a command, and the signals that it waits for.

use crate::error::CliError;
use std::io;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Builds the runtime. From then on, SIGXFSZ makes a write fail instead of ending the process.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = built.map_err(CliError::cannot("start the async runtime"))?;
    let entered = runtime.enter();
    // The handler stays installed for the life of the process.
    drop(file_size_signal().map_err(CliError::cannot("listen for signals"))?);
    drop(entered);
    Ok(runtime)
}

/// Waits for SIGTERM or SIGINT.
pub(crate) async fn wait_for_shutdown() -> io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Ok(())
}

/// Listens for SIGXFSZ: a file has reached the size limit of this process. Without a handler, the
/// signal ends the process silently.
pub(crate) fn file_size_signal() -> io::Result<Signal> {
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
}
