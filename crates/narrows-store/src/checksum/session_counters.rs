//! What the times and counts of a session's row are checked by: a sum that statements can say, and
//! change by what they change. What was changed by nobody stays wrong in it.

use crate::era;
use std::sync::LazyLock;

/// A column, and the number that stands for it.
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
/// A prime number: whatever an agent calls a time, a sum of these is a number.
const PRIME: i64 = 4_294_967_291;

/// What a column counts as.
fn term(name: &str, value: &str) -> String {
    match name {
        "created" | "updated" | "heard" => format!("(({value}) % {PRIME})"),
        _ => format!("({value})"),
    }
}

/// The sum, of what the columns are said to be.
pub(crate) fn of(column: impl Fn(&str) -> String) -> String {
    let terms = COLUMNS.map(|(name, by)| format!("{} * {by}", term(name, &column(name))));
    format!("({})", terms.join(" + "))
}

/// What becomes of a column.
pub(crate) enum Change<'a> {
    /// It is this.
    To(&'a str),
    /// It is this if something holds: that comes first.
    If(&'a str, &'a str),
    /// It is by so much more, which is a count.
    By(&'a str),
}

/// The sum, of the columns as they stand.
pub(crate) fn standing() -> String {
    of(str::to_owned)
}

/// The sum after some columns have changed.
pub(crate) fn changed(columns: &[(&str, Change<'_>)]) -> String {
    let more = columns.iter().filter_map(|(name, change)| {
        let (_, by) = COLUMNS.iter().find(|(column, _)| column == name)?;
        let is = term(name, &format!("session.{name}"));
        let to = |value: &str| format!("({} - {is}) * {by}", term(name, value));
        Some(match change {
            Change::To(value) => to(value),
            Change::If(holds, value) => format!("CASE WHEN {holds} THEN {} ELSE 0 END", to(value)),
            Change::By(more) => format!("({more}) * {by}"),
        })
    });
    let terms: Vec<String> = [String::from("session.figures")].into_iter().chain(more).collect();
    terms.join(" + ")
}

/// Whether the columns are as they were written, and what follows from them is what it was.
pub(crate) static HOLD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "(figures IS NULL OR figures = {}) AND updated_era = updated >> {}
         AND touched_era = touched >> {}",
        standing(),
        era::UPDATED,
        era::TOUCHED
    )
});

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn a_bit_of_any_of_them_changes_the_sum() {
        let db = Connection::open_in_memory().unwrap();
        let columns = COLUMNS.map(|(name, _)| name).join(", ");
        db.execute_batch(&format!("CREATE TABLE session ({columns}, figures)")).unwrap();
        let values = "1700000000000, 1700000000001, 1700000000002, 77, 123456789, 1, 2, 30, 4";
        db.execute_batch(&format!("INSERT INTO session VALUES ({values}, 0)")).unwrap();
        let whole = standing();
        db.execute_batch(&format!("UPDATE session SET figures = {whole}")).unwrap();
        let holds = |db: &Connection| {
            let sql = format!("SELECT figures = {whole} FROM session");
            db.query_row(&sql, [], |r| r.get::<_, bool>(0)).unwrap()
        };
        for (name, _) in COLUMNS {
            for bit in 0..40 {
                let flip = format!(
                    "UPDATE session SET {name} = CASE WHEN {name} & (1 << {bit}) = 0
                     THEN {name} + (1 << {bit}) ELSE {name} - (1 << {bit}) END"
                );
                db.execute_batch(&flip).unwrap();
                assert!(!holds(&db), "{name} {bit}");
                db.execute_batch(&flip).unwrap();
                assert!(holds(&db), "{name} {bit}");
            }
            let more = format!("{name} * 3 + 1");
            let change = changed(&[(name, Change::To(&more))]);
            db.execute_batch(&format!("UPDATE session SET figures = {change}, {name} = {more}"))
                .unwrap();
            assert!(holds(&db), "{name}");
        }
        let change = changed(&[
            ("bytes", Change::By("7")),
            ("created", Change::If("created > 5", "5")),
            ("heard", Change::If("created < 0", "6")),
        ]);
        let set = "bytes = bytes + 7, created = 5";
        db.execute_batch(&format!("UPDATE session SET figures = {change}, {set}")).unwrap();
        assert!(holds(&db));
    }
}
