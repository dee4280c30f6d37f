//! Talking to the server that runs on a data directory.

use crate::Fault;
use narrows_server::api::Health;
use narrows_server::{Address, ErrorBody};
use narrows_store::{ADDRESS_FILE, TOKEN_FILE};
use serde::de::DeserializeOwned;
use std::io::{Error, Read};
use std::path::Path;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body, SendBody};

/// A running server.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    url: String,
    token: String,
}

impl Client {
    /// The server of a data directory, if one runs.
    pub(crate) fn find(data: &Path) -> Result<Option<Client>, Fault> {
        let dir =
            narrows_store::DataDir::open(data).map_err(|e| Fault::new("")(Error::other(e)))?;
        if !dir.is_in_use() {
            return Ok(None);
        }
        let not_there = || {
            let what = "another narrows uses the data directory, but no server answers: try again";
            Fault::new("")(Error::other(what))
        };
        let address = std::fs::read(data.join(ADDRESS_FILE)).map_err(|_| not_there())?;
        let address: Address = serde_json::from_slice(&address).map_err(|_| not_there())?;
        if address.url.starts_with("https:") {
            let what = "the running server speaks TLS: use its API, or stop it first";
            return Err(Fault::new("")(Error::other(what)));
        }
        let token = std::fs::read_to_string(data.join(TOKEN_FILE)).map_err(Fault::new("token"))?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .proxy(None)
            .build();
        let agent = Agent::new_with_config(config);
        Ok(Some(Client { agent, url: address.url, token: token.trim().to_owned() }))
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// How it says that it is; none where it does not answer.
    pub(crate) fn health(&self) -> Option<Health> {
        let mut answer = self.agent.get(format!("{}/healthz", self.url)).call().ok()?;
        answer.body_mut().read_json().ok()
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        let request =
            self.agent.get(format!("{}{path}", self.url)).header("authorization", self.bearer());
        read(request.call())
    }

    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<T, Fault> {
        let request =
            self.agent.post(format!("{}{path}", self.url)).header("authorization", self.bearer());
        read(request.send_json(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), Fault> {
        let request =
            self.agent.delete(format!("{}{path}", self.url)).header("authorization", self.bearer());
        checked(request.call()).map(drop)
    }

    /// Sends a body as it comes.
    pub(crate) fn stream<T: DeserializeOwned>(
        &self,
        path: &str,
        mut body: impl Read,
    ) -> Result<T, Fault> {
        let request = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("authorization", self.bearer())
            .header("content-type", "application/x-ndjson");
        read(request.send(SendBody::from_reader(&mut body)))
    }
}

fn checked(answer: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, Fault> {
    let mut answer = answer.map_err(|e| Fault::new("server")(Error::other(e)))?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let told = answer.body_mut().read_json::<ErrorBody>();
    let what =
        told.map_or_else(|_| answer.status().to_string(), |body| body.error.message.into_owned());
    Err(Fault::new("server")(Error::other(what)))
}

fn read<T: DeserializeOwned>(answer: Result<Response<Body>, ureq::Error>) -> Result<T, Fault> {
    let mut answer = checked(answer)?;
    answer.body_mut().read_json().map_err(|e| Fault::new("server")(Error::other(e)))
}
