//! How a server is started, and what it retains.

use super::file::{ConfigFile, invalid};
use super::{data_dir, run, sources};
use crate::args::{RetentionArgs, ServeArgs, parse_size};
use crate::error::CliError;
use narrows_server::{Limits, ServeConfig};
use narrows_store::Retention;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// The `[serve]` section of the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServeSection {
    bind: Option<SocketAddr>,
    data: Option<PathBuf>,
    store: Option<String>,
    bus: Option<String>,
    hosts: Vec<String>,
    allow_origins: Vec<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    behind_proxy: bool,
    retain_days: Option<u32>,
    retain_bytes: Option<String>,
    retain_tags: Vec<String>,
    max_store_bytes: Option<String>,
    limits: LimitsSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsSection {
    body_bytes: Option<usize>,
    body_idle_seconds: Option<u64>,
    connections: Option<usize>,
    streams: Option<usize>,
    streams_per_token: Option<usize>,
    stalled_seconds: Option<u64>,
    preview_characters: Option<usize>,
}

/// What is retained; `tag` limits deletion to sessions with this tag.
pub(crate) fn retention(args: &RetentionArgs, tag: Option<String>) -> Retention {
    Retention {
        max_age: args.retain_days.map(|days| i64::from(days) * DAY_MS),
        max_bytes: args.retain_bytes,
        tag,
        keep_tags: args.retain_tag.clone(),
    }
}

/// How the server is started.
pub(crate) fn serve_config(args: &ServeArgs) -> Result<ServeConfig, CliError> {
    let file = ConfigFile::load(&args.redaction)?;
    let (run_section, agents) = (file.run, file.agents);
    let (section, sources) = (file.serve, file.sources);
    let bytes = |text: Option<String>| text.map(|t| parse_size(&t)).transpose().map_err(invalid);
    let either = |option: &Vec<String>, file: Vec<String>| {
        if option.is_empty() { file } else { option.clone() }
    };
    let data = match (&args.data.data, section.data) {
        (None, Some(data)) => data,
        _ => data_dir(&args.data)?,
    };
    let retain = RetentionArgs {
        retain_days: args.retention.retain_days.or(section.retain_days),
        retain_bytes: args.retention.retain_bytes.or(bytes(section.retain_bytes)?),
        retain_tag: either(&args.retention.retain_tag, section.retain_tags),
    };
    let store = args.store.clone().or(section.store);
    // Nodes that share a store do not import what one of them has on its disk. An explicit
    // `follow = true` is passed on, so that the server refuses it.
    let follows = !args.no_follow && (store.is_none() || sources.follow == Some(true));
    let sources = if follows { sources::from_section(sources) } else { None };
    let bind = args.bind.or(section.bind).unwrap_or_else(|| ServeConfig::default().bind);
    let hosts = either(&args.host, section.hosts);
    let behind_proxy = args.behind_proxy || section.behind_proxy;
    let is_private =
        bind.ip().is_loopback() && !behind_proxy && hosts.is_empty() && store.is_none();
    let run = run::from_section(&run_section, agents, &data, args.allow_run, is_private)?;
    let defaults = Limits::default();
    let limits = section.limits;
    let streams_per_token = args.streams_per_token.or(limits.streams_per_token);
    Ok(ServeConfig {
        data,
        store,
        bus: args.bus.clone().or(section.bus),
        bind,
        hosts,
        origins: either(&args.allow_origin, section.allow_origins),
        tls: args
            .tls_cert
            .clone()
            .or(section.tls_cert)
            .zip(args.tls_key.clone().or(section.tls_key)),
        behind_proxy,
        retention: retention(&retain, None),
        sources,
        page: narrows_server::Page::embedded(),
        run,
        limits: Limits {
            body_bytes: limits.body_bytes.unwrap_or(defaults.body_bytes),
            body_idle_seconds: limits.body_idle_seconds.unwrap_or(defaults.body_idle_seconds),
            connections: limits.connections.unwrap_or(defaults.connections),
            streams: limits.streams.unwrap_or(defaults.streams),
            streams_per_token: streams_per_token.unwrap_or(defaults.streams_per_token),
            stalled_seconds: limits.stalled_seconds.unwrap_or(defaults.stalled_seconds),
            preview_characters: limits.preview_characters.unwrap_or(defaults.preview_characters),
            store_bytes: args.max_store_bytes.or(bytes(section.max_store_bytes)?),
            ..defaults
        },
    })
}
