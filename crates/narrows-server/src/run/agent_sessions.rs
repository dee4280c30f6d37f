//! The sessions that an agent keeps by itself: listed and deleted, where it can.

use super::agents::Protocol;
use super::child::{Child, Line};
use super::folders::named_root;
use super::wanted::Wanted;
use super::{Refusal, Runs};
use narrows::sanitize::Mode;
use narrows::time::Time;
use narrows_store::{Error, Session, SourceMark};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use utoipa::ToSchema;

/// How long an agent may take to begin and to answer.
const PATIENCE: Duration = Duration::from_secs(45);
/// Sessions that are listed, and pages of them.
const MAX_SESSIONS: usize = 1000;
const MAX_PAGES: usize = 50;
/// Longest id of a session, in bytes.
const MAX_ID: usize = 512;
/// An agent that is asked has the machine for itself.
static ASKING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A session that an agent keeps by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSession {
    /// The agent's own id of it.
    pub id: String,
    /// What it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The last name of the folder in which it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When something happened in it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// Why nothing came of it.
#[derive(Debug)]
pub(crate) enum Unlisted {
    Refused(Refusal),
    /// The agent cannot do it.
    Unable(String),
    /// It could, and did not.
    Failed(String),
    /// It has no such session.
    Unknown(String),
}

impl From<Refusal> for Unlisted {
    fn from(refusal: Refusal) -> Self {
        Unlisted::Refused(refusal)
    }
}

/// An agent that was started to be asked something.
struct Talk {
    child: Child,
    next: u64,
    can: Value,
}

impl Runs {
    /// The sessions that an agent keeps; with `cwd`, those of that folder.
    pub(crate) async fn agent_sessions(
        &self,
        agent: &str,
        cwd: Option<&str>,
    ) -> Result<Vec<AgentSession>, Unlisted> {
        let cwd = cwd.map(named_root).transpose()?;
        self.with_agent(agent, "list", cwd.as_deref(), async |talk| {
            let (mut found, mut ids) = (Vec::new(), HashSet::new());
            talk.list(cwd.as_deref(), |told| {
                let told: Option<AgentSession> = self.session_told(told);
                found.extend(told.filter(|told| ids.insert(told.id.clone())));
                found.len() < MAX_SESSIONS
            })
            .await?;
            Ok(found)
        })
        .await
    }

    /// The folder in which an agent says that one of its sessions works.
    pub(crate) async fn agent_folder(&self, agent: &str, id: &str) -> Result<String, Unlisted> {
        let mut folder = None;
        self.with_agent(agent, "list", None, async |talk| {
            let mut left = MAX_SESSIONS;
            talk.list(None, |told| {
                left = left.saturating_sub(1);
                if told["sessionId"] == id {
                    folder = told["cwd"].as_str().map(str::to_owned);
                    left = 0;
                }
                left > 0
            })
            .await
        })
        .await?;
        folder.ok_or_else(|| Unlisted::Unknown("the agent lists no such session".to_owned()))
    }

    /// The session that narrows has of an agent's own one: one that is run, or what was recorded of it.
    pub(crate) async fn taken_up(
        &self,
        agent: &str,
        native: &str,
    ) -> Result<Option<(Session, bool)>, Refusal> {
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

    /// Starts the agent of a session before anything is said.
    pub(crate) async fn open(&self, session: &Session) -> Result<(), Refusal> {
        self.want(session, &Wanted::Open).await.map(drop)
    }

    /// Whether an agent's sessions can be taken up.
    pub(crate) fn takes_up(&self, agent: &str, native: &str) -> Result<(), Unlisted> {
        if self.agent(agent)?.protocol != Protocol::Acp {
            let what = format!("sessions of `{agent}` cannot be taken up by the agent's own id");
            return Err(Unlisted::Unable(what));
        }
        if !is_id(native) || native.starts_with('-') {
            let what = "`nativeId` is the agent's own id of a session".to_owned();
            return Err(Unlisted::Refused(Refusal::Store(Error::Invalid(what))));
        }
        Ok(())
    }

    /// Lets an agent forget one of its sessions. What narrows has of it stays.
    pub(crate) async fn delete_agent_session(&self, agent: &str, id: &str) -> Result<(), Unlisted> {
        self.with_agent(agent, "delete", None, async |talk| {
            talk.ask("session/delete", &json!({"sessionId": id})).await.map(drop)
        })
        .await
    }

    /// Starts an agent that can do something with sessions, and ends it afterwards.
    async fn with_agent<T>(
        &self,
        agent: &str,
        ability: &str,
        cwd: Option<&str>,
        work: impl AsyncFnOnce(&mut Talk) -> Result<T, Unlisted>,
    ) -> Result<T, Unlisted> {
        let spec = self.agent(agent)?;
        if spec.protocol != Protocol::Acp {
            let what =
                format!("`{agent}` is not spoken to by a protocol that can {ability} sessions");
            return Err(Unlisted::Unable(what));
        }
        let _alone = ASKING.lock().await;
        let place = cwd.map_or_else(std::env::temp_dir, PathBuf::from);
        let child = Child::start(spec, &[], &place, self.options()).map_err(Unlisted::Failed)?;
        let mut talk = Talk { child, next: 0, can: Value::Null };
        let done = tokio::time::timeout(PATIENCE, async {
            talk.begin().await?;
            if !talk.can[ability].is_object() {
                let what = format!("`{agent}` cannot {ability} sessions");
                return Err(Unlisted::Unable(what));
            }
            work(&mut talk).await
        });
        let done = done.await.unwrap_or_else(|_| {
            let what = format!("the agent did not answer within {} s", PATIENCE.as_secs());
            Err(Unlisted::Failed(what))
        });
        talk.child.stop().await;
        done
    }

    /// A session as an agent tells it, clean.
    fn session_told(&self, told: &Value) -> Option<AgentSession> {
        let id = told["sessionId"].as_str().filter(|id| is_id(id))?.to_owned();
        let cwd = told["cwd"].as_str().unwrap_or_default();
        let mut cleaner = self.inner.intake.cleaner(cwd);
        let mut clean = |text: &str| cleaner.text(text, Mode::Text).as_str().to_owned();
        let title = told["title"].as_str().map(str::trim).filter(|title| !title.is_empty());
        let title = title.map(&mut clean);
        let project = Path::new(cwd).file_name().and_then(|name| name.to_str()).map(&mut clean);
        let updated_at = told["updatedAt"].as_str().and_then(Time::parse);
        let updated_at = updated_at.map(|time| time.as_str().to_owned());
        Some(AgentSession { id, title, project, updated_at })
    }
}

/// Ids are shown as they are: they hold nothing but letters, digits and a few signs.
fn is_id(id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:@".contains(&b);
    !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(plain)
}

impl Talk {
    async fn begin(&mut self) -> Result<(), Unlisted> {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {
            "name": "narrows", "title": "narrows", "version": env!("CARGO_PKG_VERSION")}});
        let told = self.ask("initialize", &params).await?;
        self.can = told["agentCapabilities"]["sessionCapabilities"].clone();
        Ok(())
    }

    /// Lists sessions, page by page, until there are no more or enough of them.
    async fn list(
        &mut self,
        cwd: Option<&str>,
        mut more: impl FnMut(&Value) -> bool,
    ) -> Result<(), Unlisted> {
        let (mut cursor, mut known) = (Value::Null, HashSet::new());
        for _ in 0..MAX_PAGES {
            let mut params = json!({});
            if let Some(cwd) = cwd {
                params["cwd"] = json!(cwd);
            }
            if cursor.is_string() {
                params["cursor"] = cursor;
            }
            let page = self.ask("session/list", &params).await?;
            for told in page["sessions"].as_array().into_iter().flatten() {
                if !more(told) {
                    return Ok(());
                }
            }
            cursor = page["nextCursor"].clone();
            // Some pages lead back to others.
            let is_new = cursor.as_str().is_some_and(|cursor| known.insert(cursor.to_owned()));
            if !is_new {
                break;
            }
        }
        Ok(())
    }

    /// Asks, and waits for the answer. What the agent asks meanwhile is refused.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Unlisted> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        while let Some(lines) = self.child.lines().await {
            for line in lines {
                let Line::Text(text) = line else { continue };
                let Ok(message) = serde_json::from_slice::<Value>(&text) else { continue };
                if message["method"].is_string() {
                    if !message["id"].is_null() {
                        let error = json!({"code": -32601, "message": "narrows only asks"});
                        let id = &message["id"];
                        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                    }
                } else if message["id"] == id {
                    let error = &message["error"];
                    if error.is_null() {
                        return Ok(message["result"].clone());
                    }
                    let told = error["message"].as_str().unwrap_or("no reason given");
                    return Err(Unlisted::Failed(format!("the agent refuses: {told}")));
                }
            }
        }
        let words = self.child.last_words(3);
        Err(Unlisted::Failed(format!("the agent is gone. {words}").trim().to_owned()))
    }

    fn send(&self, message: &Value) -> Result<(), Unlisted> {
        let sent = self.child.send(&message.to_string());
        let what = || Unlisted::Failed("the agent does not read what it is told".to_owned());
        if sent { Ok(()) } else { Err(what()) }
    }
}
