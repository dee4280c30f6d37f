//! JSON-RPC: requests, responses and notifications of both sides.

use super::elicitation::is_elicitation;
use super::fields::MessageFields;
use super::permission::decide;
use super::{AcpParser, MessageSender, content, session_info};
use crate::adapter::output::AdapterOutput;
use crate::adapter::stop_notice;
use crate::json::{Json, Kind};
use crate::model::event::{Body, ErrorEvent, SessionUpdate, TurnEnd, UnknownPacket, Usage};
use crate::model::time::Time;
use crate::sanitize::{Raw, Tree};
use std::borrow::Cow;

/// The error code of a request that its sender cancelled.
const CANCELLED: i64 = -32800;

/// A request of the client that awaits its response.
#[derive(Debug, Default)]
pub(super) struct ClientRequest {
    method: Box<str>,
    time: Option<Time>,
}

/// The number of directories that are read besides the working directory.
const MAX_ADDITIONAL_DIRS: usize = 16;

impl AcpParser {
    /// Handles a request or a notification.
    pub(super) fn request(
        &mut self,
        method: &str,
        object: Json<'_>,
        f: &MessageFields<'_>,
        sender: MessageSender,
        out: &mut AdapterOutput,
    ) {
        let params = f.params();
        let get = |name: &str| params.and_then(|p| p.get(name));
        if method == "session/update" {
            return match get("update").filter(|u| u.kind() == Kind::Object) {
                Some(update) => self.update(update, &MessageFields::read(update), out),
                None => unknown(method, object, out),
            };
        }
        let id = f.id().and_then(Json::scalar).map(|id| self.scoped_id(id));
        if let Some(id) = &id {
            if is_client_method(method) {
                if sender != MessageSender::Agent {
                    let request = ClientRequest { method: method.into(), time: out.time.clone() };
                    let (entry, is_new) = self.client_requests.get_or_insert(id);
                    *entry = request;
                    if method == "session/prompt" {
                        self.prompt_time = None;
                        self.has_restored_prompt = false;
                    } else {
                        self.open_requests += u32::from(is_new);
                    }
                }
            } else if method != "session/request_permission" && !is_elicitation(method) {
                self.open_requests += u32::from(self.other_requests.get_or_insert(id).1);
            }
        }
        if method == "initialize" && sender != MessageSender::Agent {
            // The first request to a new process: the requests of earlier ones are gone.
            self.cancel_permissions(|_| true, out);
        }
        match method {
            "session/prompt" => prompt(get("prompt"), out),
            "session/request_permission" => {
                self.permission_request(id.as_deref().unwrap_or_default(), params, out);
            }
            _ if is_elicitation(method) => {
                self.elicitation_request(id.as_deref().unwrap_or_default(), params, out);
            }
            "session/new" | "session/load" | "session/resume" => {
                let native_id = get("sessionId").and_then(Json::str).map(Raw::new);
                let cwd = get("cwd").and_then(Json::str).map(Raw::new);
                // The working directory comes first: the project is named after it.
                let dirs = get("additionalDirectories").into_iter().flat_map(Json::items);
                let mut dirs = dirs.filter_map(Json::str).take(MAX_ADDITIONAL_DIRS).peekable();
                if dirs.peek().is_some() {
                    out.add_working_dirs(cwd.clone().into_iter().chain(dirs.map(Raw::new)));
                }
                if cwd.is_some() || native_id.is_some() {
                    let info = SessionUpdate { cwd, native_id, ..SessionUpdate::default() };
                    out.push(Body::SessionInfo(Box::new(info)));
                }
            }
            "$/cancel_request" => self.cancel_request(get("requestId"), sender, out),
            "session/set_mode" => session_info::mode(get("modeId"), out),
            "session/set_model" => session_info::model(get("modelId"), out),
            _ if is_client_method(method) || is_hidden_agent_method(method) => out.ignore(),
            _ => unknown(method, object, out),
        }
    }

    /// Makes a request id unique in the session: by the name that the recorder assigned, or by the
    /// agent process, as every process numbers its requests from the start.
    pub(super) fn scoped_id<'a>(&self, id: Cow<'a, str>) -> Cow<'a, str> {
        match (&self.request_name, &self.process) {
            (Some(name), _) => name.to_string().into(),
            (None, Some(process)) => format!("{process}.{id}").into(),
            (None, None) => id,
        }
    }

    /// Whether the id of this message is that of an open request of the client.
    pub(super) fn is_client_request(&self, f: &MessageFields<'_>) -> bool {
        let id = f.id().and_then(Json::scalar);
        id.is_some_and(|id| self.client_requests.contains_key(&self.scoped_id(id)))
    }

    /// Handles the response to a request of either side.
    pub(super) fn response(
        &mut self,
        object: Json<'_>,
        f: &MessageFields<'_>,
        sender: MessageSender,
        out: &mut AdapterOutput,
    ) {
        let id = self.scoped_id(f.id().and_then(Json::scalar).unwrap_or_default());
        let get = |name: &str| f.result().and_then(|r| r.get(name));
        // The ids of the two sides overlap: when the sender is unknown, the shape decides.
        let is_other = self.other_requests.remove(&id).is_some();
        self.open_requests = self.open_requests.saturating_sub(u32::from(is_other));
        let to_agent = match sender {
            MessageSender::Client => true,
            MessageSender::Agent => false,
            MessageSender::Unknown => {
                get("outcome").is_some() || (is_other && !self.client_requests.contains_key(&id))
            }
        };
        // The response to a form has an action.
        let fits_form =
            sender == MessageSender::Client || get("action").is_some() || f.error().is_some();
        if sender != MessageSender::Agent && fits_form && self.close_form(&id, f.result(), out) {
            return;
        }
        if to_agent {
            let permission = self.permissions.remove(&id);
            let is_open = u32::from(permission.is_some());
            self.open_requests = self.open_requests.saturating_sub(is_open);
            return match (permission, get("outcome")) {
                (Some(permission), Some(outcome)) => decide(&id, permission, Some(outcome), out),
                // An error in place of an outcome is not a permission.
                (Some(permission), None) if f.error().is_some() => {
                    decide(&id, permission, None, out);
                }
                _ => out.ignore(),
            };
        }
        let request = self.client_requests.remove(&id);
        let method = request.as_ref().map(|r| &*r.method);
        let is_counted = method.is_some_and(|m| m != "session/prompt");
        self.open_requests = self.open_requests.saturating_sub(u32::from(is_counted));
        if let Some(error) = f.error() {
            if method == Some("session/prompt")
                && error.get("code").and_then(Json::i64) == Some(CANCELLED)
            {
                self.close_compactions(true, out);
                self.open_requests = 0;
                let start = request.as_ref().and_then(|r| r.time.as_ref());
                let duration_ms =
                    out.time.as_ref().zip(start).and_then(|(end, start)| end.since(start));
                let stop_reason = Some(Raw::new("cancelled"));
                let end = TurnEnd { stop_reason, duration_ms, ..turn_end(None, None) };
                out.push(Body::PromptResponse(Box::new(end)));
                return;
            }
            let is_minor = method.is_some_and(|m| {
                !matches!(m, "session/prompt" | "session/new" | "session/load" | "session/resume")
            });
            if is_minor {
                out.ignore();
                return;
            }
            out.push(Body::Error(Box::new(failure(error, error.get("data")))));
            return;
        }
        let has_reason = get("stopReason").is_some();
        // A restart forgets to which request a bare response belongs: only the prompt was open.
        let is_bare = |r: Json<'_>| r.is_empty() || r.fields().any(|(key, _)| key == "stopReason");
        let ends_restored_prompt =
            method.is_none() && self.has_restored_prompt && f.result().is_none_or(is_bare);
        // The response to a prompt ends its turn, whatever it contains.
        if has_reason
            || sender == MessageSender::Agent
                && (method == Some("session/prompt") || ends_restored_prompt)
        {
            self.has_restored_prompt = false;
            let restored = self.prompt_time.take().filter(|_| request.is_none());
            let start = request.as_ref().and_then(|r| r.time.as_ref()).or(restored.as_ref());
            let duration_ms =
                out.time.as_ref().zip(start).and_then(|(end, start)| end.since(start));
            self.close_compactions(true, out);
            // Requests that are open at the end of the turn will not be answered.
            self.open_requests = 0;
            push_stop_notice(f.result(), out);
            if !has_reason {
                out.push(Body::Notice(stop_notice::missing_reason()));
            }
            out.push(Body::PromptResponse(Box::new(turn_end(f.result(), duration_ms))));
            return;
        }
        match (f.result(), method) {
            (Some(result), Some("initialize")) => session_info::agent(result, out),
            (Some(result), Some("session/new" | "session/load" | "session/resume")) => {
                session_info::session(result, out);
            }
            (Some(result), Some("session/set_config_option")) => session_info::config(result, out),
            (Some(result), None) if result.get("agentInfo").is_some() => {
                session_info::agent(result, out)
            }
            (Some(result), None) if result.get("sessionId").is_some() => {
                session_info::session(result, out);
            }
            (Some(result), None) if !result.is_empty() && result.get("sessions").is_none() => {
                unknown("response", object, out);
            }
            _ => out.ignore(),
        }
    }
}

/// Parses an error packet or the error of a response.
pub(super) fn failure(error: Json<'_>, details: Option<Json<'_>>) -> ErrorEvent<Raw> {
    let code = error.get("code").filter(|c| !matches!(c.kind(), Kind::Object | Kind::Array));
    let quoted = |json: Json<'_>| match json.kind() {
        Kind::String => Tree::checked(&format!("\"{}\"", json.raw())),
        _ => Tree::checked(json.raw()),
    };
    let message = error.get("message").map(|m| m.str().unwrap_or_else(|| m.raw().into()));
    // Rate limits and overload are temporary; other client errors are not.
    let retryable = code.and_then(Json::i64).and_then(|code| match code {
        408 | 429 | 500..=599 => Some(true),
        400..=499 => Some(false),
        _ => None,
    });
    ErrorEvent {
        message: Raw::new(message.unwrap_or_default()),
        code: code.map(quoted),
        details: details.map(quoted),
        retryable,
        is_end: false,
    }
}

/// Emits a notice if the turn ended at a limit or was refused.
pub(super) fn push_stop_notice(result: Option<Json<'_>>, out: &mut AdapterOutput) {
    let reason = result.and_then(|r| r.any(&["stopReason", "stop_reason"])).and_then(Json::str);
    if let Some(note) = reason.and_then(|reason| stop_notice::notice_for(&reason)) {
        out.push(Body::Notice(note));
    }
}

/// Parses the end of a turn from a response or an update.
pub(super) fn turn_end(result: Option<Json<'_>>, duration_ms: Option<u64>) -> TurnEnd<Raw> {
    let get = |names: &[&str]| result.and_then(|r| r.any(names));
    let stop = get(&["stopReason", "stop_reason"]).and_then(Json::scalar);
    let count = |json: Json<'_>, names: &[&str]| json.any(names).and_then(Json::u64);
    let quota = result.and_then(|r| r.path(&["_meta", "quota", "token_count"]));
    let usage = get(&["usage"]).or(quota).filter(|u| !u.is_empty()).map(|u| Usage {
        input_tokens: count(u, &["inputTokens", "input_tokens"]),
        output_tokens: count(u, &["outputTokens", "output_tokens"]),
        total_tokens: count(u, &["totalTokens", "total_tokens"]),
        cached_read_tokens: count(u, &["cachedReadTokens", "cached_read_tokens"]),
        cached_write_tokens: count(u, &["cachedWriteTokens", "cached_write_tokens"]),
        thought_tokens: count(u, &["thoughtTokens", "thought_tokens"]),
        ..Usage::default()
    });
    let stop_reason = stop.map(Raw::new);
    TurnEnd { stop_reason, usage, duration_ms, ..TurnEnd::default() }
}

/// Emits a message of an unknown kind.
pub(super) fn unknown(kind: &str, object: Json<'_>, out: &mut AdapterOutput) {
    let tree = Some(Tree::checked(object.raw()));
    out.push(Body::Unknown(UnknownPacket { kind: Raw::new(kind), tree }));
}

/// Whether a client sends requests of this method.
fn is_client_method(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "authenticate"
            | "logout"
            | "session/new"
            | "session/load"
            | "session/resume"
            | "session/list"
            | "session/fork"
            | "session/close"
            | "session/delete"
            | "session/cancel"
            | "session/prompt"
            | "session/set_mode"
            | "session/set_model"
            | "session/set_config_option"
    )
}

/// Whether an agent sends requests of this method that are not part of the transcript.
fn is_hidden_agent_method(method: &str) -> bool {
    matches!(method, "elicitation/complete" | "notifications/elicitation/complete")
        || method.starts_with("fs/")
        || method.starts_with("terminal/")
        || method == "_auth/status_update"
}

/// Emits a prompt of the client.
pub(super) fn prompt(prompt: Option<Json<'_>>, out: &mut AdapterOutput) {
    let parts = content::content_parts(prompt, out);
    if parts.text.is_empty() && parts.images.is_empty() {
        out.ignore();
        return;
    }
    out.push(Body::UserMessage(crate::model::event::UserMessage {
        text: Raw::new(parts.text),
        images: parts.images,
        origin: crate::model::event::PromptOrigin::Client,
        block_id: None,
        whole: false,
    }));
}
