//! Sessions that an agent stores itself: listing and deleting them, where the agent supports it.

use super::agents::Protocol;
use super::child::{AgentLine, Child};
use super::request::RunRequest;
use super::workspace::validate_root;
use super::{RunError, Runs};
use narrows::sanitize::Mode;
use narrows::time::Time;
use narrows_store::{Error, Session, SourceMark};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an agent may take to start and answer.
const AGENT_TIMEOUT: Duration = Duration::from_secs(45);
/// Sessions and pages of a listing.
const MAX_SESSIONS: usize = 1000;
const MAX_PAGES: usize = 50;
/// Longest session id, in bytes.
const MAX_ID_BYTES: usize = 512;
/// One agent is queried at a time.
static CONNECTION_LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A session that an agent stores itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentSession {
    /// The agent's own session id.
    pub id: String,
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The last component of its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When it was last active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// Why a query of an agent's sessions failed.
#[derive(Debug)]
pub enum AgentSessionError {
    Refused(RunError),
    /// The agent does not support it.
    Unable(String),
    /// The agent failed to do it.
    Failed(String),
    /// The agent has no such session.
    Unknown(String),
}

impl From<RunError> for AgentSessionError {
    fn from(refusal: RunError) -> Self {
        AgentSessionError::Refused(refusal)
    }
}

/// A connection to an agent that was started only for a query.
struct AgentConnection {
    child: Child,
    next: u64,
    capabilities: Value,
}

impl Runs {
    /// Lists the sessions that an agent stores; with `cwd`, only those of that directory.
    pub async fn agent_sessions(
        &self,
        agent: &str,
        cwd: Option<&str>,
    ) -> Result<Vec<AgentSession>, AgentSessionError> {
        let cwd = cwd.map(validate_root).transpose()?;
        self.with_agent(agent, "list", cwd.as_deref(), async |connection| {
            let (mut found, mut ids) = (Vec::new(), HashSet::new());
            connection
                .list(cwd.as_deref(), |answer| {
                    let answer: Option<AgentSession> = self.parse_session(answer);
                    found.extend(answer.filter(|answer| ids.insert(answer.id.clone())));
                    found.len() < MAX_SESSIONS
                })
                .await?;
            Ok(found)
        })
        .await
    }

    /// Returns the working directory that an agent reports for one of its sessions.
    pub async fn agent_folder(&self, agent: &str, id: &str) -> Result<String, AgentSessionError> {
        let mut folder = None;
        self.with_agent(agent, "list", None, async |connection| {
            let mut left = MAX_SESSIONS;
            connection
                .list(None, |answer| {
                    left = left.saturating_sub(1);
                    if answer["sessionId"] == id {
                        folder = answer["cwd"].as_str().map(str::to_owned);
                        left = 0;
                    }
                    left > 0
                })
                .await
        })
        .await?;
        folder
            .ok_or_else(|| AgentSessionError::Unknown("the agent lists no such session".to_owned()))
    }

    /// Finds the narrows session of an agent's own session id, and whether it is a run (`true`) or a
    /// recording.
    pub async fn taken_up(
        &self,
        agent: &str,
        native: &str,
    ) -> Result<Option<(Session, bool)>, RunError> {
        let mut recorded = None;
        for (session, run) in self.inner.store.runs_of_native(native).await? {
            match run {
                Some(run) if run.agent == agent => return Ok(Some((session, true))),
                Some(_) => {}
                None if recorded.is_none() => {
                    let sources = self.inner.store.sources(session.key).await?;
                    let acp =
                        |s: &SourceMark| s.format.as_deref() == Some("acp") && s.path.is_none();
                    let is_recorded = sources.iter().find(|s| s.number == 0).is_some_and(acp);
                    recorded = Some(session).filter(|_| is_recorded);
                }
                None => {}
            }
        }
        Ok(recorded.map(|session| (session, false)))
    }

    /// Starts the agent of a session before the first message.
    pub async fn open(&self, session: &Session) -> Result<(), RunError> {
        self.request(session, &RunRequest::Open).await.map(drop)
    }

    /// Checks whether a session of an agent can be resumed.
    pub fn takes_up(&self, agent: &str, native: &str) -> Result<(), AgentSessionError> {
        if self.agent(agent)?.protocol != Protocol::Acp {
            let what = format!("sessions of `{agent}` cannot be resumed by the agent's session id");
            return Err(AgentSessionError::Unable(what));
        }
        if !is_id(native) || native.starts_with('-') {
            let what = "`nativeId` must be the agent's own session id".to_owned();
            return Err(AgentSessionError::Refused(RunError::Store(Error::Invalid(what))));
        }
        Ok(())
    }

    /// Deletes one of the agent's sessions. What narrows stored of it stays.
    pub async fn delete_agent_session(
        &self,
        agent: &str,
        id: &str,
    ) -> Result<(), AgentSessionError> {
        self.with_agent(agent, "delete", None, async |connection| {
            connection.call("session/delete", &json!({"sessionId": id})).await.map(drop)
        })
        .await
    }

    /// Starts an agent that has this session capability, runs a query and stops it.
    async fn with_agent<T>(
        &self,
        agent: &str,
        ability: &str,
        cwd: Option<&str>,
        work: impl AsyncFnOnce(&mut AgentConnection) -> Result<T, AgentSessionError>,
    ) -> Result<T, AgentSessionError> {
        let spec = self.agent(agent)?;
        if spec.protocol != Protocol::Acp {
            let what = format!("`{agent}` uses a protocol that cannot {ability} sessions");
            return Err(AgentSessionError::Unable(what));
        }
        let _alone = CONNECTION_LOCK.lock().await;
        let cwd = cwd.map_or_else(std::env::temp_dir, PathBuf::from);
        let child =
            Child::start(spec, &[], &cwd, self.options()).map_err(AgentSessionError::Failed)?;
        let mut connection = AgentConnection { child, next: 0, capabilities: Value::Null };
        let done = tokio::time::timeout(AGENT_TIMEOUT, async {
            connection.begin().await?;
            if !connection.capabilities[ability].is_object() {
                let what = format!("`{agent}` cannot {ability} sessions");
                return Err(AgentSessionError::Unable(what));
            }
            work(&mut connection).await
        });
        let done = done.await.unwrap_or_else(|_| {
            let what = format!("the agent did not answer within {} s", AGENT_TIMEOUT.as_secs());
            Err(AgentSessionError::Failed(what))
        });
        connection.child.stop().await;
        done
    }

    /// Parses and redacts a session of a listing.
    fn parse_session(&self, answer: &Value) -> Option<AgentSession> {
        let id = answer["sessionId"].as_str().filter(|id| is_id(id))?.to_owned();
        let cwd = answer["cwd"].as_str().unwrap_or_default();
        let mut cleaner = self.inner.ingest.cleaner(cwd);
        let mut clean = |text: &str| cleaner.text(text, Mode::Text).as_str().to_owned();
        let title = answer["title"].as_str().map(str::trim).filter(|title| !title.is_empty());
        let title = title.map(&mut clean);
        let project = Path::new(cwd).file_name().and_then(|name| name.to_str()).map(&mut clean);
        let updated_at = answer["updatedAt"].as_str().and_then(Time::parse);
        let updated_at = updated_at.map(|time| time.as_str().to_owned());
        Some(AgentSession { id, title, project, updated_at })
    }
}

/// Ids are shown without redaction, so they may only hold letters, digits and a few signs.
fn is_id(id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:@".contains(&b);
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain)
}

impl AgentConnection {
    async fn begin(&mut self) -> Result<(), AgentSessionError> {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {
            "name": "narrows", "title": "narrows", "version": env!("CARGO_PKG_VERSION")}});
        let answer = self.call("initialize", &params).await?;
        self.capabilities = answer["agentCapabilities"]["sessionCapabilities"].clone();
        Ok(())
    }

    /// Lists sessions page by page, until `more` returns false or there are no more.
    async fn list(
        &mut self,
        cwd: Option<&str>,
        mut more: impl FnMut(&Value) -> bool,
    ) -> Result<(), AgentSessionError> {
        let (mut cursor, mut seen_cursors) = (Value::Null, HashSet::new());
        for _ in 0..MAX_PAGES {
            let mut params = json!({});
            if let Some(cwd) = cwd {
                params["cwd"] = json!(cwd);
            }
            if cursor.is_string() {
                params["cursor"] = cursor;
            }
            let page = self.call("session/list", &params).await?;
            for answer in page["sessions"].as_array().into_iter().flatten() {
                if !more(answer) {
                    return Ok(());
                }
            }
            cursor = page["nextCursor"].clone();
            // Some agents return cursors that lead in a circle.
            let is_new =
                cursor.as_str().is_some_and(|cursor| seen_cursors.insert(cursor.to_owned()));
            if !is_new {
                break;
            }
        }
        Ok(())
    }

    /// Sends a request and waits for its response. Requests of the agent are refused meanwhile.
    async fn call(&mut self, method: &str, params: &Value) -> Result<Value, AgentSessionError> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        while let Some(lines) = self.child.lines().await {
            for line in lines {
                let AgentLine::Text(text) = line else { continue };
                let Ok(message) = serde_json::from_slice::<Value>(&text) else { continue };
                if message["method"].is_string() {
                    if !message["id"].is_null() {
                        let error = json!({"code": -32601, "message": "this client does not serve requests"});
                        let id = &message["id"];
                        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                    }
                } else if message["id"] == id {
                    let error = &message["error"];
                    if error.is_null() {
                        return Ok(message["result"].clone());
                    }
                    let answer = error["message"].as_str().unwrap_or("no reason given");
                    return Err(AgentSessionError::Failed(format!(
                        "the agent reported an error: {answer}"
                    )));
                }
            }
        }
        let words = self.child.stderr_tail(3);
        Err(AgentSessionError::Failed(format!("the agent is gone. {words}").trim().to_owned()))
    }

    fn send(&self, message: &Value) -> Result<(), AgentSessionError> {
        let sent = self.child.send(&message.to_string());
        let what = || AgentSessionError::Failed("the agent does not read its input".to_owned());
        if sent { Ok(()) } else { Err(what()) }
    }
}
