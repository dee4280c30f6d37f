//! Live sessions of coding agents, without HTTP: `live` publishes durable rows to subscribers, `ingest`
//! turns packets into rows of the log, `discovery` reads the session files of this machine and `run`
//! drives agent processes. `live` imports no other module, `ingest` imports `live` alone.

pub mod live;

pub mod ingest;

pub mod discovery;
pub mod run;
