//! A database for each directory, on the PostgreSQL started by `scripts/services`.

use narrows_store::{Result, Store};
use std::path::Path;
use std::process::Command;

/// An environment variable set by `scripts/services`.
pub fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name}: run this by scripts/services"))
}

/// A client program of PostgreSQL, connected to the server.
pub fn client(program: &str) -> Command {
    let mut client = Command::new(format!("{}/{program}", env("NARROWS_TEST_PG_BIN")));
    client.args(["-h", "127.0.0.1", "-U", "narrows", "-p", &env("NARROWS_TEST_PG_PORT")]);
    client
}

/// The database name of a directory.
pub fn name(dir: &Path) -> String {
    let name = dir.file_name().unwrap().to_str().unwrap();
    format!("t{}", name.replace(|c: char| !c.is_ascii_alphanumeric(), "").to_lowercase())
}

/// The URL of a directory's database, which is created on first use.
pub fn url(dir: &Path) -> String {
    let (name, made) = (name(dir), dir.join("made"));
    if !made.exists() {
        assert!(client("createdb").arg(&name).status().unwrap().success(), "no database");
        std::fs::write(made, "").unwrap();
    }
    let port = env("NARROWS_TEST_PG_PORT");
    format!("postgres://narrows@127.0.0.1:{port}/{name}?sslmode=disable")
}

/// A node with its own data directory.
pub fn connect(data: &Path, url: &str) -> Result<Store> {
    let (data, url) = (data.to_owned(), url.to_owned());
    // Connecting blocks, which a task must not.
    std::thread::spawn(move || Store::connect(&data, &url)).join().unwrap()
}

/// The output of `psql`, a line per row.
pub fn ask(dir: &Path, sql: &str) -> String {
    let done = client("psql").args(["-v", "ON_ERROR_STOP=1", "-qAtc", sql, &name(dir)]).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}
