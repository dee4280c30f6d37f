//! Costs of sessions, as reported by their agents.

use super::stats::{StatsFilter, StatsRow, name, only};
use crate::db::{Db, params};
use crate::error::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

/// Adds the costs of sessions to the rows. The total reported for a fork includes the cost of its
/// trunk, which is subtracted.
pub(super) fn add(
    db: &Db<'_>,
    filter: &StatsFilter,
    rows: &mut BTreeMap<String, StatsRow>,
    sessions: &mut BTreeMap<String, HashSet<i64>>,
) -> Result<()> {
    let told_by = told_by(db)?;
    let mut paid = shared(db, &told_by)?;
    let mut known: BTreeMap<String, HashSet<i64>> = BTreeMap::new();
    let (clause, values) = only(db, filter, None);
    let name = name(db, filter.by, "u.at", "u.model", "''");
    let sql = format!(
        "SELECT {name}, s.key, u.at, u.cost, own.key FROM usage u
         JOIN session own ON own.key = u.session
         JOIN session s ON s.key = coalesce(own.copy_of, own.key)
         WHERE s.left_out = 0 AND u.cost IS NOT NULL{clause} ORDER BY own.key, u.at"
    );
    db.each(&sql, &values, |r| {
        let (name, session): (String, i64) = (r.get(0)?, r.get(1)?);
        let (at, mut cost, own): (Option<i64>, f64, i64) = (r.get(2)?, r.get(3)?, r.get(4)?);
        if told_by.get(&session) != Some(&own) {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(left) = paid.get_mut(&own) {
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

/// Which of a session's logs determines its cost: the listed one, or else the one with the highest
/// cost.
fn told_by(db: &Db<'_>) -> Result<HashMap<i64, i64>> {
    let sql = "SELECT coalesce(own.copy_of, own.key), own.key, sum(u.cost) FROM usage u
         JOIN session own ON own.key = u.session WHERE u.cost IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2";
    let mut best: HashMap<i64, (i64, f64)> = HashMap::new();
    db.each(sql, &[], |r| {
        let (listed, own): (i64, i64) = (r.get(0)?, r.get(1)?);
        let cost = if own == listed { f64::INFINITY } else { r.get(2)? };
        let known = best.entry(listed).or_insert((own, cost));
        if cost > known.1 {
            *known = (own, cost);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(best.into_iter().map(|(listed, (own, _))| (listed, own)).collect())
}

/// The part of a fork's cost that belongs to its trunk: all that the trunk had reported when the
/// fork reported first. Of sessions with the same first answer, the trunk is the one that ended
/// first.
fn shared(db: &Db<'_>, told_by: &HashMap<i64, i64>) -> Result<HashMap<i64, f64>> {
    let families = "SELECT a.answer, coalesce(s.copy_of, s.key) FROM first_answer a
         JOIN session s ON s.key = a.session
         WHERE EXISTS (SELECT 1 FROM first_answer b
         WHERE b.answer = a.answer AND b.session <> a.session) ORDER BY a.answer, s.updated, s.key";
    let mut family: Vec<(String, i64)> = Vec::new();
    db.each(families, &[], |r| {
        let member: (String, i64) = (r.get(0)?, r.get(1)?);
        // A session may have two logs.
        let mut same = family.iter().rev().take_while(|(answer, _)| *answer == member.0);
        if !same.any(|known| *known == member) {
            family.push(member);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut told = HashMap::new();
    for chunk in family.chunk_by(|a, b| a.0 == b.0) {
        let mut costs = Vec::new();
        for (_, session) in chunk {
            let session = *told_by.get(session).unwrap_or(session);
            costs.push((session, of(db, session)?));
        }
        for (at, (fork, cost)) in costs.iter().enumerate().skip(1) {
            let Some((first, most)) = cost.first().copied() else { continue };
            // A fork of a fork includes the total of that fork.
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

/// The cost reports of a session, with their times.
fn of(db: &Db<'_>, session: i64) -> Result<Vec<(i64, f64)>> {
    let sql = "SELECT coalesce(at, 0), cost FROM usage
         WHERE session = ?1 AND cost IS NOT NULL ORDER BY at";
    db.all(sql, &params![session], |r| Ok((r.get(0)?, r.get(1)?)))
}
