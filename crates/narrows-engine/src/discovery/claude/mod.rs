//! Session files of Claude Code: `home` finds sessions below its directories, `files` finds the files that
//! belong to one session.

mod files;
mod home;

pub use files::{SessionFiles, find};
pub(super) use home::ClaudeHome;
