//! HTTP client of the server that runs on a data directory.

use crate::error::CliError;
use narrows_server::api::Health;
use narrows_server::{Address, ErrorBody};
use narrows_store::{ADDRESS_FILE, DataDir, TOKEN_FILE};
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body, SendBody};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server, and the owner's token.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    url: String,
    token: String,
}

impl Client {
    /// Finds the server of a data directory; none if no process uses the directory.
    pub(crate) fn find(data: &Path) -> Result<Option<Client>, CliError> {
        let dir = DataDir::open(data).map_err(CliError::new)?;
        if !dir.is_in_use() {
            return Ok(None);
        }
        let no_server = || {
            CliError::new("cannot reach a server: another narrows command uses the data directory")
                .hint("try again")
        };
        let address = std::fs::read(data.join(ADDRESS_FILE)).map_err(|_| no_server())?;
        let address: Address = serde_json::from_slice(&address).map_err(|_| no_server())?;
        if address.url.starts_with("https:") {
            return Err(CliError::new("cannot connect to the running server: it requires TLS")
                .hint("use its API, or stop it first"));
        }
        let token = std::fs::read_to_string(data.join(TOKEN_FILE))
            .map_err(CliError::cannot("read the token file"))?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .proxy(None)
            .build();
        let agent = Agent::new_with_config(config);
        Ok(Some(Client { agent, url: address.url, token: token.trim().to_owned() }))
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// The health that the server reports; none if it does not answer.
    pub(crate) fn health(&self) -> Option<Health> {
        let mut response = self.agent.get(format!("{}/healthz", self.url)).call().ok()?;
        response.body_mut().read_json().ok()
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CliError> {
        let request =
            self.agent.get(format!("{}{path}", self.url)).header("authorization", self.bearer());
        parse(request.call())
    }

    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<T, CliError> {
        let request =
            self.agent.post(format!("{}{path}", self.url)).header("authorization", self.bearer());
        parse(request.send_json(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), CliError> {
        let request =
            self.agent.delete(format!("{}{path}", self.url)).header("authorization", self.bearer());
        check_status(request.call()).map(drop)
    }

    /// Posts a body of unknown length while it is read.
    pub(crate) fn post_stream<T: DeserializeOwned>(
        &self,
        path: &str,
        mut body: impl Read,
    ) -> Result<T, CliError> {
        let request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("authorization", self.bearer())
            .header("content-type", "application/x-ndjson");
        parse(request.send(SendBody::from_reader(&mut body)))
    }
}

fn check_status(response: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, CliError> {
    let mut response = response.map_err(server_error)?;
    if response.status().is_success() {
        return Ok(response);
    }
    Err(match response.body_mut().read_json::<ErrorBody>() {
        Ok(body) => server_error(body.error.message),
        Err(_) => server_error(response.status()),
    })
}

fn parse<T: DeserializeOwned>(
    response: Result<Response<Body>, ureq::Error>,
) -> Result<T, CliError> {
    check_status(response)?.body_mut().read_json().map_err(server_error)
}

fn server_error(error: impl std::fmt::Display) -> CliError {
    CliError::new(format!("server error: {error}"))
}

/// Percent-encodes a query value.
pub(crate) fn encode_query(text: &str) -> String {
    encode(text, b"-_.~/")
}

/// Percent-encodes one segment of a path.
pub(crate) fn encode_segment(text: &str) -> String {
    encode(text, b"-_.~")
}

fn encode(text: &str, unreserved: &[u8]) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || unreserved.contains(&b);
    text.bytes()
        .map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}
