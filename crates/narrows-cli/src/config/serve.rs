//! Where things are, and how a server is started: command line, environment, config file.

use crate::Fault;
use crate::args::{DataArgs, HideArgs, KeepArgs, ServeArgs, size};
use crate::hide::{serve_file, sources_file};
use crate::running::run_options;
use narrows_server::source::SourceOptions;
use narrows_server::{Limits, ServeConfig};
use narrows_store::Retention;
use serde::Deserialize;
use std::env;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// The `[serve]` section of the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServeFile {
    bind: Option<SocketAddr>,
    data: Option<PathBuf>,
    store: Option<String>,
    bus: Option<String>,
    hosts: Vec<String>,
    allow_origins: Vec<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    behind_proxy: bool,
    keep_days: Option<u32>,
    keep_bytes: Option<String>,
    keep_tags: Vec<String>,
    max_store: Option<String>,
    limits: LimitsFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsFile {
    body_bytes: Option<usize>,
    body_idle_seconds: Option<u64>,
    connections: Option<usize>,
    streams: Option<usize>,
    streams_per_token: Option<usize>,
    stalled_seconds: Option<u64>,
    preview_characters: Option<usize>,
}

/// The `[sources]` section of the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SourcesFile {
    follow: Option<bool>,
    claude_dirs: Vec<PathBuf>,
    exclude: Vec<PathBuf>,
    poll: bool,
}

/// Where sessions of this machine are looked for; none when they are not to be.
pub(crate) fn sources(hide: &HideArgs) -> Result<Option<SourceOptions>, Fault> {
    let file = sources_file(hide)?;
    let given = |name: &str| env::var_os(name).filter(|p| !p.is_empty());
    let home = given("HOME").map(PathBuf::from);
    let full = |path: PathBuf| match (path.strip_prefix("~"), &home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    };
    let mut claude_dirs: Vec<PathBuf> = file.claude_dirs.into_iter().map(full).collect();
    if claude_dirs.is_empty()
        && let Some(dirs) = given("CLAUDE_CONFIG_DIR")
    {
        let dirs = dirs.to_string_lossy().into_owned();
        claude_dirs = dirs.split(',').map(|d| full(PathBuf::from(d.trim()))).collect();
    }
    if file.follow == Some(false) {
        return Ok(None);
    }
    let exclude = file.exclude.into_iter().map(full).collect();
    Ok(Some(SourceOptions { home, claude_dirs, exclude, poll: file.poll, silence: None }))
}

/// The data directory.
pub(crate) fn data_dir(args: &DataArgs) -> Result<PathBuf, Fault> {
    if let Some(data) = &args.data {
        return Ok(data.clone());
    }
    let given = |name: &str| env::var_os(name).filter(|p| !p.is_empty()).map(PathBuf::from);
    let home = || given("HOME").map(|home| home.join(".local/share"));
    let base = given("XDG_DATA_HOME").or_else(home).ok_or_else(|| {
        let what = "there is no home directory: name a data directory with --data";
        Fault::new("")(Error::new(ErrorKind::NotFound, what))
    })?;
    Ok(base.join("narrows"))
}

/// What is kept.
pub(crate) fn retention(keep: &KeepArgs, tag: Option<String>) -> Retention {
    Retention {
        max_age: keep.keep_days.map(|days| i64::from(days) * DAY_MS),
        max_bytes: keep.keep_bytes,
        tag,
        keep_tags: keep.keep_tag.clone(),
    }
}

/// How the server is started.
pub(crate) fn serve_config(args: &ServeArgs) -> Result<ServeConfig, Fault> {
    let file = serve_file(&args.hide)?;
    let bytes = |text: Option<String>| -> Result<Option<u64>, Fault> {
        let read = text.map(|t| size(&t)).transpose();
        read.map_err(|e| Fault::new("config file")(Error::new(ErrorKind::InvalidData, e)))
    };
    let either = |typed: &Vec<String>, file: Vec<String>| {
        if typed.is_empty() { file } else { typed.clone() }
    };
    let data = match (&args.data.data, file.data) {
        (None, Some(data)) => data,
        _ => data_dir(&args.data)?,
    };
    let keep = KeepArgs {
        keep_days: args.keep.keep_days.or(file.keep_days),
        keep_bytes: args.keep.keep_bytes.or(bytes(file.keep_bytes)?),
        keep_tag: either(&args.keep.keep_tag, file.keep_tags),
    };
    let store = args.store.clone().or(file.store);
    let sources = match (args.no_follow, &store) {
        (true, _) => None,
        (false, None) => sources(&args.hide)?,
        // What is on this machine is not what other nodes see: only when it is asked for, to be refused.
        (false, Some(_)) if sources_file(&args.hide)?.follow == Some(true) => sources(&args.hide)?,
        (false, Some(_)) => None,
    };
    let bind = args.bind.or(file.bind).unwrap_or_else(|| ServeConfig::default().bind);
    let hosts = either(&args.host, file.hosts);
    let behind_proxy = args.behind_proxy || file.behind_proxy;
    // A server that others reach gives agents only what their lists name.
    let own = bind.ip().is_loopback() && !behind_proxy && hosts.is_empty() && store.is_none();
    let run = run_options(&args.hide, &data, args.allow_run, own)?;
    let usual = Limits::default();
    let limits = file.limits;
    let streams_per_token = args.streams_per_token.or(limits.streams_per_token);
    Ok(ServeConfig {
        data,
        store,
        bus: args.bus.clone().or(file.bus),
        bind,
        hosts,
        origins: either(&args.allow_origin, file.allow_origins),
        tls: args.tls_cert.clone().or(file.tls_cert).zip(args.tls_key.clone().or(file.tls_key)),
        behind_proxy,
        retention: retention(&keep, None),
        sources,
        page: narrows_server::Page::embedded(),
        run,
        limits: Limits {
            body_bytes: limits.body_bytes.unwrap_or(usual.body_bytes),
            body_idle_seconds: limits.body_idle_seconds.unwrap_or(usual.body_idle_seconds),
            connections: limits.connections.unwrap_or(usual.connections),
            streams: limits.streams.unwrap_or(usual.streams),
            streams_per_token: streams_per_token.unwrap_or(usual.streams_per_token),
            stalled_seconds: limits.stalled_seconds.unwrap_or(usual.stalled_seconds),
            preview_characters: limits.preview_characters.unwrap_or(usual.preview_characters),
            store_bytes: args.max_store.or(bytes(file.max_store)?),
            ..usual
        },
    })
}
