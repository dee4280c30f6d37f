//! Sockets and child processes.
