//! The address of a PostgreSQL server, TLS, and the settings of every connection.

use super::error::trouble;
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
const PATIENCE: Duration = Duration::from_secs(15);
/// Settings of every connection. A node that is paused within a transaction must not block other
/// writers for long, nor wait for them for long.
const SETTINGS: &str = "SET client_encoding = 'UTF8'; SET lock_timeout = '2s';
    SET statement_timeout = '60s'; SET idle_in_transaction_session_timeout = '5s'";

/// The address and TLS configuration of a server.
#[derive(Clone)]
pub(crate) struct PgAddress {
    config: Config,
    tls: Option<Arc<ClientConfig>>,
    pub(crate) patience: Duration,
}

impl std::fmt::Debug for PgAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgAddress").field("hosts", &self.config.get_hosts()).finish_non_exhaustive()
    }
}

impl PgAddress {
    /// Parses `postgres://user@host:port/database?sslmode=…&sslrootcert=FILE`. Errors never contain
    /// the URL: it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<PgAddress> {
        let (url, roots) = take_option(url, "sslrootcert");
        let bad = || Error::Invalid("the address of PostgreSQL cannot be read".to_owned());
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
        config.tcp_user_timeout(PATIENCE).keepalives_idle(Duration::from_secs(10));
        if config.get_application_name().is_none() {
            config.application_name("narrows");
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(Arc::new(tls(roots.as_deref())?)),
        };
        Ok(PgAddress { config, tls, patience: PATIENCE })
    }

    pub(super) async fn connect(&self) -> Result<Client> {
        let failed = |error: &tokio_postgres::Error| {
            let (said, _) = trouble(error);
            // Without an error of the server, the cause of the connection error is reported.
            if error.as_db_error().is_none() && !error.is_closed() {
                return Error::Unavailable(format!(
                    "PostgreSQL cannot be reached: {}",
                    cause(error)
                ));
            }
            said
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
        client.batch_execute(SETTINGS).await.map_err(|e| trouble(&e).0)?;
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
fn tls(roots: Option<&str>) -> Result<ClientConfig> {
    let mut known = RootCertStore::empty();
    if let Some(file) = roots {
        let bad = |why: &dyn std::fmt::Display| Error::Refused(format!("{file}: {why}"));
        let found = CertificateDer::pem_file_iter(file).map_err(|e| bad(&e))?;
        for cert in found {
            known.add(cert.map_err(|e| bad(&e))?).map_err(|e| bad(&e))?;
        }
    } else {
        known.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::Invalid(e.to_string()))?;
    Ok(config.with_root_certificates(known).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_ours_is_taken_out_of_the_address() {
        let take = |url| take_option(url, "sslrootcert");
        assert_eq!(take("a://b/c"), ("a://b/c".to_owned(), None));
        let (url, file) = take("a://b/c?sslmode=require&sslrootcert=/x.pem");
        assert_eq!((url.as_str(), file.as_deref()), ("a://b/c?sslmode=require", Some("/x.pem")));
        assert_eq!(take("a://b/c?sslrootcert=f"), ("a://b/c".to_owned(), Some("f".to_owned())));
    }

    #[test]
    fn an_address_that_makes_no_sense_is_refused_without_being_told() {
        for url in ["postgres:/x", "hello", "postgres://u:secret@/db?nonsense=1"] {
            let told = PgAddress::parse(url).expect_err(url).to_string();
            assert!(!told.contains("secret"), "{told}");
        }
        assert!(PgAddress::parse("postgres://u@127.0.0.1:5432/db?sslmode=disable").is_ok());
    }
}
