//! The checksum of the times and counters in a session's row (column `figures`).
//!
//! It is a linear sum that SQL statements update by the differences of the columns they change. A
//! column that changed without a statement therefore never matches the sum again.

/// The covered columns, each with its factor.
const COLUMNS: [(&str, i64); 9] = [
    ("created", 8191),
    ("updated", 16381),
    ("heard", 32749),
    ("touched", 4093),
    ("bytes", 2039),
    ("ended", 131_071),
    ("waiting", 65_521),
    ("calls", 1021),
    ("failed", 509),
];
/// A prime modulus for times: agents report arbitrary times, and the sum must not overflow.
const TIME_MODULUS: i64 = 4_294_967_291;

/// The SQL of one column's term.
fn term(name: &str, value: &str) -> String {
    match name {
        "created" | "updated" | "heard" => format!("(({value}) % {TIME_MODULUS})"),
        _ => format!("({value})"),
    }
}

/// The SQL of the sum, with `column` giving the expression for each column.
pub(crate) fn sum_sql(column: impl Fn(&str) -> String) -> String {
    let terms = COLUMNS.map(|(name, factor)| format!("{} * {factor}", term(name, &column(name))));
    format!("({})", terms.join(" + "))
}

/// How a statement changes a column.
pub(crate) enum ColumnChange<'a> {
    /// Sets the column to this value.
    To(&'a str),
    /// If the condition (first) holds, sets the column to the value (second).
    If(&'a str, &'a str),
    /// Adds this to the column, which is a counter.
    By(&'a str),
}

/// The SQL of the sum over the columns of a row.
pub(crate) fn current_sum_sql() -> String {
    sum_sql(str::to_owned)
}

/// The SQL of the sum after some columns have changed.
pub(crate) fn changed_sum_sql(columns: &[(&str, ColumnChange<'_>)]) -> String {
    let differences = columns.iter().filter_map(|(name, change)| {
        let (_, factor) = COLUMNS.iter().find(|(column, _)| column == name)?;
        let old = term(name, &format!("session.{name}"));
        let to = |value: &str| format!("({} - {old}) * {factor}", term(name, value));
        Some(match change {
            ColumnChange::To(value) => to(value),
            ColumnChange::If(condition, value) => {
                format!("CASE WHEN {condition} THEN {} ELSE 0 END", to(value))
            }
            ColumnChange::By(delta) => format!("({delta}) * {factor}"),
        })
    });
    let terms: Vec<String> =
        [String::from("session.figures")].into_iter().chain(differences).collect();
    terms.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn counter_sum_changes_with_every_flipped_bit() {
        let db = Connection::open_in_memory().unwrap();
        let columns = COLUMNS.map(|(name, _)| name).join(", ");
        db.execute_batch(&format!("CREATE TABLE session ({columns}, figures)")).unwrap();
        let values = "1700000000000, 1700000000001, 1700000000002, 77, 123456789, 1, 2, 30, 4";
        db.execute_batch(&format!("INSERT INTO session VALUES ({values}, 0)")).unwrap();
        let current = current_sum_sql();
        db.execute_batch(&format!("UPDATE session SET figures = {current}")).unwrap();
        let matches = |db: &Connection| {
            let sql = format!("SELECT figures = {current} FROM session");
            db.query_row(&sql, [], |r| r.get::<_, bool>(0)).unwrap()
        };
        for (name, _) in COLUMNS {
            for bit in 0..40 {
                let flip = format!(
                    "UPDATE session SET {name} = CASE WHEN {name} & (1 << {bit}) = 0
                     THEN {name} + (1 << {bit}) ELSE {name} - (1 << {bit}) END"
                );
                db.execute_batch(&flip).unwrap();
                assert!(!matches(&db), "{name} {bit}");
                db.execute_batch(&flip).unwrap();
                assert!(matches(&db), "{name} {bit}");
            }
            let value = format!("{name} * 3 + 1");
            let sum = changed_sum_sql(&[(name, ColumnChange::To(&value))]);
            db.execute_batch(&format!("UPDATE session SET figures = {sum}, {name} = {value}"))
                .unwrap();
            assert!(matches(&db), "{name}");
        }
        let sum = changed_sum_sql(&[
            ("bytes", ColumnChange::By("7")),
            ("created", ColumnChange::If("created > 5", "5")),
            ("heard", ColumnChange::If("created < 0", "6")),
        ]);
        let set = "bytes = bytes + 7, created = 5";
        db.execute_batch(&format!("UPDATE session SET figures = {sum}, {set}")).unwrap();
        assert!(matches(&db));
    }
}
