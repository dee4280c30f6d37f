//! An agent that speaks the Agent Client Protocol and does what its prompt says, for tests.
//!
//! `scripted/script.rs` lists the commands of a prompt, `scripted/options.rs` the flags.

mod scripted;
#[path = "scripted/acp/mod.rs"]
mod spoken;

use scripted::options::Options;
use scripted::play::play;
use scripted::room::Room;
use scripted::state::State;
use scripted::wire;
use serde_json::{Value, json};
use spoken::sessions::{Session, Sessions};
use spoken::voice::AcpVoice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

const VERSION: &str = "1.0.0";

/// A prompt that is to be played.
struct Prompt {
    id: Value,
    session: String,
    text: String,
}

fn main() {
    let options = Options::read("scripted-acp", VERSION);
    let room = Arc::new(Room::default());
    let sessions = Arc::new(Sessions::new(State(options.state.clone()), options.config_options));
    let (sender, receiver) = channel();
    let player = {
        let (room, sessions) = (Arc::clone(&room), Arc::clone(&sessions));
        let stubborn = options.stubborn;
        std::thread::spawn(move || turns(&receiver, &sessions, &room, stubborn))
    };
    for line in wire::lines(Arc::clone(&room)) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            wire::send(
                &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}),
            );
            continue;
        };
        if options.mute {
            continue;
        }
        let id = message.get("id").cloned();
        match message["method"].as_str() {
            Some(method) => {
                let params = &message["params"];
                take(method, id, params, &options, &sessions, &room, &sender);
            }
            None => room.answer(&id.unwrap_or_default().to_string(), message),
        }
    }
    // Nobody talks to us any more: what runs is broken off, unless it hangs.
    room.ended.store(true, Ordering::SeqCst);
    room.set_cancelled(true);
    drop(sender);
    let _ = player.join();
}

/// Takes a request or a notification.
fn take(
    method: &str,
    id: Option<Value>,
    params: &Value,
    options: &Options,
    sessions: &Sessions,
    room: &Room,
    prompts: &Sender<Prompt>,
) {
    let session = params["sessionId"].as_str().unwrap_or_default();
    if method == "session/cancel" && !options.stubborn {
        room.set_cancelled(true);
    }
    if method == "$/cancel_request" && options.stubborn {
        room.set_cancelled(true);
    }
    let Some(id) = id else { return };
    let missing =
        || json!({"code": -32002, "message": "Session not found", "data": {"sessionId": session}});
    let known = sessions.has(session);
    if let Some(folders) = params.get("additionalDirectories") {
        sessions.keep("folders", &json!({"method": method, "folders": folders}));
    }
    let answer = match method {
        "initialize" => Ok(initialize(options)),
        "authenticate" => authenticate(params, sessions),
        "session/new" | "session/load" | "session/resume"
            if options.login && !sessions.is_logged_in() =>
        {
            Err(json!({"code": -32000, "message": "Authentication required"}))
        }
        "session/prompt" if options.login_late => {
            Err(json!({"code": -32000, "message": "Authentication required"}))
        }
        "session/new" => {
            let (session, result) = sessions.start(params["cwd"].as_str().unwrap_or("."));
            wire::send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
            spoken::update(
                &session,
                &json!({"sessionUpdate": "available_commands_update", "availableCommands": [
                {"name": "recall", "description": "Says the prompts of this session"}]}),
            );
            return;
        }
        "session/load" if !options.no_load => {
            sessions.load(session, params["cwd"].as_str().unwrap_or(".")).ok_or_else(missing)
        }
        "session/resume" if options.newer => {
            sessions.resume(session, params["cwd"].as_str().unwrap_or(".")).ok_or_else(missing)
        }
        "session/close" if options.newer => {
            sessions.close(session);
            Ok(json!({}))
        }
        "session/list" if options.newer || options.lists => {
            let mut page = sessions.list(params["cursor"].as_str(), options.lists);
            if options.loops && page["nextCursor"].is_null() {
                page["nextCursor"] = json!("0");
            }
            Ok(page)
        }
        "session/delete" if options.newer => {
            if sessions.forget(session) {
                Ok(json!({}))
            } else {
                Err(missing())
            }
        }
        "session/prompt" if !known => Err(missing()),
        "session/prompt" if room.turns.load(Ordering::SeqCst) > 0 => {
            Err(json!({"code": -32600, "message": "A turn is running"}))
        }
        "session/prompt" => {
            room.set_cancelled(false);
            room.turns.store(1, Ordering::SeqCst);
            let text = words(&params["prompt"]);
            let _ = prompts.send(Prompt { id, session: session.to_owned(), text });
            return;
        }
        "session/set_mode" if known => sessions.set_mode(session, &params["modeId"]),
        "session/set_model" if known => sessions.set_model(session, &params["modelId"]),
        "session/set_config_option" if known && options.config_options => {
            sessions.set_option(session, &params["configId"], &params["value"])
        }
        "session/set_mode" | "session/set_model" => Err(missing()),
        _ => Err(
            json!({"code": -32601, "message": format!("\"Method not found\": {method}"), "data": {"method": method}}),
        ),
    };
    wire::send(&match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    });
}

fn initialize(options: &Options) -> Value {
    json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": !options.no_load,
            "mcpCapabilities": {"http": false, "sse": false},
            "sessionCapabilities": if options.lists { json!({"list": {}}) } else if options.newer { json!({"resume": {}, "close": {}, "list": {}, "delete": {}, "additionalDirectories": {}}) } else { json!({}) },
            "promptCapabilities": {"embeddedContext": true, "image": true},
        },
        "authMethods": if options.login || options.login_late { methods() } else { json!([]) },
        "agentInfo": {"name": "scripted-acp", "title": "Scripted agent", "version": VERSION},
    })
}

fn methods() -> Value {
    json!([
        {"id": "scripted-login", "name": "Scripted account", "type": "terminal", "args": ["--log-in"]},
        {"id": "browser", "name": "Browser", "description": "Opens a page to log in"},
        {"id": "scripted-api-key", "name": "Scripted key"},
    ])
}

/// A key is the only login without a person.
fn authenticate(params: &Value, sessions: &Sessions) -> Result<Value, Value> {
    let key = std::env::var("SCRIPTED_API_KEY").unwrap_or_default();
    if params["methodId"] == "scripted-api-key" && key.starts_with("good") {
        sessions.log_in();
        return Ok(json!({}));
    }
    Err(json!({"code": -32000, "message": "The key is not good"}))
}

/// The text of a prompt; a picture is told by its type and size.
fn words(prompt: &Value) -> String {
    let blocks = prompt.as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<String> = blocks
        .iter()
        .map(|block| match block["type"].as_str() {
            Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
            Some("image") => {
                let size = block["data"].as_str().map_or(0, str::len);
                format!("say image {} {size}", block["mimeType"].as_str().unwrap_or("?"))
            }
            other => format!("say block {}", other.unwrap_or("?")),
        })
        .collect();
    lines.join("\n")
}

/// Plays one prompt after the other.
fn turns(prompts: &Receiver<Prompt>, sessions: &Sessions, room: &Room, stubborn: bool) {
    for prompt in prompts {
        let Some(Session { cwd, prompts: earlier, .. }) =
            sessions.prompted(&prompt.session, &prompt.text)
        else {
            continue;
        };
        let mut voice = AcpVoice::new(&prompt.session, cwd, earlier, room, sessions);
        play(&prompt.text, &mut voice, room);
        let told = voice.reason.unwrap_or_else(|| "end_turn".to_owned());
        let reason = if room.is_cancelled() { "cancelled".to_owned() } else { told };
        let used = voice.used;
        let cost = json!({"amount": 0, "currency": "USD"});
        spoken::update(
            &prompt.session,
            &json!({"sessionUpdate": "usage_update", "used": used, "size": 200_000, "cost": cost}),
        );
        // Before it is told: the next prompt may come at once.
        room.turns.store(0, Ordering::SeqCst);
        if stubborn && reason == "cancelled" {
            let error = json!({"code": -32800, "message": "Request cancelled"});
            wire::send(&json!({"jsonrpc": "2.0", "id": prompt.id, "error": error}));
            continue;
        }
        if let Some(words) = voice.failure {
            let error = json!({"code": -32603, "message": words});
            wire::send(&json!({"jsonrpc": "2.0", "id": prompt.id, "error": error}));
            continue;
        }
        let reason = if reason == "null" { Value::Null } else { reason.into() };
        let usage = json!({"inputTokens": 13, "outputTokens": used, "totalTokens": 13 + used});
        wire::send(
            &json!({"jsonrpc": "2.0", "id": prompt.id, "result": {"stopReason": reason, "usage": usage, "_meta": {}}}),
        );
    }
}
