//! `narrows __supervise`: runs an agent, and ends all of its processes when the agent exits, the
//! parent exits, a limit is exceeded or a signal comes.
//!
//! The agent inherits the pipes of this process, which never reads or writes them.

#[cfg(unix)]
mod parent_watch;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "process_group.rs"]
mod process_tree;
#[cfg(target_os = "linux")]
mod process_tree;
#[cfg(unix)]
mod shutdown;

use crate::args::SuperviseArgs;
use std::io::Write;
use std::process::ExitCode;

/// The exit code of a shell for a program that cannot be started.
#[cfg(unix)]
const CANNOT_START: u8 = 126;
/// The exit code of a shell for a program that does not exist.
#[cfg(unix)]
const NOT_FOUND: u8 = 127;

/// Runs the agent; returns its exit code.
pub(crate) fn run(args: &SuperviseArgs) -> ExitCode {
    let (code, message) = supervise_blocking(args);
    // All processes of the agent have exited, so this is the last line on standard error.
    if let Some(message) = message {
        let _ = writeln!(std::io::stderr(), "narrows: {message}");
    }
    ExitCode::from(code)
}

#[cfg(not(unix))]
fn supervise_blocking(_: &SuperviseArgs) -> (u8, Option<String>) {
    (1, Some("cannot run agents on this system".to_owned()))
}

#[cfg(unix)]
fn supervise_blocking(args: &SuperviseArgs) -> (u8, Option<String>) {
    // Before anything is opened: the agent must not inherit file descriptors of the caller.
    close_fds::set_fds_cloexec(3, &[]);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return (CANNOT_START, Some(format!("cannot supervise the agent: {e}"))),
    };
    runtime.block_on(supervise(args)).unwrap_or_else(|(code, message)| (code, Some(message)))
}

#[cfg(unix)]
async fn supervise(args: &SuperviseArgs) -> Result<(u8, Option<String>), (u8, String)> {
    let cannot = |e: std::io::Error| (CANNOT_START, format!("cannot supervise the agent: {e}"));
    // Watch signals and the parent before the agent starts, so that none is missed.
    let mut signals = shutdown::ShutdownSignals::listen().map_err(cannot)?;
    let parent = parent_watch::ParentWatch::new(args.parent).map_err(cannot)?;
    process_tree::become_subreaper().map_err(cannot)?;
    if parent.is_gone() {
        return Err((
            CANNOT_START,
            "cannot start the agent: the parent process has exited".to_owned(),
        ));
    }
    let agent = start(&args.argv)?;
    let reason = shutdown::wait(agent, args, &parent, &mut signals).await;
    Ok(shutdown::terminate(agent, args, reason, &mut signals).await)
}

/// Starts the agent in a process group of its own, and closes this process's copies of its pipes.
#[cfg(unix)]
fn start(argv: &[std::ffi::OsString]) -> Result<rustix::process::Pid, (u8, String)> {
    use std::os::unix::process::CommandExt;
    let (program, arguments) =
        argv.split_first().ok_or((CANNOT_START, "no agent command given".to_owned()))?;
    let child = std::process::Command::new(program).args(arguments).process_group(0).spawn();
    let failed = |e: std::io::Error| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_START };
        (code, format!("cannot start {}: {e}", program.display()))
    };
    let child = child.map_err(failed)?;
    // When the agent closes a pipe, its other end must see that: no copy may stay open here.
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    if let Ok(null) = null {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    Ok(rustix::process::Pid::from_child(&child))
}
