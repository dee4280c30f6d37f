//! One socket, several subscriptions.

use super::client_message::{ClientMessage, Subscribe, WsView};
use super::lifetime::{CloseReason, Heartbeat, HeartbeatAction, closed};
use super::permission_reply::{AnswerMessage, submit};
use crate::auth::{Grant, StreamPermit};
use crate::config::MAX_SUBSCRIPTIONS;
use crate::poll_on_wake::PollOnWake;
use crate::state::AppState;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use futures_util::SinkExt;
use futures_util::stream::{
    AbortHandle, Abortable, BoxStream, SelectAll, SplitSink, StreamExt, unfold,
};
use narrows_engine::live::{
    After, Filter, Output, SessionListFollower, Subscription, TextFrames, View, Wire,
};
use narrows_store::{Error, ListFilter, Result, Session};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The server asks for a sign of life, and waits for it.
const PING_INTERVAL: Duration = Duration::from_secs(25);
const PONG_TIMEOUT: Duration = Duration::from_secs(8);
/// Sessions on the first page of the list.
const SESSION_PAGE_SIZE: usize = 100;

/// Something that can be followed.
#[derive(Debug)]
enum StreamSource {
    Session(Box<Subscription>),
    List(Box<SessionListFollower>),
}

impl StreamSource {
    async fn next(&mut self, name: &str) -> Result<Option<Output>> {
        match self {
            StreamSource::Session(subscription) => subscription.next().await,
            StreamSource::List(list) => {
                // Not a part of every subscription that waits.
                let frames = Box::pin(list.next()).await?;
                let named = |data: String| {
                    let mut value: serde_json::Value =
                        serde_json::from_str(&data).unwrap_or_default();
                    value["subscription"] = name.into();
                    value.to_string()
                };
                let frames: TextFrames = frames.into_iter().map(named).collect();
                Ok(Some(Output::Messages(Arc::new(frames))))
            }
        }
    }
}

/// What a subscription tells, until it is over.
type SubscriptionOutput = (Arc<str>, Result<Option<Output>>);

struct Socket {
    app: AppState,
    grant: Grant,
    sink: SplitSink<WebSocket, Message>,
    /// What each subscription follows, by its session's id and label, and how to stop it.
    active: HashMap<String, (AbortHandle, Option<Session>)>,
    followed: SelectAll<Abortable<BoxStream<'static, SubscriptionOutput>>>,
    count: u64,
}

/// Serves a socket until one side has had enough.
pub(crate) async fn serve(socket: WebSocket, app: AppState, grant: Grant, permit: StreamPermit) {
    let mut end = PollOnWake::new(closed(&app.hub, permit));
    let (sink, mut incoming) = socket.split();
    let mut socket =
        Socket { app, grant, sink, active: HashMap::new(), followed: SelectAll::new(), count: 0 };
    let mut heartbeat = Heartbeat::new(PING_INTERVAL, PONG_TIMEOUT);
    let why = loop {
        let done = tokio::select! {
            biased;
            over = &mut end => break (
                if over == CloseReason::Revoked { 4001 } else { 1001 },
                over.reason(),
            ),
            // Before the heartbeat: an answer that is there counts, however late it is looked at.
            message = incoming.next() => {
                heartbeat.on_message();
                match message {
                    None | Some(Ok(Message::Close(_))) => return,
                    Some(Err(_)) => break (1009, "message too large or broken"),
                    // Not a part of every socket that waits: it is large, and seldom needed.
                    Some(Ok(Message::Text(text))) => Box::pin(socket.text(&text)).await,
                    Some(Ok(Message::Binary(_))) => {
                        socket.error("INVALID_MESSAGE", "messages are text", None).await
                    }
                    Some(Ok(_)) => Ok(()),
                }
            }
            beat = heartbeat.next() => match beat {
                HeartbeatAction::Ping => socket.sink.send(Message::Ping(Bytes::new())).await,
                HeartbeatAction::Dead => break (4008, "no sign of life"),
            },
            Some((name, next)) = socket.followed.next(), if !socket.followed.is_empty() => {
                let began = Instant::now();
                let sent = socket.forward(&name, next).await;
                heartbeat.exclude_since(began);
                sent
            }
        };
        if done.is_err() {
            return;
        }
    };
    let (code, reason) = why;
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    let _ = tokio::time::timeout(PONG_TIMEOUT, socket.sink.send(close)).await;
}

/// A text message; one that is not UTF-8, which the engine never makes, is repaired.
fn text(bytes: &Bytes) -> Utf8Bytes {
    let text = Utf8Bytes::try_from(bytes.clone());
    text.unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
}

impl Socket {
    async fn text(&mut self, text: &str) -> std::result::Result<(), axum::Error> {
        let value: serde_json::Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) => return self.error("PARSE_ERROR", "the message is not JSON", None).await,
        };
        match serde_json::from_value(value) {
            Err(e) => {
                self.error("INVALID_MESSAGE", &format!("the message is not known: {e}"), None).await
            }
            Ok(ClientMessage::Ping) => self.send(json!({"type": "pong"})).await,
            Ok(ClientMessage::Answer(answer)) => self.answer(*answer).await,
            Ok(ClientMessage::Subscribe(subscribe)) => self.subscribe(*subscribe).await,
            Ok(ClientMessage::Unsubscribe { subscription, work_order_id, session_id }) => {
                let of = session_id.or(work_order_id);
                self.unsubscribe(subscription, of).await
            }
        }
    }

    async fn answer(&mut self, answer: AnswerMessage) -> std::result::Result<(), axum::Error> {
        let (session, request) = (answer.session_id.clone(), answer.request_id.clone());
        let mut reply = match submit(&self.app, &self.grant, answer).await {
            Ok(()) => json!({"type": "answered"}),
            Err(error) => {
                let (code, message) = error.code_and_message();
                json!({"type": "error", "code": code, "message": message})
            }
        };
        (reply["sessionId"], reply["requestId"]) = (session.into(), request.into());
        self.send(reply).await
    }

    async fn subscribe(&mut self, subscribe: Subscribe) -> std::result::Result<(), axum::Error> {
        let name = match subscribe.subscription.clone() {
            Some(name) => name,
            None => loop {
                self.count += 1;
                let name = self.count.to_string();
                if !self.active.contains_key(&name) {
                    break name;
                }
            },
        };
        if name.len() > 64 || self.active.contains_key(&name) {
            let what = "the subscription's name is taken or longer than 64 bytes";
            return self.error("INVALID_MESSAGE", what, Some(&name)).await;
        }
        if self.active.len() >= MAX_SUBSCRIPTIONS {
            let what = format!("a socket has at most {MAX_SUBSCRIPTIONS} subscriptions");
            return self.error("INVALID_MESSAGE", &what, Some(&name)).await;
        }
        if subscribe.view == Some(WsView::Sessions) {
            let filter = ListFilter {
                sight: self.grant.sight.clone(),
                limit: SESSION_PAGE_SIZE,
                ..ListFilter::default()
            };
            let list = SessionListFollower::new(&self.app.hub, filter);
            let confirmed =
                json!({"type": "subscription_confirmed", "subscription": name, "view": "sessions"});
            self.send(confirmed).await?;
            self.spawn_stream(name, StreamSource::List(Box::new(list)), None);
            return Ok(());
        }
        let session = match self.find(&subscribe).await {
            Ok(session) => session,
            Err(Error::NotFound(_)) => {
                return self.error("NOT_FOUND", "session not found", Some(&name)).await;
            }
            Err(Error::Invalid(what)) => {
                return self.error("INVALID_MESSAGE", &what, Some(&name)).await;
            }
            Err(_) => {
                return self.error("INTERNAL_ERROR", "the store cannot be read", Some(&name)).await;
            }
        };
        let view = match subscribe.view {
            Some(WsView::Events) => View::Events,
            Some(WsView::Items) => View::Items,
            Some(WsView::Packets) => View::Packets,
            _ => View::Activity,
        };
        let mut filter = Filter::default();
        if view == View::Activity {
            subscribe.flags.add_excluded(&mut filter.without);
            subscribe.filters.iter().for_each(|f| f.add_excluded(&mut filter.without));
        } else {
            filter.types = subscribe.types.map(|types| types.into_iter().collect());
        }
        let after = match subscribe.after.as_deref() {
            None | Some("") => After::Start,
            Some("end") => After::End,
            Some(cursor) => After::Given(cursor.to_owned()),
        };
        let wire = Wire::Ws(name.clone());
        let subscription = Subscription::new(&self.app.hub, &session, view, filter, wire, &after);
        let confirmed = json!({
            "type": "subscription_confirmed", "subscription": name, "sessionId": session.id,
            "workOrderId": session.label.as_ref().unwrap_or(&session.id),
            "view": view, "cursor": subscription.cursor(),
        });
        self.send(confirmed).await?;
        self.spawn_stream(name, StreamSource::Session(Box::new(subscription)), Some(session));
        Ok(())
    }

    /// The session of a subscription, if the token may see it.
    async fn find(&mut self, subscribe: &Subscribe) -> Result<Session> {
        let store = self.app.store.clone();
        let found = match (&subscribe.session_id, &subscribe.work_order_id) {
            (Some(id), _) => store.session(id).await?,
            (None, Some(label)) => match store.session_by_label(label).await {
                Err(Error::NotFound(_)) => store.session(label).await?,
                found => found?,
            },
            (None, None) => {
                return Err(Error::Invalid(
                    "say which session: workOrderId or sessionId".to_owned(),
                ));
            }
        };
        if self.grant.sight.sees(&found.id, &found.tags) {
            Ok(found)
        } else {
            Err(Error::NotFound("session"))
        }
    }

    fn spawn_stream(&mut self, name: String, source: StreamSource, session: Option<Session>) {
        let (handle, registration) = AbortHandle::new_pair();
        let outputs = unfold(Some((Arc::from(name.as_str()), source)), async |following| {
            let (name, mut source): (Arc<str>, StreamSource) = following?;
            let next = source.next(&name).await;
            let has_more = matches!(next, Ok(Some(_)));
            Some(((Arc::clone(&name), next), has_more.then_some((name, source))))
        });
        self.followed.push(Abortable::new(outputs.boxed(), registration));
        self.active.insert(name, (handle, session));
    }

    async fn forward(
        &mut self,
        name: &str,
        next: Result<Option<Output>>,
    ) -> std::result::Result<(), axum::Error> {
        match next {
            Ok(Some(Output::Messages(messages))) => {
                for message in messages.converted(text).iter() {
                    self.sink.feed(Message::Text(message.clone())).await?;
                }
                self.sink.flush().await
            }
            Ok(_) => {
                self.active.remove(name);
                Ok(())
            }
            Err(_) => {
                self.active.remove(name);
                self.error("INTERNAL_ERROR", "the store cannot be read", Some(name)).await
            }
        }
    }

    async fn unsubscribe(
        &mut self,
        name: Option<String>,
        of: Option<String>,
    ) -> std::result::Result<(), axum::Error> {
        let is_of = |session: &Option<Session>| {
            let of = of.as_deref();
            session
                .as_ref()
                .is_some_and(|s| of == Some(&s.id) || (of.is_some() && of == s.label.as_deref()))
        };
        let names: Vec<String> = match &name {
            Some(name) => self.active.keys().filter(|k| *k == name).cloned().collect(),
            None => {
                self.active.iter().filter(|(_, (_, s))| is_of(s)).map(|(k, _)| k.clone()).collect()
            }
        };
        if names.is_empty() {
            return self.error("NOT_FOUND", "subscription not found", name.as_deref()).await;
        }
        for name in names {
            if let Some((handle, _)) = self.active.remove(&name) {
                handle.abort();
            }
            self.send(json!({"type": "unsubscribed", "subscription": name})).await?;
        }
        Ok(())
    }

    async fn error(
        &mut self,
        code: &str,
        message: &str,
        subscription: Option<&str>,
    ) -> std::result::Result<(), axum::Error> {
        let mut error = json!({"type": "error", "code": code, "message": message});
        if let Some(name) = subscription {
            error["subscription"] = name.into();
        }
        self.send(error).await
    }

    async fn send(&mut self, value: serde_json::Value) -> std::result::Result<(), axum::Error> {
        self.sink.send(Message::Text(value.to_string().into())).await
    }
}
