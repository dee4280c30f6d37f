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
}

impl Bare<'_> {
    /// Makes empty tables with the same columns, storage and indexes, and what is to be inserted into
    /// them: the rows of events, items and calls under their keys, one an event, as they were before they
    /// were packed. All that a node writes beside them (the session's row, its
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
    async fn read(&self, client: &Client, table: &str, connections: usize, n: usize) -> Vec<Cells> {
        let rows = format!("SELECT * FROM {table} WHERE (key >> 32) % {connections} = {n}");
        let rows = client.query(&rows, &[]).await.expect("rows");
        let mut rows: Vec<Cells> = rows
            .iter()
            .flat_map(|row| if table == "event" { events(row) } else { vec![cells(row)] })
            .collect();
        let turn = i64::try_from(self.batch).expect("few");
        rows.sort_by_key(|row| (((row.key() & 0xffff_ffff) - 1) / turn, row.key()));
        rows.truncate(ROWS / connections);
        rows
    }

    /// Cuts them into commits: each event brings its item and its call.
    async fn commits(&self, client: &Client, all: &[Vec<Cells>; 3]) -> Vec<Commit> {
        let rows = self.rows.max(1);
        let (mut commits, mut known) = (Vec::new(), HashMap::new());
        for (at, events) in all[0].chunks(rows).enumerate() {
            let mut tables = [const { None }; 3];
            for (n, of) in all.iter().enumerate() {
                let end = of.len().min((at + 1) * rows);
                let part = &of[end.min(at * rows)..end];
                let Some(first) = part.first() else { continue };
                let sql = sql(&format!("bare_{}", TABLES[n]), first.0.len(), part.len());
                if !known.contains_key(&sql) {
                    let made = client.prepare(&sql).await.expect("an insert");
                    known.insert(sql.clone(), made);
                }
                tables[n] =
                    Some((known[&sql].clone(), part.iter().flat_map(Cells::values).collect()));
            }
            commits.push(Commit { events: events.len(), tables });
        }
        commits
    }
}

/// What a row holds.
struct Cells(Vec<Cell>);

#[derive(Clone)]
enum Cell {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl Cells {
    fn key(&self) -> i64 {
        match self.0.first() {
            Some(Cell::Int(Some(key))) => *key,
            _ => panic!("a row without a key"),
        }
    }

    /// Its parameters.
    fn values(&self) -> impl Iterator<Item = Values> {
        self.0.iter().cloned().map(|cell| match cell {
            Cell::Int(value) => Box::new(value) as Values,
            Cell::Text(value) => Box::new(value),
            Cell::Bytes(value) => Box::new(value),
        })
    }
}

/// A row as it was before it was packed.
fn cells(row: &Row) -> Cells {
    let cell = |(at, column): (usize, &tokio_postgres::Column)| match *column.type_() {
        Type::INT8 => Cell::Int(row.get(at)),
        Type::BYTEA => {
            let kept: Option<Vec<u8>> = row.get(at);
            Cell::Bytes(kept.map(|kept| narrows_store::plain(&kept)))
        }
        _ => Cell::Text(row.get(at)),
    };
    Cells(row.columns().iter().enumerate().map(cell).collect())
}

/// The events of a row of the log, each as a row of its own.
fn events(row: &Row) -> Vec<Cells> {
    let key: i64 = row.get(0);
    let part = |at: usize| row.get::<_, Option<&[u8]>>(at);
    let event = part(2).unwrap_or_default();
    let events = narrows_store::events_of(key, row.get(1), event, part(3), part(4));
    let cells = |event: narrows_store::EventRow| {
        let key = (key >> 32 << 32) | i64::try_from(event.seq).expect("seq");
        Cells(vec![
            Cell::Int(Some(key)),
            Cell::Text(Some(event.kind.into_owned())),
            Cell::Bytes(Some(event.event.into())),
            Cell::Bytes(event.changes.map(Vec::from)),
            Cell::Bytes(event.activity.map(Vec::from)),
        ])
    };
    events.expect("events").into_iter().map(cells).collect()
}

/// Inserts so many rows of so many columns.
fn sql(table: &str, width: usize, rows: usize) -> String {
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
