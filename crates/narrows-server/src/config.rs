//! How a server is started, and what it refuses.

use crate::web_ui::WebAssets;
use http::HeaderValue;
use narrows_store::Retention;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use utoipa::ToSchema;

/// Maximum number of subscriptions of one socket.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 64;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The data directory.
    pub data: PathBuf,
    /// The PostgreSQL that holds the record, where several nodes share it.
    pub store: Option<String>,
    /// The NATS by which nodes wake each other.
    pub bus: Option<String>,
    /// Where to listen.
    pub bind: SocketAddr,
    /// More names by which the server is called.
    pub hosts: Vec<String>,
    /// Pages of other origins that may use it.
    pub origins: Vec<String>,
    /// A certificate and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// A proxy in front of it speaks TLS.
    pub behind_proxy: bool,
    /// What is allowed at most.
    pub limits: Limits,
    /// What is kept.
    pub retention: Retention,
    /// Where sessions of agents are found and followed; none when they are not.
    pub sources: Option<narrows_engine::discovery::SourceOptions>,
    /// What a browser is shown.
    pub page: WebAssets,
    /// How agents are run.
    pub run: narrows_engine::run::RunOptions,
}

/// What is allowed at most.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of a request's body, but for packets.
    pub body_bytes: usize,
    /// Bytes of one packet.
    pub packet_bytes: usize,
    /// Seconds without a byte after which a body is given up. Blank lines count.
    pub body_idle_seconds: u64,
    /// Connections at once.
    pub connections: usize,
    /// Streams at once.
    pub streams: usize,
    /// Streams of one token.
    pub streams_per_token: usize,
    /// Subscriptions of one socket.
    pub subscriptions_per_socket: usize,
    /// Sessions that are exported at once.
    pub exports: usize,
    /// Bytes of one message from a socket's client.
    pub message_bytes: usize,
    /// Items of one page.
    pub page_items: usize,
    /// Sessions of one page.
    pub page_sessions: usize,
    /// Hits of one page.
    pub page_hits: usize,
    /// Characters of a text in a list of items; longer ones are cut and named.
    pub preview_characters: usize,
    /// Seconds that a reader may stop before it is cut off.
    pub stalled_seconds: u64,
    /// Seconds in which a request's head must be there.
    pub head_seconds: u64,
    /// Bytes of the store, if it is limited.
    pub store_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 1 << 20,
            packet_bytes: narrows_engine::ingest::MAX_LINE,
            body_idle_seconds: 120,
            connections: 20_000,
            streams: 20_000,
            streams_per_token: 256,
            subscriptions_per_socket: MAX_SUBSCRIPTIONS,
            exports: 4,
            message_bytes: 64 << 10,
            page_items: 500,
            page_sessions: 200,
            page_hits: 100,
            preview_characters: 16 << 10,
            stalled_seconds: 30,
            head_seconds: 10,
            store_bytes: None,
        }
    }
}

impl Default for ServeConfig {
    fn default() -> Self {
        ServeConfig {
            data: PathBuf::new(),
            store: None,
            bus: None,
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7878),
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            behind_proxy: false,
            limits: Limits::default(),
            retention: Retention::default(),
            sources: None,
            page: WebAssets::embedded(),
            run: narrows_engine::run::RunOptions::default(),
        }
    }
}

impl ServeConfig {
    /// Refuses what would let strangers in, and says what to do instead.
    pub fn check(&self) -> Result<(), String> {
        if !self.bind.ip().is_loopback() {
            if self.tls.is_none() && !self.behind_proxy {
                return Err(format!(
                    "{} can be reached from other machines, and tokens would travel in the open: \
                     give --tls-cert and --tls-key, or put a proxy with TLS in front of it and say \
                     --behind-proxy, or bind 127.0.0.1",
                    self.bind
                ));
            }
            if self.hosts.is_empty() {
                return Err(format!(
                    "{} is reached by a name: say which with --host narrows.example.com",
                    self.bind
                ));
            }
        }
        if self.bus.is_some() && self.store.is_none() {
            return Err("--bus is for nodes that share a store: name it with --store".to_owned());
        }
        if self.store.is_some() && self.sources.is_some() {
            return Err("a store that nodes share is not filled from the files of one machine: \
                 leave `follow` out, and send sessions with `narrows ingest`"
                .to_owned());
        }
        for origin in &self.origins {
            let plain = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            if !plain.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', ' '])) {
                return Err(format!("`{origin}` is no origin: write https://app.example.com"));
            }
        }
        Ok(())
    }

    /// Whether browsers reach it by TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.tls.is_some() || self.behind_proxy
    }

    /// Whether this is a name of the server.
    pub(crate) fn allows_host(&self, host: &str) -> bool {
        let port = self.bind.port();
        let (name, given) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port)),
            _ => (host, None),
        };
        let known = |known: &String| {
            let with_port = known.contains(':') && !known.ends_with(']');
            known.eq_ignore_ascii_case(if with_port { host } else { name })
        };
        if self.hosts.iter().any(known) {
            return true;
        }
        let names = ["localhost", "127.0.0.1", "[::1]"];
        let local = self.bind.ip().is_loopback()
            && names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let usual = if self.tls.is_some() { 443 } else { 80 };
        local && given.map_or(port == usual, |given| given == port.to_string())
    }

    /// Whether pages of this origin may use the server.
    pub(crate) fn allows_origin(&self, origin: &HeaderValue) -> bool {
        self.origins.iter().any(|o| o.as_bytes() == origin.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_answered() {
        let config =
            ServeConfig { hosts: vec!["narrows.example".to_owned()], ..ServeConfig::default() };
        for host in [
            "localhost:7878",
            "LOCALHOST:7878",
            "127.0.0.1:7878",
            "[::1]:7878",
            "narrows.example",
            "NARROWS.example:443",
        ] {
            assert!(config.allows_host(host), "{host}");
        }
        for host in [
            "",
            "evil.com",
            "localhost",
            "localhost:1",
            "localhost:+7878",
            "localhost:07878",
            "localhost.:7878",
            "127.0.0.1.evil.com:7878",
            "evil.com:7878",
        ] {
            assert!(!config.allows_host(host), "{host}");
        }
    }

    #[test]
    fn a_name_without_a_port_means_the_usual_one() {
        let bind = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let plain = ServeConfig { bind: bind(80), ..ServeConfig::default() };
        let tls = Some((PathBuf::new(), PathBuf::new()));
        let secure = ServeConfig { bind: bind(443), tls, ..ServeConfig::default() };
        assert!(plain.allows_host("localhost") && plain.allows_host("localhost:80"));
        assert!(secure.allows_host("localhost") && secure.allows_host("localhost:443"));
        for host in ["localhost:x", "localhost:", "localhost:99999", "localhost:443"] {
            assert!(!plain.allows_host(host), "{host}");
        }
        assert!(!secure.allows_host("localhost:80"));
    }

    #[test]
    fn a_bind_that_others_reach_is_refused() {
        let open =
            ServeConfig { bind: "0.0.0.0:80".parse().expect("address"), ..ServeConfig::default() };
        assert!(open.check().expect_err("refused").contains("--tls-cert"));
        let proxied = ServeConfig { behind_proxy: true, ..open.clone() };
        assert!(proxied.check().expect_err("refused").contains("--host"));
        let named = ServeConfig { hosts: vec!["n.example".to_owned()], ..proxied };
        assert!(named.check().is_ok());
        let star = ServeConfig { origins: vec!["*".to_owned()], ..ServeConfig::default() };
        assert!(star.check().is_err());
    }
}
