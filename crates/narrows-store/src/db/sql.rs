//! Translation of the common SQL for each database.

use std::fmt::Write;

/// Translates a statement for PostgreSQL.
pub(super) fn to_postgres(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    let mut rest = sql;
    let mut next = 1;
    while let Some(at) = rest.find(['?', '/', 'I', '\'']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(text) = rest.strip_prefix("/*pg") {
            let (only, after) = text.split_once("*/").unwrap_or((text, ""));
            out.push_str(only);
            rest = after;
        } else if let Some(index) = rest.strip_prefix("INDEXED BY ") {
            rest = index.trim_start_matches(|c: char| c == '_' || c.is_ascii_alphanumeric());
        } else if let Some(parameter) = rest.strip_prefix('?') {
            let digits = parameter.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                let _ = write!(out, "${}", &parameter[..digits]);
            } else {
                let _ = write!(out, "${next}");
                next += 1;
            }
            rest = &parameter[digits..];
        } else if let Some(text) = rest.strip_prefix('\'') {
            // String literals are copied verbatim.
            let end = text.find('\'').map_or(text.len(), |end| end + 1);
            out.push('\'');
            out.push_str(&text[..end]);
            rest = &text[end..];
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// A statement that inserts one row.
pub(super) fn insert_one(table: &str, columns: usize, then: &str) -> String {
    let placeholders: Vec<String> = (1..=columns).map(|n| format!("?{n}")).collect();
    format!("INSERT INTO {table} VALUES ({}) {then}", placeholders.join(", "))
}

/// A statement that inserts rows given as one list per column.
pub(super) fn insert_many(table: &str, columns: &[&str], then: &str) -> String {
    let lists: Vec<String> =
        (1..).zip(columns).map(|(n, kind)| format!("?{n}::{kind}[]")).collect();
    let lists = lists.join(", ");
    format!("INSERT INTO {table} SELECT * FROM unnest({lists}) {then}")
}

/// A statement with one row of values as `{v}`.
pub(super) fn with_row(sql: &str, columns: &[(&str, &str)]) -> String {
    let values: Vec<String> =
        (1..).zip(columns).map(|(n, (name, _))| format!("?{n} AS {name}")).collect();
    sql.replace("{v}", &format!("(SELECT {}) AS v", values.join(", ")))
}

/// A statement with rows given as one list per column as `{v}`.
pub(super) fn with_rows(sql: &str, columns: &[(&str, &str)]) -> String {
    let lists: Vec<String> =
        (1..).zip(columns).map(|(n, (_, kind))| format!("?{n}::{kind}[]")).collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let rows = format!("unnest({}) AS v ({})", lists.join(", "), names.join(", "));
    sql.replace("{v}", &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_translated_to_postgres() {
        for (rows, translated) in [
            (
                "SELECT a FROM t WHERE b = ?1 AND c = ?12",
                "SELECT a FROM t WHERE b = $1 AND c = $12",
            ),
            ("x IN (?, ?) LIMIT ?", "x IN ($1, $2) LIMIT $3"),
            ("FROM item INDEXED BY item_top WHERE a", "FROM item  WHERE a"),
            ("SELECT seq FROM s /*pg FOR UPDATE*/", "SELECT seq FROM s  FOR UPDATE"),
            ("a = '?1 /*pg' AND b = ?1", "a = '?1 /*pg' AND b = $1"),
            ("a / 2, ID", "a / 2, ID"),
        ] {
            assert_eq!(to_postgres(rows), translated);
        }
    }
}
