//! Statements that do not need each other, sent as one: each that is sent by itself is a way of its own
//! through PostgreSQL, and an answer that wakes whoever waits.

use super::Pg;
use super::wire::{Encoded, encode};
use crate::db::sql::for_postgres;
use crate::db::value::{Value, other};
use crate::error::Result;
use std::fmt::Write;
use tokio_postgres::types::Type;

/// What was gathered.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    sql: Vec<String>,
    values: Vec<Encoded>,
}

/// The type of a list of these.
fn list_of(kind: &str) -> Result<Type> {
    Ok(match kind {
        "bigint" => Type::INT8_ARRAY,
        "text" => Type::TEXT_ARRAY,
        "bytea" => Type::BYTEA_ARRAY,
        _ => return Err(other()),
    })
}

/// A statement whose parameters come after so many others.
fn after(sql: &str, others: usize) -> String {
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
    /// Gathers a statement whose parameters are lists. It is sent with others, before whatever is sent
    /// by itself. None of them sees what the others do.
    pub(in crate::db) fn gather(
        &self,
        sql: &str,
        kinds: &[&str],
        lists: &[Value<'_>],
    ) -> Result<()> {
        let mut gathered = self.gathered.borrow_mut();
        let sql = after(&for_postgres(sql), gathered.values.len());
        for (list, kind) in lists.iter().zip(kinds) {
            gathered.values.push(Encoded(encode(list, &list_of(kind)?)?));
        }
        gathered.sql.push(sql);
        Ok(())
    }

    /// Sends what was gathered.
    pub(super) fn send_gathered(&self) -> Result<()> {
        let Gathered { mut sql, values } = std::mem::take(&mut *self.gathered.borrow_mut());
        let Some(last) = sql.pop() else { return Ok(()) };
        let before: Vec<String> =
            sql.iter().enumerate().map(|(n, sql)| format!("g{n} AS ({sql})")).collect();
        let with = if before.is_empty() { "" } else { "WITH " };
        let statement = self.statement(&format!("{with}{} {last}", before.join(", ")))?;
        self.send_statement(statement, values)
    }

    /// Forgets what was gathered for a transaction that has no end.
    pub(super) fn forget_gathered(&self) {
        *self.gathered.borrow_mut() = Gathered::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_on() {
        assert_eq!(after("a ($1, $2, $11)", 3), "a ($4, $5, $14)");
        assert_eq!(after("a", 3), "a");
    }
}
