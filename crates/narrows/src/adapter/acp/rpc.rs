//! JSON-RPC: requests, answers and notifications of both sides.

use super::elicitation::is_elicitation;
use super::fields::Fields;
use super::{Acp, From, content, info};
use crate::adapter::{Yield, stops};
use crate::event::{Answer, Ask, Body, Choice, Decision, Failure, Info, Response, Unknown, Usage};
use crate::json::{Json, Kind};
use crate::sanitize::{Raw, Tree};
use crate::time::Time;
use std::borrow::Cow;

/// The error of a request that was cancelled by whoever asked.
const CANCELLED: i64 = -32800;

/// A request of the client.
#[derive(Debug, Default)]
pub(super) struct Asked {
    method: Box<str>,
    time: Option<Time>,
}

/// A request of the agent for leave.
#[derive(Debug, Default)]
pub(super) struct Leave {
    pub(super) call: String,
    /// Ids, names and kinds of the answers on offer.
    pub(super) options: Vec<(String, String, String)>,
}

/// Folders beside the working directory that are read.
const MAX_FOLDERS: usize = 16;

impl Acp {
    /// A request or a notification.
    pub(super) fn call(
        &mut self,
        method: &str,
        object: Json<'_>,
        f: &Fields<'_>,
        from: From,
        out: &mut Yield,
    ) {
        let params = f.params();
        let get = |name: &str| params.and_then(|p| p.get(name));
        if method == "session/update" {
            return match get("update").filter(|u| u.kind() == Kind::Object) {
                Some(update) => self.update(update, &Fields::read(update), out),
                None => unknown(method, object, out),
            };
        }
        let id = f.id().and_then(Json::scalar).map(|id| self.own(id));
        if let Some(id) = &id {
            if is_clients(method) {
                if from != From::Agent {
                    let asked = Asked { method: method.into(), time: out.time.clone() };
                    let (place, new) = self.asked.open(id);
                    *place = asked;
                    if method == "session/prompt" {
                        self.prompted = None;
                    } else {
                        self.waiting += u32::from(new);
                    }
                }
            } else if method != "session/request_permission" && !is_elicitation(method) {
                self.waiting += u32::from(self.others.open(id).1);
            }
        }
        if method == "initialize" && from != From::Agent {
            // A process is told this first.
            self.withdraw(|_| true, out);
        }
        match method {
            "session/prompt" => prompt(get("prompt"), out),
            "session/request_permission" => {
                self.ask_leave(id.as_deref().unwrap_or_default(), params, out);
            }
            _ if is_elicitation(method) => {
                self.elicit(id.as_deref().unwrap_or_default(), params, out);
            }
            "session/new" | "session/load" | "session/resume" => {
                let native_id = get("sessionId").and_then(Json::str).map(Raw::new);
                let cwd = get("cwd").and_then(Json::str).map(Raw::new);
                // The working directory is the first of them: the project is called after it.
                let beside = get("additionalDirectories").into_iter().flat_map(Json::items);
                let mut roots = beside.filter_map(Json::str).take(MAX_FOLDERS).peekable();
                if roots.peek().is_some() {
                    out.roots.extend(cwd.clone().into_iter().chain(roots.map(Raw::new)));
                }
                if cwd.is_some() || native_id.is_some() {
                    let info = Info { cwd, native_id, ..Info::default() };
                    out.push(Body::SessionInfo(Box::new(info)));
                }
            }
            "$/cancel_request" => self.take_back(get("requestId"), from, out),
            "session/set_mode" => info::mode(get("modeId"), out),
            "session/set_model" => info::model(get("modelId"), out),
            _ if is_clients(method) || is_agents(method) => out.quiet += 1,
            _ => unknown(method, object, out),
        }
    }

    /// The id of a request among those of all processes of the session.
    fn own<'a>(&self, id: Cow<'a, str>) -> Cow<'a, str> {
        match (&self.named, &self.run) {
            (Some(named), _) => named.to_string().into(),
            (None, Some(run)) => format!("{run}.{id}").into(),
            (None, None) => id,
        }
    }

    /// Whether the client has asked something with the id of this message.
    pub(super) fn was_asked(&self, f: &Fields<'_>) -> bool {
        f.id().and_then(Json::scalar).is_some_and(|id| self.asked.has(&self.own(id)))
    }

    /// The agent asks leave for a call: the call as it is now, then the question.
    fn ask_leave(&mut self, id: &str, params: Option<Json<'_>>, out: &mut Yield) {
        let call = params.and_then(|p| p.any(&["toolCall", "tool_call"]));
        let Some(call) = call.filter(|c| c.kind() == Kind::Object) else {
            if let Some(params) = params {
                unknown("session/request_permission", params, out);
            }
            return;
        };
        let f = Fields::read(call);
        let call_id = self.tool(&f, super::tool::Said::ForLeave, out);
        let list = params.and_then(|p| p.get("options"));
        let options: Vec<_> = list
            .into_iter()
            .flat_map(Json::items)
            .filter(|o| o.kind() == Kind::Object)
            .take(64)
            .map(|o| {
                let text = |names: &[&str]| {
                    o.any(names).and_then(Json::scalar).unwrap_or_default().into_owned()
                };
                (text(&["optionId", "option_id"]), text(&["name"]), text(&["kind"]))
            })
            .collect();
        let choices = options
            .iter()
            .map(|(id, name, kind)| Choice {
                option_id: Raw::new(id.as_str()),
                name: Raw::new(name.as_str()),
                kind: Raw::new(kind.as_str()),
            })
            .collect();
        out.push(Body::PermissionRequest(Box::new(Ask {
            request_id: Raw::new(id),
            tool_call_id: Raw::new(call_id.as_str()),
            title: f.title().and_then(Json::str).map(Raw::new),
            options: choices,
            call: None,
        })));
        let (place, new) = self.leave.open(id);
        *place = Leave { call: call_id, options };
        self.waiting += u32::from(new);
    }

    /// The agent takes a request of its own back: there is nothing left to answer.
    fn take_back(&mut self, id: Option<Json<'_>>, from: From, out: &mut Yield) {
        out.quiet += 1;
        let Some(id) = id.and_then(Json::scalar).map(|id| self.own(id)) else { return };
        if from == From::Client || self.elicited(&id, None, out) {
            return;
        }
        if let Some(leave) = self.leave.take(&id) {
            self.waiting = self.waiting.saturating_sub(1);
            leave_given(&id, leave, None, out);
        }
    }

    /// Requests for leave that nobody waits for any more: their process is gone.
    pub(super) fn withdraw(&mut self, is_gone: impl Fn(&str) -> bool, out: &mut Yield) {
        for id in self.leave.keys(|_| true) {
            if is_gone(&id)
                && let Some(leave) = self.leave.take(&id)
            {
                self.waiting = self.waiting.saturating_sub(1);
                leave_given(&id, leave, None, out);
            }
        }
    }

    /// An answer to a request of either side.
    pub(super) fn answer(&mut self, object: Json<'_>, f: &Fields<'_>, from: From, out: &mut Yield) {
        let id = self.own(f.id().and_then(Json::scalar).unwrap_or_default());
        let get = |name: &str| f.result().and_then(|r| r.get(name));
        // Ids of the two sides overlap: where nobody tells who answers, the shape does.
        let other = self.others.take(&id).is_some();
        self.waiting = self.waiting.saturating_sub(u32::from(other));
        let to_agent = match from {
            From::Client => true,
            From::Agent => false,
            From::Unknown => get("outcome").is_some() || (other && !self.asked.has(&id)),
        };
        // A form is filled in by an answer with an action.
        let fills = from == From::Client || get("action").is_some() || f.error().is_some();
        if from != From::Agent && fills && self.elicited(&id, f.result(), out) {
            return;
        }
        if to_agent {
            let leave = self.leave.take(&id);
            self.waiting = self.waiting.saturating_sub(u32::from(leave.is_some()));
            return match (leave, get("outcome")) {
                (Some(leave), Some(outcome)) => leave_given(&id, leave, Some(outcome), out),
                // Refused to answer is not leave.
                (Some(leave), None) if f.error().is_some() => leave_given(&id, leave, None, out),
                _ => out.quiet += 1,
            };
        }
        let asked = self.asked.take(&id);
        let method = asked.as_ref().map(|a| &*a.method);
        let other = method.is_some_and(|m| m != "session/prompt");
        self.waiting = self.waiting.saturating_sub(u32::from(other));
        if let Some(error) = f.error() {
            if method == Some("session/prompt")
                && error.get("code").and_then(Json::i64) == Some(CANCELLED)
            {
                self.end_compactions(true, out);
                self.waiting = 0;
                let began = asked.as_ref().and_then(|a| a.time.as_ref());
                let duration_ms =
                    out.time.as_ref().zip(began).and_then(|(end, start)| end.since(start));
                let stop_reason = Some(Raw::new("cancelled"));
                let end = Response { stop_reason, duration_ms, ..response(None, None) };
                out.push(Body::PromptResponse(Box::new(end)));
                return;
            }
            let minor = method.is_some_and(|m| {
                !matches!(m, "session/prompt" | "session/new" | "session/load" | "session/resume")
            });
            if minor {
                out.quiet += 1;
                return;
            }
            out.push(Body::Error(Box::new(failure(error, error.get("data")))));
            return;
        }
        let told = get("stopReason").is_some();
        // Whatever is said of it, the answer to a prompt is its end.
        if told || from == From::Agent && method == Some("session/prompt") {
            let before = self.prompted.take().filter(|_| asked.is_none());
            let began = asked.as_ref().and_then(|a| a.time.as_ref()).or(before.as_ref());
            let duration = out.time.as_ref().zip(began).and_then(|(end, start)| end.since(start));
            self.end_compactions(true, out);
            // Who has not answered by now will not.
            self.waiting = 0;
            cut_off(f.result(), out);
            if !told {
                out.push(Body::Notice(stops::unnamed()));
            }
            out.push(Body::PromptResponse(Box::new(response(f.result(), duration))));
            return;
        }
        match (f.result(), method) {
            (Some(result), Some("initialize")) => info::agent(result, out),
            (Some(result), Some("session/new" | "session/load" | "session/resume")) => {
                info::session(result, out);
            }
            (Some(result), Some("session/set_config_option")) => info::config(result, out),
            (Some(result), None) if result.get("agentInfo").is_some() => info::agent(result, out),
            (Some(result), None) if result.get("sessionId").is_some() => {
                info::session(result, out);
            }
            (Some(result), None) if !result.is_empty() && result.get("sessions").is_none() => {
                unknown("response", object, out);
            }
            _ => out.quiet += 1,
        }
    }
}

fn leave_given(id: &str, leave: Leave, outcome: Option<Json<'_>>, out: &mut Yield) {
    let chosen = outcome.and_then(|o| o.any(&["optionId", "option_id"])).and_then(Json::scalar);
    let option = chosen.as_deref().and_then(|id| leave.options.iter().find(|o| o.0 == id));
    let word = outcome.and_then(|o| o.str().or_else(|| o.text("outcome")));
    let decision = match word.as_deref() {
        Some("selected") => match option.map(|o| o.2.as_str()) {
            Some(kind) if kind.starts_with("reject") => Decision::Rejected,
            Some(_) => Decision::Allowed,
            None if chosen.as_deref().is_some_and(|c| c.contains("reject")) => Decision::Rejected,
            None => Decision::Allowed,
        },
        _ => Decision::Cancelled,
    };
    out.push(Body::PermissionAnswer(Box::new(Answer {
        request_id: Raw::new(id),
        tool_call_id: Raw::new(leave.call),
        decision,
        option_id: chosen.as_deref().map(Raw::new),
        option: option.map(|o| Raw::new(o.1.as_str())),
        waited_ms: None,
    })));
}

/// An error packet or the error of an answer.
pub(super) fn failure(error: Json<'_>, details: Option<Json<'_>>) -> Failure<Raw> {
    let code = error.get("code").filter(|c| !matches!(c.kind(), Kind::Object | Kind::Array));
    let quoted = |json: Json<'_>| match json.kind() {
        Kind::String => Tree::checked(&format!("\"{}\"", json.raw())),
        _ => Tree::checked(json.raw()),
    };
    let message = error.get("message").map(|m| m.str().unwrap_or_else(|| m.raw().into()));
    // Rate limits and overload pass; what the provider refused stays refused.
    let retryable = code.and_then(Json::i64).and_then(|code| match code {
        408 | 429 | 500..=599 => Some(true),
        400..=499 => Some(false),
        _ => None,
    });
    Failure {
        message: Raw::new(message.unwrap_or_default()),
        code: code.map(quoted),
        details: details.map(quoted),
        retryable,
        is_end: false,
    }
}

/// A turn that ended at a limit, or was refused, says so.
pub(super) fn cut_off(result: Option<Json<'_>>, out: &mut Yield) {
    let stop = result.and_then(|r| r.any(&["stopReason", "stop_reason"])).and_then(Json::str);
    if let Some(note) = stop.and_then(|stop| stops::mark(&stop)) {
        out.push(Body::Notice(note));
    }
}

/// The end of a turn, from an answer or a packet.
pub(super) fn response(result: Option<Json<'_>>, duration_ms: Option<u64>) -> Response<Raw> {
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
    Response { stop_reason, usage, duration_ms, ..Response::default() }
}

/// A message of a kind that nobody modelled.
pub(super) fn unknown(kind: &str, object: Json<'_>, out: &mut Yield) {
    let tree = Some(Tree::checked(object.raw()));
    out.push(Body::Unknown(Unknown { kind: Raw::new(kind), tree }));
}

/// Requests that a client sends.
fn is_clients(method: &str) -> bool {
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

/// Requests that an agent sends and that are no part of the transcript.
fn is_agents(method: &str) -> bool {
    matches!(method, "elicitation/complete" | "notifications/elicitation/complete")
        || method.starts_with("fs/")
        || method.starts_with("terminal/")
        || method == "_auth/status_update"
}

/// What somebody asked.
pub(super) fn prompt(prompt: Option<Json<'_>>, out: &mut Yield) {
    let words = content::words(prompt, out);
    if words.text.is_empty() && words.images.is_empty() {
        out.quiet += 1;
        return;
    }
    out.push(Body::UserMessage(crate::event::Message {
        text: Raw::new(words.text),
        images: words.images,
        origin: crate::event::Origin::Client,
        block_id: None,
        whole: false,
    }));
}
