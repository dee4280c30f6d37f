//! `narrows keep`: runs an agent, and lets nothing of it outlive this process or its parent.
//!
//! The agent has the pipes of this process, which never reads or writes them.

#[cfg(unix)]
mod ending;
#[cfg(unix)]
mod parent;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "keep/group.rs"]
mod tree;

use crate::args::KeeperArgs;
use std::io::Write;
use std::process::ExitCode;

/// What a shell says of a program that it could not start.
#[cfg(unix)]
const NOT_STARTED: u8 = 126;
/// What a shell says of a program that is not there.
#[cfg(unix)]
const NOT_FOUND: u8 = 127;

/// Starts the agent, waits for an end, ends what is left, and leaves with the agent's code.
pub(crate) fn run(args: &KeeperArgs) -> ExitCode {
    let (code, words) = kept(args);
    // All others who wrote here are gone, so this is the last line and nobody cuts it.
    if let Some(words) = words {
        let _ = writeln!(std::io::stderr(), "narrows: {words}");
    }
    ExitCode::from(code)
}

#[cfg(not(unix))]
fn kept(_: &KeeperArgs) -> (u8, Option<String>) {
    (1, Some("agents cannot be run on this system".to_owned()))
}

#[cfg(unix)]
fn kept(args: &KeeperArgs) -> (u8, Option<String>) {
    // Before anything else is opened: what came with this process is not for the agent.
    close_fds::set_fds_cloexec(3, &[]);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return (NOT_STARTED, Some(format!("cannot keep an agent: {e}"))),
    };
    runtime.block_on(keep(args)).unwrap_or_else(|(code, words)| (code, Some(words)))
}

#[cfg(unix)]
async fn keep(args: &KeeperArgs) -> Result<(u8, Option<String>), (u8, String)> {
    let cannot = |e: std::io::Error| (NOT_STARTED, format!("cannot keep an agent: {e}"));
    // Signals and the parent are watched before there is anything to end.
    let mut told = ending::Told::new().map_err(cannot)?;
    let parent = parent::Parent::new(args.parent).map_err(cannot)?;
    tree::adopt().map_err(cannot)?;
    if parent.is_gone() {
        return Err((NOT_STARTED, "whoever started it is gone".to_owned()));
    }
    let agent = start(&args.argv)?;
    let why = ending::wait(agent, args, &parent, &mut told).await;
    Ok(ending::end(agent, args, why, &mut told).await)
}

/// Starts the agent in a group of its own, and lets go of its pipes.
#[cfg(unix)]
fn start(argv: &[std::ffi::OsString]) -> Result<rustix::process::Pid, (u8, String)> {
    use std::os::unix::process::CommandExt;
    let (program, words) =
        argv.split_first().ok_or((NOT_STARTED, "there is nothing to start".to_owned()))?;
    let child = std::process::Command::new(program).args(words).process_group(0).spawn();
    let failed = |e: std::io::Error| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
        (code, format!("cannot start {}: {e}", program.display()))
    };
    let child = child.map_err(failed)?;
    // An agent that closes its pipes has closed them: no copy is left here.
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    if let Ok(nothing) = nothing {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
    Ok(rustix::process::Pid::from_child(&child))
}
