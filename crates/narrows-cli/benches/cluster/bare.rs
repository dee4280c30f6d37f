//! Bare inserts of the rows that a node wrote, over the same protocol into tables of the same
//! definition, with nothing around them.

use crate::nodes::{checkpoint, connect};
use crate::processes::Used;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

/// Connections at most: a node has as many for its sessions.
pub(crate) const CONNECTIONS: usize = 4;
/// Rows of each table at most.
const ROWS: usize = 40_000;
/// All of them are inserted again until it took so long: a short time tells little.
const TIME: Duration = Duration::from_secs(1);

/// A parameter.
type Values = Box<dyn ToSql + Sync + Send>;

/// The tables that get a row for each packet.
const TABLES: [&str; 3] = ["event", "item", "call"];

/// What is inserted in one commit: of each table a statement and its parameters, none if it has no rows.
pub(crate) struct Commit {
    events: usize,
    tables: [Option<(Statement, Vec<Values>)>; 3],
}

/// What one connection does.
pub(crate) struct Work {
    pub(crate) client: Client,
    pub(crate) commits: Vec<Commit>,
}

/// How the rows of a database are inserted again.
pub(crate) struct Bare<'a> {
    pub(crate) database: &'a str,
    /// Sessions that were written.
    pub(crate) writers: usize,
    /// Packets that each sent at once: they are next to each other.
    pub(crate) batch: u64,
    /// Rows of a commit.
    pub(crate) rows: usize,
    /// Whether they are inserted as narrows packs them.
    pub(crate) packed: bool,
}

impl Bare<'_> {
    /// Makes empty tables with the same columns, storage and indexes, and what is to be inserted into
    /// them: the rows of events, items and calls under their keys, as they are in the database, or as
    /// they were before they were packed. All that a node writes beside them (the session's row, its
    /// source, the index of search) is left out.
    pub(crate) async fn prepare(&self) -> Vec<Work> {
        let client = connect(self.database).await;
        for table in TABLES {
            let make = format!(
                "DROP TABLE IF EXISTS bare_{table}; CREATE TABLE bare_{table} (LIKE {table} INCLUDING ALL)"
            );
            client.batch_execute(&make).await.expect("a table");
        }
        let connections = self.writers.min(CONNECTIONS);
        let mut work = Vec::new();
        for n in 0..connections {
            let far = connect(self.database).await;
            let mut rows = [const { Vec::new() }; 3];
            for (rows, table) in rows.iter_mut().zip(TABLES) {
                *rows = self.read(&client, table, connections, n).await;
            }
            let commits = self.commits(&far, &rows).await;
            work.push(Work { client: far, commits });
        }
        work
    }

    /// Inserts all of it. Parameters are made before the clock runs. Returns events a second, and seconds
    /// of a core that PostgreSQL needs for one.
    pub(crate) async fn run(&self) -> (f64, f64) {
        let client = connect(self.database).await;
        let work = self.prepare().await;
        let connections = work.len();
        let work = Arc::new(work);
        let (mut events, mut took, mut used) = (0, Duration::ZERO, 0.0);
        while took < TIME {
            client
                .batch_execute("TRUNCATE bare_event, bare_item, bare_call")
                .await
                .expect("empty tables");
            checkpoint().await;
            let (began, before) = (Instant::now(), Used::now(&[]));
            let tasks: Vec<_> =
                (0..connections).map(|n| tokio::spawn(insert_all(Arc::clone(&work), n))).collect();
            for task in tasks {
                events += task.await.expect("inserts");
            }
            took += began.elapsed();
            used += before.seconds().1;
        }
        (events as f64 / took.as_secs_f64(), used / events as f64)
    }

    /// The rows of one connection, in the order in which writers that take turns send them.
    async fn read(&self, client: &Client, table: &str, connections: usize, n: usize) -> Vec<Row> {
        let rows = format!(
            "SELECT * FROM {table} WHERE (key >> 32) % {connections} = {n}
             ORDER BY ((key & 4294967295) - 1) / {}, key LIMIT {}",
            self.batch,
            ROWS / connections
        );
        client.query(&rows, &[]).await.expect("rows")
    }

    /// Cuts them into commits: each event brings its item and its call.
    async fn commits(&self, client: &Client, all: &[Vec<Row>; 3]) -> Vec<Commit> {
        let rows = self.rows.max(1);
        let (mut commits, mut known) = (Vec::new(), HashMap::new());
        for (at, events) in all[0].chunks(rows).enumerate() {
            let mut tables = [const { None }; 3];
            for (n, of) in all.iter().enumerate() {
                let end = of.len().min((at + 1) * rows);
                let part = &of[end.min(at * rows)..end];
                let Some(first) = part.first() else { continue };
                let sql = sql(&format!("bare_{}", TABLES[n]), first, part.len());
                if !known.contains_key(&sql) {
                    let made = client.prepare(&sql).await.expect("an insert");
                    known.insert(sql.clone(), made);
                }
                tables[n] = Some((known[&sql].clone(), self.values(part)));
            }
            commits.push(Commit { events: events.len(), tables });
        }
        commits
    }

    /// The parameters of rows.
    fn values(&self, rows: &[Row]) -> Vec<Values> {
        let mut all = Vec::new();
        for row in rows {
            let mut more = Vec::new();
            for (at, column) in row.columns().iter().enumerate() {
                all.push(match *column.type_() {
                    Type::INT8 => Box::new(row.get::<_, Option<i64>>(at)) as Values,
                    Type::BYTEA => {
                        let mut kept: Option<Vec<u8>> = row.get(at);
                        if let Some(packed) = kept.as_deref().filter(|_| !self.packed) {
                            // What stands in the columns after it is packed with it.
                            let mut parts = narrows_store::parts(packed);
                            kept = parts.remove(0);
                            more = parts;
                        } else if !more.is_empty() {
                            kept = more.remove(0);
                        }
                        Box::new(kept)
                    }
                    _ => Box::new(row.get::<_, Option<String>>(at)),
                });
            }
        }
        all
    }
}

/// Inserts so many rows like this one.
fn sql(table: &str, row: &Row, rows: usize) -> String {
    let width = row.columns().len();
    let marks = |row: usize| {
        let marks: Vec<_> = (1..=width).map(|n| format!("${}", row * width + n)).collect();
        format!("({})", marks.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(marks).collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(", "))
}

/// Returns the events that were inserted.
async fn insert_all(work: Arc<Vec<Work>>, connection: usize) -> usize {
    let Work { client, commits } = &work[connection];
    for commit in commits {
        insert(client, commit).await;
    }
    commits.iter().map(|c| c.events).sum()
}

/// One transaction. Nothing is waited for but its end, as a node does.
pub(crate) async fn insert(client: &Client, commit: &Commit) {
    let put = async |at: usize| {
        let Some((statement, values)) = &commit.tables[at] else { return Ok(0) };
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|c| c.as_ref() as &(dyn ToSql + Sync)).collect();
        client.execute(statement, &values).await
    };
    // They are sent in this order, all of them before the first is answered.
    let (begun, events, items, calls, done) = futures_util::future::join5(
        client.batch_execute("BEGIN"),
        put(0),
        put(1),
        put(2),
        client.batch_execute("COMMIT"),
    )
    .await;
    begun.expect("begin");
    assert_eq!(events.expect("events"), commit.events as u64);
    items.expect("items");
    calls.expect("calls");
    done.expect("commit");
}
