//! Sockets, child processes and the files of agents: everything of narrows that touches the
//! outside world, but for the command line.

pub mod source;
