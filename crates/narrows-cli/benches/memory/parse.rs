//! Peak memory of `narrows parse --view events` while a session is piped through it, and while one
//! long line comes.

use crate::generate;
use crate::measure::{MB, Row, peak};
use crate::served::NARROWS;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

pub(crate) fn session(bytes: usize) {
    println!("narrows parse: a session of {} MB", bytes / MB);
    let (mut child, mut stdin) = spawn();
    let mut session = generate::Session::new(5, 5);
    let mut sent = 0;
    while sent < bytes {
        let part = session.make(64 * MB);
        stdin.write_all(&part).expect("narrows reads");
        sent += part.len();
        Row::new(sent / MB, "MB in", peak(child.id())).print();
    }
    drop(stdin);
    child.wait().expect("narrows ends");
}

pub(crate) fn line(bytes: usize) {
    println!("narrows parse: one line of {} MB", bytes / MB);
    let (mut child, mut stdin) = spawn();
    let part = vec![b'x'; 64 * MB];
    for _ in 0..bytes / part.len() {
        stdin.write_all(&part).expect("narrows reads");
    }
    Row::new(bytes / MB, "MB in", peak(child.id())).print();
    drop(stdin);
    child.wait().expect("narrows ends");
}

fn spawn() -> (Child, ChildStdin) {
    let mut child = Command::new(NARROWS)
        .args(["parse", "--view", "events"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("narrows runs");
    let stdin = child.stdin.take().expect("a pipe");
    (child, stdin)
}
