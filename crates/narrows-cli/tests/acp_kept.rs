//! What `narrows acp` keeps: every session, whole and once, with a server, without, and with one
//! that comes and goes.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(clippy::needless_pass_by_value, reason = "values are made where they are given")]

#[path = "acp/editor.rs"]
mod editor;
mod served;

use editor::{Editor, REPLIES, packets, spools, start, until};
use serde_json::{Value, json};
use served::{NARROWS, Served, serve, truth};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

struct Place {
    dir: TempDir,
    data: PathBuf,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("folder");
        let data = dir.path().join("data");
        Place { dir, data }
    }

    fn editor(&self) -> Editor {
        start(&self.data, self.dir.path(), REPLIES)
    }

    /// A command on the store; what it printed.
    fn narrows(&self, words: &[&str]) -> String {
        let done = Command::new(NARROWS)
            .args(words)
            .args(["--no-env", "--data"])
            .arg(&self.data)
            .env("HOME", self.dir.path())
            .env_remove("NARROWS_CONFIG")
            .env_remove("CLAUDE_CONFIG_DIR")
            .output()
            .expect("narrows");
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words:?}: {told}");
        String::from_utf8(done.stdout).expect("text")
    }

    /// The sessions that `narrows ls` lists.
    fn sessions(&self) -> Vec<Value> {
        let listed = self.narrows(&["ls", "--json"]);
        listed.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
    }

    fn server(&self) -> Served {
        serve(&self.data, &[], &[]).expect("server")
    }
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn answer(id: u64, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

fn update(session: &str, update: Value) -> String {
    let params = json!({ "sessionId": session, "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

fn text(session: &str, text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    update(session, json!({ "sessionUpdate": "agent_message_chunk", "content": content }))
}

fn hello(editor: &mut Editor) {
    let about = json!({ "protocolVersion": 1, "agentInfo": { "name": "made", "version": "1" } });
    let hello = request(0, "initialize", json!({ "protocolVersion": 1 }));
    editor.say(&hello, &[answer(0, about)]);
}

fn open(editor: &mut Editor, id: u64, session: &str) {
    let new = request(id, "session/new", json!({ "cwd": "/srv/app", "mcpServers": [] }));
    editor.say(&new, &[answer(id, json!({ "sessionId": session }))]);
}

/// A turn with a call and some text.
fn turn(editor: &mut Editor, id: u64, session: &str, words: &str) {
    let prompt = json!([{ "type": "text", "text": words }]);
    let prompt = json!({ "sessionId": session, "prompt": prompt });
    let call = format!("call-{session}-{id}");
    let mut replies = vec![update(
        session,
        json!({ "sessionUpdate": "tool_call", "toolCallId": call, "title": "bash", "kind": "execute",
            "status": "completed", "rawInput": { "command": "ls /srv/app/src" },
            "rawOutput": { "output": words } }),
    )];
    replies.extend((0..20).map(|n| text(session, &format!("word {n} of {words} "))));
    replies.push(answer(id, json!({ "stopReason": "end_turn" })));
    editor.say(&request(id, "session/prompt", prompt), &replies);
}

/// The only session of a server.
fn only(served: &Served) -> String {
    let (_, page) = served.get("/api/sessions").expect("sessions");
    let sessions = page["sessions"].as_array().expect("sessions");
    assert_eq!(sessions.len(), 1, "{page}");
    sessions[0]["id"].as_str().expect("id").to_owned()
}

/// What a server made of packets must be what the core makes of them.
fn assert_same(served: &Served, session: &str, packets: &[String]) {
    let (there, should) = (served.events(session), truth(packets, session));
    let differs = there.iter().zip(&should).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{:?}", differs.map(|n| (&there[n], &should[n])));
    assert_eq!(there.len(), should.len());
}

fn wait_for(file: &Path, lines: usize) -> Vec<String> {
    until("the file is written", || packets(file).len() >= lines);
    packets(file)
}

#[test]
fn without_a_server_it_is_spooled_and_read_once() {
    let place = Place::new();
    let mut editor = place.editor();
    hello(&mut editor);
    // Nothing is said in it: there is nothing to keep.
    open(&mut editor, 0, "s0");
    open(&mut editor, 1, "s1");
    turn(&mut editor, 2, "s1", "first");
    until("a file", || spools(&place.data).len() == 1);
    let file = spools(&place.data).remove(0);
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&place.data.join("spool"))), (0o600, 0o700));
    let lines = wait_for(&file, 27);
    let header: Value = serde_json::from_str(
        std::fs::read_to_string(&file).expect("file").lines().next().expect("header"),
    )
    .expect("JSON");
    let facts = ["agent", "session", "cwd", "label"].map(|name| header[name].clone());
    assert_eq!(facts, ["sh", "s1", "/srv/app", "acp:made:s1"].map(Value::from));
    // It can be seen while it goes on, and is there once.
    assert_eq!(place.sessions().len(), 1);
    turn(&mut editor, 3, "s1", "second");
    let lines = wait_for(&file, lines.len() + 23);
    assert_eq!(place.sessions().len(), 1);
    assert_eq!(editor.end().code(), Some(7));
    assert_eq!(spools(&place.data).len(), 1);
    // Everything was read already; that it is over was not known.
    place.narrows(&["index"]);
    assert!(spools(&place.data).is_empty());
    assert_eq!(place.narrows(&["index"]).trim(), "nothing new");
    let served = place.server();
    let session = only(&served);
    assert_same(&served, &session, &lines);
    let (_, shown) = served.get(&format!("/api/sessions/{session}")).expect("session");
    assert_eq!(shown["label"], "acp:made:s1");
}

#[test]
fn a_server_that_starts_later_reads_it() {
    let place = Place::new();
    let mut editor = place.editor();
    open(&mut editor, 1, "s1");
    turn(&mut editor, 2, "s1", "alone");
    until("a file", || spools(&place.data).len() == 1);
    let lines = wait_for(&spools(&place.data)[0], 25);
    // Its recorder has no time for last words.
    editor.child.kill().expect("kill");
    editor.child.wait().expect("wait");
    let served = place.server();
    until("it is read", || spools(&place.data).is_empty());
    assert_same(&served, &only(&served), &lines);
}

#[test]
fn with_a_server_it_is_seen_while_it_goes_on() {
    let place = Place::new();
    let served = place.server();
    let mut editor = place.editor();
    hello(&mut editor);
    open(&mut editor, 1, "s1");
    turn(&mut editor, 2, "s1", "first");
    let there = |count: usize| {
        let (_, page) = served.get("/api/sessions").expect("sessions");
        let id = page["sessions"][0]["id"].as_str().map(str::to_owned);
        id.is_some_and(|id| served.events(&id).len() >= count)
    };
    until("it is there", || there(20));
    editor.say("no message", &[]);
    turn(&mut editor, 3, "s1", "second");
    let lines = wait_for(&spools(&place.data)[0], 51);
    let session = only(&served);
    assert_eq!(editor.end().code(), Some(7));
    assert!(spools(&place.data).is_empty(), "everything was acknowledged");
    let mut there = served.events(&session);
    let mut should = truth(&lines, &session);
    let bad = |events: &mut Vec<Value>| {
        let bad = events.iter_mut().find(|e| e["type"] == "malformed").expect("malformed");
        // Where it stands in a request is not where it stands in the file.
        bad["position"].take()
    };
    bad(&mut there);
    bad(&mut should);
    assert_eq!(there, should);
    let (_, shown) = served.get(&format!("/api/sessions/{session}")).expect("session");
    assert_eq!(shown["ended"], true, "{shown}");
}

/// Whether a text is in an event.
fn says(events: &[Value], text: &str) -> bool {
    events.iter().any(|event| event["text"].as_str().is_some_and(|said| said.contains(text)))
}

#[test]
fn a_server_that_comes_and_goes_gets_everything_once() {
    let place = Place::new();
    let mut served = place.server();
    let mut editor = place.editor();
    hello(&mut editor);
    open(&mut editor, 1, "s1");
    for n in 0..6 {
        turn(&mut editor, 2 + n, "s1", &format!("turn {n}"));
        // Sometimes before anything of the turn was read, sometimes after some of it.
        until("some of it is there", || {
            let (_, page) = served.get("/api/sessions").expect("sessions");
            let id = page["sessions"][0]["id"].as_str().map(str::to_owned);
            n == 0
                || id.is_some_and(|id| says(&served.events(&id), &format!("word {n} of turn {n}")))
        });
        if n % 2 == 0 {
            served.kill();
            turn(&mut editor, 20 + n, "s1", &format!("unseen {n}"));
            served = place.server();
        } else {
            // In the middle of a text, and politely.
            editor.say("{\"jsonrpc\":\"2.0\",\"method\":\"$/x\"}", &[text("s1", "half a te")]);
            assert!(served.terminate().success());
            served = place.server();
        }
    }
    let lines = wait_for(&spools(&place.data)[0], 4 + 9 * 23 + 6);
    assert_eq!(editor.end().code(), Some(7));
    until("it is read", || spools(&place.data).is_empty());
    assert_same(&served, &only(&served), &lines);
}

#[test]
fn two_sessions_of_one_connection_are_two() {
    let place = Place::new();
    let served = place.server();
    let mut editor = place.editor();
    hello(&mut editor);
    open(&mut editor, 1, "s1");
    open(&mut editor, 2, "s2");
    turn(&mut editor, 3, "s1", "one");
    turn(&mut editor, 4, "s2", "two");
    until("two files", || spools(&place.data).len() == 2);
    let files: Vec<Vec<String>> =
        spools(&place.data).iter().map(|file| wait_for(file, 27)).collect();
    editor.end();
    assert!(spools(&place.data).is_empty());
    let (_, page) = served.get("/api/sessions").expect("sessions");
    let sessions = page["sessions"].as_array().expect("sessions");
    assert_eq!(sessions.len(), 2);
    for (label, word) in [("acp:made:s1", "one"), ("acp:made:s2", "two")] {
        let session = sessions.iter().find(|s| s["label"] == label).expect("session");
        let id = session["id"].as_str().expect("id");
        let lines = files.iter().find(|lines| lines.concat().contains(&format!("of {word} ")));
        assert_same(&served, id, lines.expect("lines"));
        assert_eq!(session["info"]["agent"], "made", "{session}");
    }
}

#[test]
fn a_known_session_that_is_loaded_is_not_doubled() {
    for with_server in [true, false] {
        let place = Place::new();
        let served = with_server.then(|| place.server());
        let mut editor = place.editor();
        hello(&mut editor);
        open(&mut editor, 1, "s1");
        turn(&mut editor, 2, "s1", "before");
        until("a file", || spools(&place.data).len() == 1);
        let mut lines = wait_for(&spools(&place.data)[0], 27);
        editor.end();
        // Another process loads it, and the agent repeats everything.
        let mut editor = place.editor();
        hello(&mut editor);
        let load = json!({ "sessionId": "s1", "cwd": "/srv/app", "mcpServers": [] });
        let replay = [text("s1", "before, again"), answer(1, json!({}))];
        editor.say(&request(1, "session/load", load), &replay);
        turn(&mut editor, 2, "s1", "after");
        let own = || spools(&place.data).pop().filter(|f| packets(f).concat().contains("after"));
        until("a file", || own().is_some());
        let more = wait_for(&own().expect("file"), 27);
        assert!(!more.concat().contains("again"));
        lines.extend(more);
        editor.end();
        if !with_server {
            place.narrows(&["index"]);
        }
        assert!(spools(&place.data).is_empty());
        let served = served.unwrap_or_else(|| place.server());
        assert_same(&served, &only(&served), &lines);
    }
}

#[test]
fn what_was_deleted_stays_deleted() {
    let place = Place::new();
    let served = place.server();
    let mut editor = place.editor();
    open(&mut editor, 1, "s1");
    turn(&mut editor, 2, "s1", "secret");
    let (mut id, count) = (None, || {
        let (_, page) = served.get("/api/sessions").expect("sessions");
        page["sessions"].as_array().cloned().unwrap_or_default()
    });
    until("it is there", || {
        id = count().first().and_then(|s| s["id"].as_str().map(str::to_owned));
        id.is_some()
    });
    let gone = format!("/api/sessions/{}", id.expect("id"));
    assert_eq!(served.delete(&gone).expect("delete").0, 204);
    turn(&mut editor, 3, "s1", "more");
    editor.end();
    assert!(count().is_empty() && spools(&place.data).is_empty());
}

/// The same before its first packet is there: somebody who looks at what the recorder asks the server
/// deletes the session between two requests.
#[test]
fn what_was_deleted_at_once_stays_deleted() {
    let place = Place::new();
    let served = Arc::new(place.server());
    let between = TcpListener::bind("127.0.0.1:0").expect("port");
    let address = place.data.join("server.json");
    let mut known: Value =
        serde_json::from_slice(&fs::read(&address).expect("address")).expect("JSON");
    known["url"] = format!("http://{}", between.local_addr().expect("address")).into();
    fs::write(&address, known.to_string()).expect("address");
    let deleted = Arc::new(AtomicUsize::new(0));
    let (upstream, deletions) = (served.clone(), deleted.clone());
    std::thread::spawn(move || {
        for client in between.incoming() {
            let (upstream, deletions) = (upstream.clone(), deletions.clone());
            std::thread::spawn(move || pass_on(client.expect("client"), &upstream, &deletions));
        }
    });
    let mut editor = place.editor();
    open(&mut editor, 1, "s1");
    turn(&mut editor, 2, "s1", "secret");
    until("it is deleted", || deleted.load(Ordering::SeqCst) > 0);
    editor.end();
    let (_, page) = served.get("/api/sessions").expect("sessions");
    assert_eq!(page["sessions"], json!([]));
    assert!(spools(&place.data).is_empty());
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
}

/// Passes on what a client asks, and deletes a session before it is asked how far it was read.
fn pass_on(mut client: TcpStream, served: &Served, deleted: &AtomicUsize) {
    let host = served.url.trim_start_matches("http://");
    let own = client.local_addr().expect("address").to_string();
    let mut upstream = TcpStream::connect(host).expect("server");
    let (mut answers, mut back) =
        (upstream.try_clone().expect("socket"), client.try_clone().expect("socket"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut bytes = vec![0; 1 << 16];
    while let Ok(n @ 1..) = client.read(&mut bytes) {
        let asked = String::from_utf8_lossy(&bytes[..n]);
        let path = asked.strip_prefix("GET ").and_then(|asked| asked.split_once("/packets"));
        if let Some((session, _)) = path {
            served.delete(session).expect("delete");
            deleted.fetch_add(1, Ordering::SeqCst);
        }
        // The server answers to its own name only.
        if upstream.write_all(asked.replace(&own, host).as_bytes()).is_err() {
            break;
        }
    }
    let _ = upstream.shutdown(Shutdown::Both);
}

#[test]
fn a_request_that_is_open_when_its_agent_ends_is_withdrawn_with_its_call() {
    let place = Place::new();
    let served = place.server();
    let mut editor = place.editor();
    hello(&mut editor);
    open(&mut editor, 1, "s1");
    let prompt = json!({ "sessionId": "s1", "prompt": [{ "type": "text", "text": "clean up" }] });
    let call = json!({ "toolCallId": "c1", "title": "bash", "kind": "execute", "status": "pending",
        "rawInput": { "command": "rm -r build" } });
    let options = json!([{ "optionId": "once", "name": "Allow", "kind": "allow_once" }]);
    let asks = json!({ "sessionId": "s1", "toolCall": call, "options": options });
    let asks = request(7, "session/request_permission", asks);
    editor.say(&request(2, "session/prompt", prompt), &[asks]);
    let items = || {
        let (_, page) = served.get("/api/sessions").expect("sessions");
        let id = page["sessions"][0]["id"].as_str().unwrap_or("none").to_owned();
        let page = served.get(&format!("/api/sessions/{id}/items?limit=100")).map(|page| page.1);
        page.map(|page| page["items"].clone()).unwrap_or_default().to_string()
    };
    until("it is asked", || items().contains(r#""type":"permission""#));
    editor.end();
    until("it is withdrawn", || !items().contains(r#""type":"permission""#));
    until("its call is cancelled", || items().contains(r#""status":"cancelled""#));
}
