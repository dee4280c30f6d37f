//! A connection to PostgreSQL, used by one thread at a time.
//!
//! Each connection has a runtime of its own, which runs only while the thread waits for a response.
//! Statements without a result are sent and checked later, so that a transaction does not wait a
//! round trip for each.

use super::sql::to_postgres;
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

pub(crate) use config::PgConfig;
pub(super) use encode::column;
use encode::{EncodedParam, encode};
use error::{connection_lost, map_error};
use pipeline::CombinedStatement;
use transaction::TxState;

/// Prepared statements that are cached.
const MAX_STATEMENTS: usize = 256;
/// Rows fetched per batch when the number needed is unknown: the first batch, and later ones.
const FIRST_PAGE: usize = 16;
const NEXT_PAGE: usize = 256;
/// How long prepared statements are cached: on a new connection, and at most.
const MIN_STATEMENT_TTL: Duration = Duration::from_secs(2);
const MAX_STATEMENT_TTL: Duration = Duration::from_mins(10);
/// A connection idle for longer is checked before use: it may have been cut.
const IDLE_RECHECK: Duration = Duration::from_millis(200);

type PendingExecute =
    Pin<Box<dyn Future<Output = std::result::Result<u64, tokio_postgres::Error>> + Send>>;

type PendingRows =
    Pin<Box<dyn Future<Output = std::result::Result<Vec<Row>, tokio_postgres::Error>> + Send>>;

/// A query whose response is pending.
pub(crate) struct PendingQuery(PendingRows);

/// A connection.
pub(crate) struct Pg {
    /// `None` only while the connection is dropped.
    runtime: Option<Runtime>,
    client: Arc<Client>,
    statements: RefCell<HashMap<String, Statement>>,
    /// When the cached statements expire, and the lifetime of the next ones: a plan made while a
    /// table was small is a bad one when the table is large.
    expiry: Cell<(Instant, Duration)>,
    tx_state: Cell<TxState>,
    /// Statements that were sent and not yet checked.
    sent: RefCell<Vec<PendingExecute>>,
    /// Statements to execute before the commit, with the names they are ordered by.
    deferred: RefCell<Vec<(String, Statement, Vec<EncodedParam>)>>,
    combined: RefCell<CombinedStatement>,
    /// How long a response may take.
    response_timeout: Duration,
    broken: Cell<bool>,
    /// The number of open cursors.
    cursors: Cell<usize>,
    last_used: Cell<Instant>,
}

impl std::fmt::Debug for Pg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pg").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl Pg {
    /// Opens a connection.
    pub(crate) fn open(address: &PgConfig) -> Result<Pg> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::Io(e.to_string()))?;
        let client = runtime.block_on(async {
            let connected = tokio::time::timeout(address.response_timeout, address.connect()).await;
            connected.map_err(|_| connection_lost("connecting timed out"))?
        })?;
        Ok(Pg {
            runtime: Some(runtime),
            client: Arc::new(client),
            statements: RefCell::default(),
            expiry: Cell::new((Instant::now() + MIN_STATEMENT_TTL, MIN_STATEMENT_TTL)),
            tx_state: Cell::new(TxState::Begun),
            sent: RefCell::default(),
            deferred: RefCell::default(),
            combined: RefCell::default(),
            response_timeout: address.response_timeout,
            broken: Cell::new(false),
            cursors: Cell::new(0),
            last_used: Cell::new(Instant::now()),
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
            return Err(connection_lost("the connection was lost"));
        }
        let waited = async { tokio::time::timeout(self.response_timeout, answer).await };
        let Some(runtime) = &self.runtime else { return Err(Error::Closed) };
        let answer = runtime.block_on(waited);
        self.last_used.set(Instant::now());
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => {
                let (error, is_fatal) = map_error(&error);
                self.broken.set(self.broken.get() || is_fatal || self.client.is_closed());
                Err(error)
            }
            Err(_) => {
                // Whether the statement was executed is unknown: this connection is not used again.
                self.broken.set(true);
                Err(connection_lost("no response in time"))
            }
        }
    }

    fn statement(&self, sql: &str) -> Result<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let result = self.wait(self.client.prepare(&to_postgres(sql)));
        let result = result.map_err(|e| self.with_cause(e))?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= MAX_STATEMENTS {
            statements.clear();
        }
        statements.insert(sql.to_owned(), result.clone());
        Ok(result)
    }

    fn prepare(&self, sql: &str, values: &[Value<'_>]) -> Result<(Statement, Vec<EncodedParam>)> {
        self.send_begin()?;
        self.send_combined()?;
        let statement = self.statement(sql)?;
        let kinds = statement.params();
        if kinds.len() != values.len() {
            return Err(Error::Invalid("wrong number of statement parameters".to_owned()));
        }
        let values = values.iter().zip(kinds).map(|(v, kind)| encode(v, kind).map(EncodedParam));
        let values = values.collect::<Result<_>>()?;
        Ok((statement, values))
    }

    /// The first error of the statements sent before, if any: it is the cause of those that follow.
    fn with_cause(&self, error: Error) -> Error {
        match self.check_pipelined() {
            Err(first) if !self.broken.get() => first,
            _ => error,
        }
    }

    pub(super) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        let (statement, values) = self.prepare(sql, values)?;
        let done = self.wait(self.client.execute_raw(&statement, values));
        done.map(|n| usize::try_from(n).unwrap_or(usize::MAX)).map_err(|e| self.with_cause(e))
    }

    pub(super) fn query(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let (statement, values) = self.prepare(sql, values)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|v| v as _).collect();
        self.wait(self.client.query(&statement, &values)).map_err(|e| self.with_cause(e))
    }

    /// Sends a query without waiting for its response.
    pub(crate) fn send_query(&self, sql: &str, values: &[Value<'_>]) -> Result<PendingQuery> {
        let (statement, values) = self.prepare(sql, values)?;
        if self.broken.get() {
            return Err(connection_lost("the connection was lost"));
        }
        let client = Arc::clone(&self.client);
        let mut answer: PendingRows = Box::pin(async move {
            client.query_raw(&statement, values).await?.try_collect::<Vec<Row>>().await
        });
        // The first poll sends it.
        Ok(match answer.as_mut().now_or_never() {
            Some(answer) => PendingQuery(Box::pin(std::future::ready(answer))),
            None => PendingQuery(answer),
        })
    }

    /// Waits for the response to a query that was sent.
    pub(crate) fn query_responses<T>(
        &self,
        PendingQuery(answer): PendingQuery,
        mut read: impl FnMut(&super::Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.wait(answer).map_err(|e| self.with_cause(e))?;
        rows.iter().map(|row| read(&super::Row::Postgres(row))).collect()
    }

    pub(crate) fn execute_pipelined(&self, sql: &str, values: &[Value<'_>]) -> Result<()> {
        let (statement, values) = self.prepare(sql, values)?;
        self.send_statement(statement, values)
    }

    fn send_statement(&self, statement: Statement, values: Vec<EncodedParam>) -> Result<()> {
        let client = Arc::clone(&self.client);
        self.send(Box::pin(async move { client.execute_raw(&statement, values).await }))
    }

    pub(super) fn execute_before_commit(
        &self,
        order: &str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<()> {
        let (statement, values) = self.prepare(sql, values)?;
        self.deferred.borrow_mut().push((order.to_owned(), statement, values));
        Ok(())
    }

    /// Drops the statements that were to be executed before the commit.
    pub(crate) fn drop_deferred(&self) {
        self.deferred.borrow_mut().clear();
        self.drop_combined();
    }

    /// Sends the statements to execute before the commit.
    pub(crate) fn send_deferred(&self) -> Result<()> {
        self.send_combined()?;
        let mut deferred = std::mem::take(&mut *self.deferred.borrow_mut());
        // The sort is stable: statements of one name keep their order.
        deferred.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        deferred
            .into_iter()
            .try_for_each(|(_, statement, values)| self.send_statement(statement, values))
    }

    /// Sends a statement without parameters and results.
    pub(crate) fn send_batch(&self, sql: String) -> Result<()> {
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
    pub(crate) fn batch_execute(&self, sql: &str) -> Result<()> {
        let done = self.wait(self.client.batch_execute(sql));
        let pipelined = self.check_pipelined();
        pipelined.and(done)
    }

    fn send(&self, mut pending: PendingExecute) -> Result<()> {
        if self.broken.get() {
            return Err(connection_lost("the connection was lost"));
        }
        // The first poll sends it.
        match pending.as_mut().now_or_never() {
            None => self.sent.borrow_mut().push(pending),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let (error, is_fatal) = map_error(&error);
                self.broken.set(self.broken.get() || is_fatal);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Checks all statements that were sent; returns the first error.
    pub(crate) fn check_pipelined(&self) -> Result<()> {
        let sent = std::mem::take(&mut *self.sent.borrow_mut());
        let mut first = Ok(());
        for pending in sent {
            let done = self.wait(pending).map(|_| ());
            first = first.and(done);
        }
        first
    }

    /// Fetches rows in batches through a cursor, until `visit` breaks.
    pub(super) fn query_each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut visit: impl FnMut(&Row) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // `visit` may run statements with cursors of their own.
        let name = self.cursors.get();
        self.execute_pipelined(&format!("DECLARE c{name} NO SCROLL CURSOR FOR {sql}"), values)?;
        self.cursors.set(name + 1);
        let mut page = FIRST_PAGE;
        let done = loop {
            let fetch = format!("FETCH FORWARD {page} FROM c{name}");
            let rows = match self.wait(self.client.query_typed(&fetch, &[])) {
                Ok(rows) => rows,
                Err(error) => break Err(self.with_cause(error)),
            };
            let outcome = rows.iter().try_fold(ControlFlow::Continue(()), |so_far, row| {
                if so_far.is_break() { Ok(so_far) } else { visit(row) }
            });
            match outcome {
                Ok(ControlFlow::Continue(())) if rows.len() == page => {}
                outcome => break outcome.map(|_| ()),
            }
            page = NEXT_PAGE;
        };
        self.cursors.set(name);
        // A failed transaction closes its cursors.
        if done.is_ok() {
            self.send_batch(format!("CLOSE c{name}"))?;
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
