//! A connection to PostgreSQL, used by one thread at a time.
//!
//! Each connection has a runtime of its own, which runs only while the thread waits for a response.
//! Statements without a result are sent and checked later, so that a transaction does not wait a
//! round trip for each.

use super::sql::for_postgres;
use super::value::Value;
use crate::error::{Error, Result};
use futures_util::{FutureExt, TryStreamExt};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

mod config;
mod encode;
mod error;
mod pipeline;
mod transaction;

pub(crate) use config::PgAddress;
pub(super) use encode::column;
use encode::{Encoded, encode};
use error::{lost, trouble};
use pipeline::Gathered;
use transaction::Writing;

/// Prepared statements that are cached.
const MAX_STATEMENTS: usize = 256;
/// Rows fetched per batch when the number needed is unknown: the first batch, and later ones.
const FEW: usize = 16;
const MANY: usize = 256;
/// How long prepared statements are cached: on a new connection, and at most.
const SOON: Duration = Duration::from_secs(2);
const LATE: Duration = Duration::from_mins(10);
/// A connection idle for longer is checked before use: it may have been cut.
const FRESH: Duration = Duration::from_millis(200);

type Later = Pin<Box<dyn Future<Output = std::result::Result<u64, tokio_postgres::Error>> + Send>>;

type Answer =
    Pin<Box<dyn Future<Output = std::result::Result<Vec<Row>, tokio_postgres::Error>> + Send>>;

/// A query whose response is pending.
pub(crate) struct Asked(Answer);

/// A connection.
pub(crate) struct Pg {
    /// `None` only while the connection is dropped.
    runtime: Option<Runtime>,
    client: Arc<Client>,
    statements: RefCell<HashMap<String, Statement>>,
    /// When the cached statements expire, and the lifetime of the next ones: a plan made while a
    /// table was small is a bad one when the table is large.
    stale: Cell<(Instant, Duration)>,
    writing: Cell<Writing>,
    /// Statements that were sent and not yet checked.
    sent: RefCell<Vec<Later>>,
    /// Statements to execute before the commit, with the names they are ordered by.
    ends: RefCell<Vec<(String, Statement, Vec<Encoded>)>>,
    gathered: RefCell<Gathered>,
    /// How long a response may take.
    patience: Duration,
    broken: Cell<bool>,
    /// The number of open cursors.
    cursors: Cell<usize>,
    used: Cell<Instant>,
}

impl std::fmt::Debug for Pg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pg").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl Pg {
    /// Opens a connection.
    pub(crate) fn open(address: &PgAddress) -> Result<Pg> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::Io(e.to_string()))?;
        let client = runtime.block_on(async {
            let connected = tokio::time::timeout(address.patience, address.connect()).await;
            connected.map_err(|_| lost("it cannot be reached in time"))?
        })?;
        Ok(Pg {
            runtime: Some(runtime),
            client: Arc::new(client),
            statements: RefCell::default(),
            stale: Cell::new((Instant::now() + SOON, SOON)),
            writing: Cell::new(Writing::Told),
            sent: RefCell::default(),
            ends: RefCell::default(),
            gathered: RefCell::default(),
            patience: address.patience,
            broken: Cell::new(false),
            cursors: Cell::new(0),
            used: Cell::new(Instant::now()),
        })
    }

    /// Whether the connection is unusable.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.get() || self.client.is_closed()
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        if self.broken.get() {
            return Err(lost("the connection was lost"));
        }
        let waited = async { tokio::time::timeout(self.patience, answer).await };
        let Some(runtime) = &self.runtime else { return Err(Error::Closed) };
        let answer = runtime.block_on(waited);
        self.used.set(Instant::now());
        match answer {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(error)) => {
                let (error, over) = trouble(&error);
                self.broken.set(self.broken.get() || over || self.client.is_closed());
                Err(error)
            }
            Err(_) => {
                // Whether the statement was executed is unknown: this connection is not used again.
                self.broken.set(true);
                Err(lost("it does not answer"))
            }
        }
    }

    fn statement(&self, sql: &str) -> Result<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let made = self.wait(self.client.prepare(&for_postgres(sql)));
        let made = made.map_err(|e| self.blame(e))?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= MAX_STATEMENTS {
            statements.clear();
        }
        statements.insert(sql.to_owned(), made.clone());
        Ok(made)
    }

    fn ready(&self, sql: &str, values: &[Value<'_>]) -> Result<(Statement, Vec<Encoded>)> {
        self.tell_begin()?;
        self.send_gathered()?;
        let statement = self.statement(sql)?;
        let kinds = statement.params();
        if kinds.len() != values.len() {
            return Err(Error::Invalid("a statement has other parameters".to_owned()));
        }
        let values = values.iter().zip(kinds).map(|(v, kind)| encode(v, kind).map(Encoded));
        let values = values.collect::<Result<_>>()?;
        Ok((statement, values))
    }

    /// The first error of the statements sent before, if any: it is the cause of those that follow.
    fn blame(&self, error: Error) -> Error {
        match self.look_at_sent() {
            Err(first) if !self.broken.get() => first,
            _ => error,
        }
    }

    pub(super) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        let (statement, values) = self.ready(sql, values)?;
        let done = self.wait(self.client.execute_raw(&statement, values));
        done.map(|n| usize::try_from(n).unwrap_or(usize::MAX)).map_err(|e| self.blame(e))
    }

    pub(super) fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let (statement, values) = self.ready(sql, values)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|v| v as _).collect();
        self.wait(self.client.query(&statement, &values)).map_err(|e| self.blame(e))
    }

    /// Sends a query without waiting for its response.
    pub(crate) fn ask(&self, sql: &str, values: &[Value<'_>]) -> Result<Asked> {
        let (statement, values) = self.ready(sql, values)?;
        if self.broken.get() {
            return Err(lost("the connection was lost"));
        }
        let client = Arc::clone(&self.client);
        let mut answer: Answer = Box::pin(async move {
            client.query_raw(&statement, values).await?.try_collect::<Vec<Row>>().await
        });
        // The first poll sends it.
        Ok(match answer.as_mut().now_or_never() {
            Some(answer) => Asked(Box::pin(std::future::ready(answer))),
            None => Asked(answer),
        })
    }

    /// Waits for the response to a query that was sent.
    pub(crate) fn answers<T>(
        &self,
        Asked(answer): Asked,
        mut read: impl FnMut(&super::Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.wait(answer).map_err(|e| self.blame(e))?;
        rows.iter().map(|row| read(&super::Row::Postgres(row))).collect()
    }

    pub(crate) fn later(&self, sql: &str, values: &[Value<'_>]) -> Result<()> {
        let (statement, values) = self.ready(sql, values)?;
        self.send_statement(statement, values)
    }

    fn send_statement(&self, statement: Statement, values: Vec<Encoded>) -> Result<()> {
        let client = Arc::clone(&self.client);
        self.send(Box::pin(async move { client.execute_raw(&statement, values).await }))
    }

    pub(super) fn at_end(&self, order: &str, sql: &str, values: &[Value<'_>]) -> Result<()> {
        let (statement, values) = self.ready(sql, values)?;
        self.ends.borrow_mut().push((order.to_owned(), statement, values));
        Ok(())
    }

    /// Drops the statements that were to be executed before the commit.
    pub(crate) fn forget_ends(&self) {
        self.ends.borrow_mut().clear();
        self.forget_gathered();
    }

    /// Sends the statements to execute before the commit.
    pub(crate) fn send_ends(&self) -> Result<()> {
        self.send_gathered()?;
        let mut ends = std::mem::take(&mut *self.ends.borrow_mut());
        // The sort is stable: statements of one name keep their order.
        ends.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        ends.into_iter()
            .try_for_each(|(_, statement, values)| self.send_statement(statement, values))
    }

    /// Sends a statement without parameters and results.
    pub(crate) fn say(&self, sql: String) -> Result<()> {
        let client = Arc::clone(&self.client);
        self.send(Box::pin(async move { client.batch_execute(&sql).await.map(|()| 0) }))
    }

    /// Lets the runtime write what was sent: it runs only while the thread waits.
    pub(crate) fn flush(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(async {
                for _ in 0..2 {
                    tokio::task::yield_now().await;
                }
            });
        }
    }

    /// Executes a statement and waits; all statements sent before are checked too.
    pub(crate) fn say_and_wait(&self, sql: &str) -> Result<()> {
        let done = self.wait(self.client.batch_execute(sql));
        let before = self.look_at_sent();
        before.and(done)
    }

    fn send(&self, mut later: Later) -> Result<()> {
        if self.broken.get() {
            return Err(lost("the connection was lost"));
        }
        // The first poll sends it.
        match later.as_mut().now_or_never() {
            None => self.sent.borrow_mut().push(later),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let (error, over) = trouble(&error);
                self.broken.set(self.broken.get() || over);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Checks all statements that were sent; returns the first error.
    pub(crate) fn look_at_sent(&self) -> Result<()> {
        let sent = std::mem::take(&mut *self.sent.borrow_mut());
        let mut first = Ok(());
        for later in sent {
            let done = self.wait(later).map(|_| ());
            first = first.and(done);
        }
        first
    }

    /// Fetches rows in batches through a cursor, until `visit` breaks.
    pub(super) fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut take: impl FnMut(&Row) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // `visit` may run statements with cursors of their own.
        let name = self.cursors.get();
        self.later(&format!("DECLARE c{name} NO SCROLL CURSOR FOR {sql}"), values)?;
        self.cursors.set(name + 1);
        let mut some = FEW;
        let done = loop {
            let fetch = format!("FETCH FORWARD {some} FROM c{name}");
            let rows = match self.wait(self.client.query_typed(&fetch, &[])) {
                Ok(rows) => rows,
                Err(error) => break Err(self.blame(error)),
            };
            let enough = rows.iter().try_fold(ControlFlow::Continue(()), |so_far, row| {
                if so_far.is_break() { Ok(so_far) } else { take(row) }
            });
            match enough {
                Ok(ControlFlow::Continue(())) if rows.len() == some => {}
                enough => break enough.map(|_| ()),
            }
            some = MANY;
        };
        self.cursors.set(name);
        // A failed transaction closes its cursors.
        if done.is_ok() {
            self.say(format!("CLOSE c{name}"))?;
        }
        done
    }
}

impl Drop for Pg {
    fn drop(&mut self) {
        // Dropping a connection must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
