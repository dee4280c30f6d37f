//! Costs of sessions, as reported by their agents.

use super::stats::{StatsFilter, StatsRow, filter_condition, group_expr};
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
    let logs_with_cost = logs_with_cost(db)?;
    let mut trunk_cost = trunk_costs(db, &logs_with_cost)?;
    let mut known: BTreeMap<String, HashSet<i64>> = BTreeMap::new();
    let (clause, values) = filter_condition(db, filter, None);
    let name = group_expr(db, filter.by, "u.at", "u.model", "''");
    let sql = format!(
        "SELECT {name}, s.key, u.at, u.cost, own.key FROM usage u
         JOIN session own ON own.key = u.session
         JOIN session s ON s.key = coalesce(own.copy_of, own.key)
         WHERE s.left_out = 0 AND u.cost IS NOT NULL{clause} ORDER BY own.key, u.at"
    );
    db.query_each(&sql, &values, |r| {
        let (name, session): (String, i64) = (r.get(0)?, r.get(1)?);
        let (at, mut cost, own): (Option<i64>, f64, i64) = (r.get(2)?, r.get(3)?, r.get(4)?);
        if logs_with_cost.get(&session) != Some(&own) {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(left) = trunk_cost.get_mut(&own) {
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
fn logs_with_cost(db: &Db<'_>) -> Result<HashMap<i64, i64>> {
    let sql = "SELECT coalesce(own.copy_of, own.key), own.key, sum(u.cost) FROM usage u
         JOIN session own ON own.key = u.session WHERE u.cost IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2";
    let mut best: HashMap<i64, (i64, f64)> = HashMap::new();
    db.query_each(sql, &[], |r| {
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
fn trunk_costs(db: &Db<'_>, logs_with_cost: &HashMap<i64, i64>) -> Result<HashMap<i64, f64>> {
    let families = "SELECT a.answer, coalesce(s.copy_of, s.key) FROM first_answer a
         JOIN session s ON s.key = a.session
         WHERE EXISTS (SELECT 1 FROM first_answer b
         WHERE b.answer = a.answer AND b.session <> a.session) ORDER BY a.answer, s.updated, s.key";
    let mut family: Vec<(String, i64)> = Vec::new();
    db.query_each(families, &[], |r| {
        let member: (String, i64) = (r.get(0)?, r.get(1)?);
        // A session may have two logs.
        let mut same = family.iter().rev().take_while(|(answer, _)| *answer == member.0);
        if !same.any(|known| *known == member) {
            family.push(member);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut trunk_cost_by_fork = HashMap::new();
    for chunk in family.chunk_by(|a, b| a.0 == b.0) {
        let mut costs = Vec::new();
        for (_, session) in chunk {
            let session = *logs_with_cost.get(session).unwrap_or(session);
            costs.push((session, cost_reports(db, session)?));
        }
        for (at, (fork, cost)) in costs.iter().enumerate().skip(1) {
            let Some((first, most)) = cost.first().copied() else { continue };
            // A fork of a fork includes the total of that fork.
            let before = |(_, trunk): &(i64, Vec<(i64, f64)>)| {
                trunk.iter().take_while(|(at, _)| *at <= first).map(|(_, cost)| cost).sum::<f64>()
            };
            let trunk = costs[..at].iter().map(before).fold(0.0, f64::max).min(most);
            if trunk > 0.0 {
                trunk_cost_by_fork.insert(*fork, trunk);
            }
        }
    }
    Ok(trunk_cost_by_fork)
}

/// The cost reports of a session, with their times.
fn cost_reports(db: &Db<'_>, session: i64) -> Result<Vec<(i64, f64)>> {
    let sql = "SELECT coalesce(at, 0), cost FROM usage
         WHERE session = ?1 AND cost IS NOT NULL ORDER BY at";
    db.query_all(sql, &params![session], |r| Ok((r.get(0)?, r.get(1)?)))
}
