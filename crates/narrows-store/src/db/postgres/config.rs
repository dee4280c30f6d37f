//! The address of a PostgreSQL server, TLS, and the settings of every connection.

use super::error::map_error;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How long a response may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Settings of every connection. A node that is paused within a transaction must not block other
/// writers for long, nor wait for them for long.
const SESSION_SETTINGS: &str = "SET client_encoding = 'UTF8'; SET lock_timeout = '2s';
    SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '5s'";

/// The address and TLS configuration of a server.
#[derive(Clone)]
pub(crate) struct PgConfig {
    config: Config,
    tls: Option<Arc<ClientConfig>>,
    pub(crate) response_timeout: Duration,
}

impl std::fmt::Debug for PgConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgAddress").field("hosts", &self.config.get_hosts()).finish_non_exhaustive()
    }
}

impl PgConfig {
    /// Parses `postgres://user@host:port/database?sslmode=…&sslrootcert=FILE`. Errors never contain
    /// the URL: it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<PgConfig> {
        let (url, root_file) = take_option(url, "sslrootcert");
        let bad = || Error::Invalid("cannot parse the PostgreSQL URL".to_owned());
        let mut config: Config = url.parse().map_err(|_| bad())?;
        if config.get_hosts().is_empty() {
            return Err(bad());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        // With several hosts, connects to the one that accepts writes after a failover.
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.tcp_user_timeout(RESPONSE_TIMEOUT).keepalives_idle(Duration::from_secs(10));
        if config.get_application_name().is_none() {
            config.application_name("narrows");
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(Arc::new(tls(root_file.as_deref())?)),
        };
        Ok(PgConfig { config, tls, response_timeout: RESPONSE_TIMEOUT })
    }

    pub(super) async fn connect(&self) -> Result<Client> {
        let failed = |error: &tokio_postgres::Error| {
            let (mapped, _) = map_error(error);
            // Without an error of the server, the cause of the connection error is reported.
            if error.as_db_error().is_none() && !error.is_closed() {
                return Error::Unavailable(format!(
                    "PostgreSQL cannot be reached: {}",
                    cause(error)
                ));
            }
            mapped
        };
        let client = if let Some(tls) = &self.tls {
            let tls = MakeRustlsConnect::new(ClientConfig::clone(tls));
            let (client, connection) = self.config.connect(tls).await.map_err(|e| failed(&e))?;
            tokio::spawn(connection);
            client
        } else {
            let (client, connection) = self.config.connect(NoTls).await.map_err(|e| failed(&e))?;
            tokio::spawn(connection);
            client
        };
        client.batch_execute(SESSION_SETTINGS).await.map_err(|e| map_error(&e).0)?;
        Ok(client)
    }
}

fn cause(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Removes an option from a URL and returns both.
fn take_option(url: &str, name: &str) -> (String, Option<String>) {
    let Some((before, options)) = url.split_once('?') else { return (url.to_owned(), None) };
    let mut found = None;
    let mut kept = Vec::new();
    for option in options.split('&') {
        match option.split_once('=') {
            Some((key, value)) if key == name => found = Some(value.to_owned()),
            _ => kept.push(option),
        }
    }
    let url =
        if kept.is_empty() { before.to_owned() } else { format!("{before}?{}", kept.join("&")) };
    (url, found)
}

/// Builds a TLS configuration that verifies certificates against the file `roots`, or else the
/// system's roots.
fn tls(root_file: Option<&str>) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = root_file {
        let bad = |why: &dyn std::fmt::Display| Error::Refused(format!("{file}: {why}"));
        let found = CertificateDer::pem_file_iter(file).map_err(|e| bad(&e))?;
        for cert in found {
            roots.add(cert.map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::Invalid(e.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_option_is_removed_from_url() {
        let take = |url| take_option(url, "sslrootcert");
        assert_eq!(take("a://b/c"), ("a://b/c".to_owned(), None));
        let (url, file) = take("a://b/c?sslmode=require&sslrootcert=/x.pem");
        assert_eq!((url.as_str(), file.as_deref()), ("a://b/c?sslmode=require", Some("/x.pem")));
        assert_eq!(take("a://b/c?sslrootcert=f"), ("a://b/c".to_owned(), Some("f".to_owned())));
    }

    #[test]
    fn invalid_url_is_rejected_without_quoting_it() {
        for url in ["postgres:/x", "hello", "postgres://u:secret@/db?nonsense=1"] {
            let told = PgConfig::parse(url).expect_err(url).to_string();
            assert!(!told.contains("secret"), "{told}");
        }
        assert!(PgConfig::parse("postgres://u@127.0.0.1:5432/db?sslmode=disable").is_ok());
    }
}
