//! What sessions cost, as their agents report it.

use super::{StatsFilter, StatsRow, name, only};
use crate::copies::COUNTED;
use crate::db::{Db, params};
use crate::error::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

/// Adds the cost of sessions to the rows. The total that the agent of a fork reports begins with what
/// its trunk had cost: that is the trunk's.
pub(super) fn add(
    db: &Db<'_>,
    filter: &StatsFilter,
    rows: &mut BTreeMap<String, StatsRow>,
    sessions: &mut BTreeMap<String, HashSet<i64>>,
) -> Result<()> {
    let mut paid = shared(db)?;
    let mut known: BTreeMap<String, HashSet<i64>> = BTreeMap::new();
    let (clause, values) = only(db, filter, None);
    let name = name(db, filter.by, "u.at", "u.model", "''");
    let sql = format!(
        "SELECT {name}, s.key, u.at, u.cost, own.key FROM usage u
         JOIN session own ON own.key = u.session
         {COUNTED} AND u.cost IS NOT NULL{clause} ORDER BY own.key, u.at"
    );
    db.each(&sql, &values, |r| {
        let (name, session): (String, i64) = (r.get(0)?, r.get(1)?);
        let (at, mut cost): (Option<i64>, f64) = (r.get(2)?, r.get(3)?);
        if let Some(left) = paid.get_mut(&r.get::<i64>(4)?) {
            let trunk = left.min(cost);
            *left -= trunk;
            cost -= trunk;
        }
        let early = filter.since.is_some_and(|since| at.is_none_or(|at| at < since));
        let late = filter.until.is_some_and(|until| at.is_none_or(|at| at >= until));
        if !early && !late {
            sessions.entry(name.clone()).or_default().insert(session);
            known.entry(name.clone()).or_default().insert(session);
            let row = rows.entry(name.clone()).or_default();
            row.name = name;
            *row.cost_usd.get_or_insert(0.0) += cost;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for (name, row) in rows {
        row.cost_sessions = known.get(name).map_or(0, |s| s.len() as u64);
    }
    Ok(())
}

/// What of the cost that forks report is their trunk's: all that the trunk had told when the fork told
/// its first. Of several sessions with the same first answer, the trunk is the one that ended first.
fn shared(db: &Db<'_>) -> Result<HashMap<i64, f64>> {
    let families = "SELECT a.answer, s.key FROM first_answer a JOIN session s ON s.key = a.session
         WHERE EXISTS (SELECT 1 FROM first_answer b
         WHERE b.answer = a.answer AND b.session <> a.session) ORDER BY a.answer, s.updated, s.key";
    let mut family: Vec<(String, i64)> = Vec::new();
    db.each(families, &[], |r| {
        family.push((r.get(0)?, r.get(1)?));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut told = HashMap::new();
    for chunk in family.chunk_by(|a, b| a.0 == b.0) {
        let mut costs = Vec::new();
        for (_, session) in chunk {
            costs.push((*session, of(db, *session)?));
        }
        for (at, (fork, cost)) in costs.iter().enumerate().skip(1) {
            let Some((first, most)) = cost.first().copied() else { continue };
            // A fork of a fork has the total of that one.
            let before = |(_, trunk): &(i64, Vec<(i64, f64)>)| {
                trunk.iter().take_while(|(at, _)| *at <= first).map(|(_, cost)| cost).sum::<f64>()
            };
            let trunk = costs[..at].iter().map(before).fold(0.0, f64::max).min(most);
            if trunk > 0.0 {
                told.insert(*fork, trunk);
            }
        }
    }
    Ok(told)
}

/// What a session told of its cost, and when.
fn of(db: &Db<'_>, session: i64) -> Result<Vec<(i64, f64)>> {
    let sql = "SELECT coalesce(at, 0), cost FROM usage
         WHERE session = ?1 AND cost IS NOT NULL ORDER BY at";
    db.all(sql, &params![session], |r| Ok((r.get(0)?, r.get(1)?)))
}
