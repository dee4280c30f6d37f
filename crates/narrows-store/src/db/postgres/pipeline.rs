//! Combining independent statements into one (a CTE): each separate statement costs server work and
//! a wake-up of the waiting thread.

use super::Pg;
use super::encode::{EncodedParam, encode};
use crate::db::sql::to_postgres;
use crate::db::value::{Value, mismatch};
use crate::error::Result;
use std::fmt::Write;
use tokio_postgres::Statement;
use tokio_postgres::types::Type;

/// The combined statement.
#[derive(Debug, Default)]
pub(super) struct CombinedStatement {
    sql: Vec<String>,
    values: Vec<EncodedParam>,
    /// The statement that must change as many rows as its first list has, and the number of that
    /// parameter.
    each: Option<(usize, usize)>,
}

/// The array type of an element type.
fn list_of(kind: &str) -> Result<Type> {
    Ok(match kind {
        "bigint" => Type::INT8_ARRAY,
        "text" => Type::TEXT_ARRAY,
        "bytea" => Type::BYTEA_ARRAY,
        _ => return Err(mismatch()),
    })
}

/// Renumbers the parameters of a statement that follows `others` parameters.
fn shift_parameters(sql: &str, others: usize) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    let mut parts = sql.split('$');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number = part[..digits].parse::<usize>().unwrap_or(0);
        let _ = write!(out, "${}{}", number + others, &part[digits..]);
    }
    out
}

impl Pg {
    /// Adds a statement whose parameters are lists. It is sent before any separate statement. The
    /// combined statements do not see each other's changes.
    pub(in crate::db) fn combine(
        &self,
        sql: &str,
        kinds: &[&str],
        lists: &[Value<'_>],
    ) -> Result<()> {
        let mut combined = self.combined.borrow_mut();
        let sql = shift_parameters(&to_postgres(sql), combined.values.len());
        for (list, kind) in lists.iter().zip(kinds) {
            combined.values.push(EncodedParam(encode(list, &list_of(kind)?)?));
        }
        combined.sql.push(sql);
        Ok(())
    }

    /// Like [`Pg::combine`], for a statement that must change one row per list entry; else the
    /// whole combined statement fails. At most one of these is combined at a time.
    pub(in crate::db) fn combine_each(
        &self,
        sql: &str,
        kinds: &[&str],
        lists: &[Value<'_>],
    ) -> Result<()> {
        if self.combined.borrow().each.is_some() {
            self.send_combined()?;
        }
        let first = self.combined.borrow().values.len() + 1;
        self.combine(&format!("{sql} RETURNING 1"), kinds, lists)?;
        let mut combined = self.combined.borrow_mut();
        combined.each = Some((combined.sql.len() - 1, first));
        Ok(())
    }

    /// Builds the combined statement.
    fn take_combined(&self) -> Result<Option<(Statement, Vec<EncodedParam>)>> {
        let CombinedStatement { mut sql, values, each } =
            std::mem::take(&mut *self.combined.borrow_mut());
        let last = match each {
            // A failing cast aborts the transaction. PostgreSQL evaluates the main query first.
            Some((at, list)) => Some(format!(
                "SELECT CASE WHEN count(*) = cardinality(${list}) THEN 0 ELSE
                 CAST('narrows: a row was changed elsewhere meanwhile ' || count(*) AS INT) END FROM g{at}"
            )),
            None => sql.pop(),
        };
        let Some(last) = last else { return Ok(None) };
        let before: Vec<String> =
            sql.iter().enumerate().map(|(n, sql)| format!("g{n} AS ({sql})")).collect();
        let with = if before.is_empty() { "" } else { "WITH " };
        let statement = self.statement(&format!("{with}{} {last}", before.join(", ")))?;
        Ok(Some((statement, values)))
    }

    /// Sends the combined statement.
    pub(super) fn send_combined(&self) -> Result<()> {
        match self.take_combined()? {
            Some((statement, values)) => self.send_statement(statement, values),
            None => Ok(()),
        }
    }

    /// Executes the combined statement as a transaction of its own.
    pub(super) fn execute_combined(&self) -> Result<()> {
        let Some((statement, values)) = self.take_combined()? else { return Ok(()) };
        self.wait(self.client.execute_raw(&statement, values)).map(|_| ())
    }

    /// Drops the combined statement of an aborted transaction.
    pub(super) fn drop_combined(&self) {
        *self.combined.borrow_mut() = CombinedStatement::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_renumbered() {
        assert_eq!(shift_parameters("a ($1, $2, $11)", 3), "a ($4, $5, $14)");
        assert_eq!(shift_parameters("a", 3), "a");
    }
}
