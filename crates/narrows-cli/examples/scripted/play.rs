//! Plays a prompt: what is the same in every protocol is done here, the rest by a voice.

use super::room::Room;
use super::script::{self, Command};
use super::{acts, wire};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How an agent tells what it does.
pub trait Voice {
    /// One text, in pieces.
    fn text(&mut self, pieces: &[String]);
    fn think(&mut self, pieces: &[String]);
    fn edit(&mut self, path: &str, text: &str);
    fn bash(&mut self, command: &str);
    fn ask(&mut self, title: &str);
    fn question(&mut self, text: &str, answers: &[String]);
    /// Asks with a form; takes it back when the file is there.
    fn elicit(&mut self, params: &str, until: Option<&str>);
    fn subagent(&mut self, text: &str);
    fn read(&mut self, path: &str);
    fn write(&mut self, path: &str, text: &str);
    fn terminal(&mut self, command: &str);
    fn todo(&mut self, items: &[String]);
    fn garbage(&mut self);
    fn stop(&mut self, reason: &str);
    fn fail(&mut self, words: &str);
    fn plan(&mut self, title: &str, plan: &str);
    fn cwd(&self) -> &Path;
    /// The prompts before this one.
    fn earlier(&self) -> Vec<String>;
}

/// Does what the prompt says, until its end or until it is cancelled.
pub fn play(prompt: &str, voice: &mut dyn Voice, room: &Room) {
    for command in script::read(prompt) {
        if room.is_cancelled() {
            return;
        }
        step(command, voice, room);
    }
}

/// A text as a model says it: word by word.
pub fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

fn step(command: Command, voice: &mut dyn Voice, room: &Room) {
    let mut say = |text: &str| voice.text(&pieces(text));
    match command {
        Command::Say(text) => say(&text),
        Command::Think(text) => voice.think(&pieces(&text)),
        Command::Chunks(count) => {
            voice.text(&(0..count).map(|n| format!("word {n} ")).collect::<Vec<_>>());
        }
        Command::Stamps(count, apart) => {
            for _ in 0..count {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let micros = since.map_or(0, |s| s.as_micros());
                voice.text(&[format!("@{micros} ")]);
                room.wait(Duration::from_millis(apart));
                if room.is_cancelled() {
                    return;
                }
            }
        }
        Command::Edit(path, text) => voice.edit(&path, &text),
        Command::Bash(command) => voice.bash(&command),
        Command::Ask(title) => voice.ask(&title),
        Command::Question(text, answers) => voice.question(&text, &answers),
        Command::Elicit(params) => voice.elicit(&params, None),
        Command::TakeBack(file, params) => voice.elicit(&params, Some(&file)),
        Command::Subagent(text) => voice.subagent(&text),
        Command::Read(path) => voice.read(&path),
        Command::Write(path, text) => voice.write(&path, &text),
        Command::Terminal(command) => voice.terminal(&command),
        Command::Todo(items) => voice.todo(&items),
        Command::Wait(ms) => room.wait(Duration::from_millis(ms)),
        Command::Hang => hang(),
        // A cancellation before this text ends the turn; after it nothing does.
        Command::Stall => {
            voice.text(&pieces("\nstalled until it is killed\n"));
            hang();
        }
        Command::Exit(code) => std::process::exit(code),
        Command::Stderr(text) => acts::stderr(&format!("{text}\n")),
        Command::Flood(bytes) => {
            let end = wire::written() + bytes;
            let piece = "flood ".repeat(170);
            while wire::written() < end && !room.is_cancelled() {
                voice.text(&vec![piece.clone(); 16]);
            }
        }
        Command::FloodStderr(bytes) => acts::flood_stderr(bytes),
        Command::Garbage => voice.garbage(),
        Command::Raw(line) => {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            // The ids of Claude Code's requests are texts, and known by these.
            let id = message.get("id").map(Value::to_string);
            let id = id.or(message["request_id"].as_str().map(str::to_owned));
            if let Some(id) = id {
                room.expect_all(&id);
            }
            wire::raw(&format!("{line}\n"));
        }
        Command::Await(id) => {
            let told = room.next(&id).map_or("nothing".to_owned(), |answer| answer.to_string());
            say(&format!("[{id} got {told}]"));
        }
        Command::Stop(reason) => voice.stop(&reason),
        Command::Fail(words) => voice.fail(&words),
        Command::Plan(title, plan) => voice.plan(&title, &plan),
        Command::CloseStdout => wire::close_stdout(),
        Command::CloseStdin => {
            room.close_stdin.store(true, Ordering::SeqCst);
            // The reader looks this often.
            std::thread::sleep(Duration::from_millis(60));
        }
        Command::Fork => acts::fork(room),
        Command::Daemon => acts::daemon(room),
        Command::Deaf => {
            acts::deafen();
            room.deaf.store(true, Ordering::SeqCst);
        }
        Command::Env => say(&acts::env()),
        Command::Fds => say(&acts::fds()),
        Command::Cwd => {
            let cwd = voice.cwd().display().to_string();
            voice.text(&pieces(&cwd));
        }
        Command::Recall => {
            let earlier = voice.earlier().join(" | ");
            voice.text(&pieces(&format!("before: {earlier}")));
        }
    }
}
