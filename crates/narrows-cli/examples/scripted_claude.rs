//! An agent that speaks the stream-json of Claude Code and does what its prompt says, for tests.
//!
//! `scripted/script.rs` lists the commands of a prompt, `scripted/options.rs` the flags.

mod scripted;
#[path = "scripted/claude/mod.rs"]
mod spoken;

use scripted::options::Options;
use scripted::room::Room;
use scripted::{acts, wire};
use serde_json::{Value, json};
use spoken::turns::{Prompt, Turns};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};

const VERSION: &str = "2.1.325";

fn main() {
    let options = Options::read("Claude Code", VERSION);
    let room = Arc::new(Room::default());
    let Some(turns) = Turns::new(&options, VERSION) else {
        let session = options.resume.unwrap_or_default();
        acts::stderr(&format!("No conversation found with session ID: {session}\n"));
        std::process::exit(1);
    };
    let turns = Arc::new(turns);
    let (sender, receiver) = channel();
    let player = {
        let (room, turns) = (Arc::clone(&room), Arc::clone(&turns));
        std::thread::spawn(move || turns.play(&receiver, &room))
    };
    if let Some(text) = &options.prompt {
        prompted(&json!({"message": {"role": "user", "content": text}}), &room, &sender);
    } else {
        for line in wire::lines(Arc::clone(&room)) {
            if line.is_empty() || options.mute {
                continue;
            }
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                acts::stderr("Error parsing streaming input line: no JSON\n");
                std::process::exit(1);
            };
            take(&message, &options, &turns, &room, &sender);
        }
        room.ended.store(true, Ordering::SeqCst);
    }
    // What was said before the input ended is still done.
    drop(sender);
    let _ = player.join();
}

/// Takes one message of standard input.
fn take(message: &Value, options: &Options, turns: &Turns, room: &Room, prompts: &Sender<Prompt>) {
    match message["type"].as_str() {
        Some("user") => prompted(message, room, prompts),
        Some("control_request") => {
            let answer = control(&message["request"], turns, room);
            let id = &message["request_id"];
            wire::send(&match answer {
                Ok(response) => json!({"type": "control_response",
                    "response": {"subtype": "success", "request_id": id, "response": response}}),
                Err(why) => json!({"type": "control_response",
                    "response": {"subtype": "error", "request_id": id, "error": why}}),
            });
            if message["request"]["subtype"] == "interrupt" {
                room.interrupt();
            }
        }
        Some("control_response") => {
            if options.replay {
                wire::send(message);
            }
            let response = &message["response"];
            let id = response["request_id"].as_str().unwrap_or_default();
            room.answer(id, response["response"].clone());
        }
        _ => {}
    }
}

fn prompted(message: &Value, room: &Room, prompts: &Sender<Prompt>) {
    room.turns.fetch_add(1, Ordering::SeqCst);
    let content = message["message"]["content"].clone();
    let uuid = message["uuid"].as_str().map(str::to_owned);
    let _ = prompts.send(Prompt { content, uuid });
}

/// What the caller wants of the program itself.
fn control(request: &Value, turns: &Turns, room: &Room) -> Result<Value, String> {
    match request["subtype"].as_str().unwrap_or_default() {
        "initialize" => {
            room.forwards.store(request["forwardSubagentText"] == true, Ordering::SeqCst);
            Ok(turns.greeting())
        }
        "interrupt" => {
            let queued = room.turns.load(Ordering::SeqCst).saturating_sub(1);
            Ok(json!({"still_queued": vec![Value::Null; queued as usize]}))
        }
        "set_permission_mode" => {
            let mode = request["mode"].as_str().unwrap_or("default");
            turns.set_mode(mode);
            Ok(json!({"mode": mode}))
        }
        "set_model" => {
            turns.set_model(request["model"].as_str().unwrap_or("default"));
            Ok(json!({}))
        }
        other => Err(format!("Unsupported control request subtype: {other}")),
    }
}
