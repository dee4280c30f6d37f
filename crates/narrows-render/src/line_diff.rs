//! The shortest edit script between the lines of two texts.
//!
//! [`MAX_EDITS`] bounds the search, so that the same texts give the same diff in bounded time. The
//! `similar` crate bounds its work by a deadline only: without one, two texts of a million short
//! lines took it 41 s; with one, an export would depend on the load of the machine.

#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::many_single_char_names,
    reason = "diagonals count from below zero; texts have fewer lines than any integer"
)]

use std::collections::HashMap;

/// A longer edit script is not searched for: everything between the common ends is replaced.
const MAX_EDITS: usize = 1500;

/// A line of the old text, of the new text, or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinePair {
    pub(crate) old: Option<usize>,
    pub(crate) new: Option<usize>,
}

impl LinePair {
    pub(crate) fn is_same(self) -> bool {
        self.old.is_some() && self.new.is_some()
    }
}

/// Returns the lines of both texts in order.
pub(crate) fn diff_lines<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<LinePair> {
    // Integers are cheaper to compare than lines.
    let mut line_ids: HashMap<&'a str, usize> = HashMap::new();
    let mut to_ids = |lines: &[&'a str]| -> Vec<usize> {
        let mut out = Vec::with_capacity(lines.len());
        for line in lines {
            let next = line_ids.len();
            out.push(*line_ids.entry(*line).or_insert(next));
        }
        out
    };
    let (a, b) = (to_ids(old), to_ids(new));
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);

    let same = |old: usize, new: usize| LinePair { old: Some(old), new: Some(new) };
    let mut out: Vec<LinePair> = (0..head).map(|i| same(i, i)).collect();
    out.extend(
        shortest_edit(a, b).into_iter().map(|pair| LinePair {
            old: pair.old.map(|i| i + head),
            new: pair.new.map(|i| i + head),
        }),
    );
    out.extend((0..tail).map(|i| same(head + a.len() + i, head + b.len() + i)));
    out
}

/// Searches the shortest edit script by the greedy algorithm of Myers: `frontiers[d][k + d]` is the
/// furthest index into `a` that `d` edits reach on the diagonal `k`.
fn shortest_edit(a: &[usize], b: &[usize]) -> Vec<LinePair> {
    let (n, m) = (a.len() as isize, b.len() as isize);
    let mut frontiers: Vec<Vec<isize>> = Vec::new();
    for d in 0..=(n + m).min(MAX_EDITS as isize) {
        let mut frontier = vec![0; 2 * d as usize + 1];
        for k in (-d..=d).step_by(2) {
            let mut x = if d == 0 { 0 } else { diagonal_start(&frontiers[d as usize - 1], d, k).0 };
            while x < n && x - k < m && x - k >= 0 && a[x as usize] == b[(x - k) as usize] {
                x += 1;
            }
            frontier[(k + d) as usize] = x;
            if x >= n && x - k >= m {
                frontiers.push(frontier);
                return backtrack(&frontiers, n, m);
            }
        }
        frontiers.push(frontier);
    }
    let removed = (0..a.len()).map(|i| LinePair { old: Some(i), new: None });
    removed.chain((0..b.len()).map(|i| LinePair { old: None, new: Some(i) })).collect()
}

/// Returns where edit `d` enters the diagonal `k`, and the diagonal it comes from.
fn diagonal_start(last: &[isize], d: isize, k: isize) -> (isize, isize) {
    let at = |k: isize| last.get((k + d - 1) as usize).copied();
    // An edit from the diagonal above adds a line of `b`, one from below removes a line of `a`.
    let (down, right) =
        (if k < d { at(k + 1) } else { None }, if k > -d { at(k - 1) } else { None });
    match (down, right) {
        (Some(down), Some(right)) if right + 1 > down => (right + 1, k - 1),
        (Some(down), _) => (down, k + 1),
        (None, Some(right)) => (right + 1, k - 1),
        (None, None) => (0, k),
    }
}

fn backtrack(frontiers: &[Vec<isize>], n: isize, m: isize) -> Vec<LinePair> {
    let mut out = Vec::new();
    let (mut x, mut k) = (n, n - m);
    for d in (0..frontiers.len() as isize).rev() {
        let (first, from) =
            if d == 0 { (0, k) } else { diagonal_start(&frontiers[d as usize - 1], d, k) };
        while x > first {
            x -= 1;
            out.push(LinePair { old: Some(x as usize), new: Some((x - k) as usize) });
        }
        if d > 0 {
            if from > k {
                out.push(LinePair { old: None, new: Some((x - k - 1) as usize) });
            } else {
                x -= 1;
                out.push(LinePair { old: Some(x as usize), new: None });
            }
            k = from;
        }
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the edits, and checks that the pairs cover both texts in order.
    fn edit_count(old: &[&str], new: &[&str]) -> usize {
        let pairs = diff_lines(old, new);
        let (mut o, mut n) = (0, 0);
        for pair in &pairs {
            if let Some(at) = pair.old {
                assert_eq!(at, o);
                o += 1;
            }
            if let Some(at) = pair.new {
                assert_eq!(at, n);
                n += 1;
            }
            if let (Some(a), Some(b)) = (pair.old, pair.new) {
                assert_eq!(old[a], new[b]);
            }
        }
        assert_eq!((o, n), (old.len(), new.len()));
        pairs.iter().filter(|s| !s.is_same()).count()
    }

    #[test]
    fn diff_is_the_shortest_edit_script() {
        assert_eq!(edit_count(&[], &[]), 0);
        assert_eq!(edit_count(&["a"], &[]), 1);
        assert_eq!(edit_count(&[], &["a", "b"]), 2);
        assert_eq!(edit_count(&["a", "b", "c"], &["a", "c"]), 1);
        assert_eq!(edit_count(&["a", "b"], &["x", "y"]), 4);
        let (old, new) = (["a", "b", "c", "a", "b", "b", "a"], ["c", "b", "a", "b", "a", "c"]);
        assert_eq!(edit_count(&old, &new), 5);
    }

    /// Compares every pair of short texts over two letters with their longest common subsequence.
    #[test]
    fn diff_matches_lcs_for_all_short_texts() {
        let text = |n: usize, len: usize| -> Vec<&str> {
            (0..len).map(|i| if n >> i & 1 == 0 { "a" } else { "b" }).collect()
        };
        for len in 0..5 {
            for (x, y) in (0..1 << len).flat_map(|x| (0..32).map(move |y| (x, y))) {
                let (old, new) = (text(x, len), text(y, 5));
                let mut best = vec![vec![0; 6]; len + 1];
                for i in 0..len {
                    for j in 0..5 {
                        best[i + 1][j + 1] = if old[i] == new[j] {
                            best[i][j] + 1
                        } else {
                            best[i][j + 1].max(best[i + 1][j])
                        };
                    }
                }
                assert_eq!(edit_count(&old, &new), len + 5 - 2 * best[len][5], "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn diff_beyond_max_edits_replaces_everything() {
        let (old, new): (Vec<String>, Vec<String>) = (
            (0..4000).map(|n| format!("o{n}")).collect(),
            (0..4000).map(|n| format!("n{n}")).collect(),
        );
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
        assert_eq!(edit_count(&old, &new), 8000);
    }
}
