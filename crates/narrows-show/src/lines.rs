//! Which lines two texts share: a short way from one to the other.

#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::many_single_char_names,
    reason = "diagonals count from below zero; texts have fewer lines than any integer"
)]

use std::collections::HashMap;

/// More changes than this are not looked for: everything between is replaced.
const MAX_CHANGES: usize = 1500;

/// A line of the old text, of the new one, or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) old: Option<usize>,
    pub(crate) new: Option<usize>,
}

impl Step {
    pub(crate) fn is_same(self) -> bool {
        self.old.is_some() && self.new.is_some()
    }
}

/// The steps from the old lines to the new ones, in order.
pub(crate) fn steps<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Step> {
    // Lines as numbers, so that comparing them is cheap.
    let mut names: HashMap<&'a str, usize> = HashMap::new();
    let mut numbers = |lines: &[&'a str]| -> Vec<usize> {
        let mut out = Vec::with_capacity(lines.len());
        for line in lines {
            let next = names.len();
            out.push(*names.entry(*line).or_insert(next));
        }
        out
    };
    let (a, b) = (numbers(old), numbers(new));
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);

    let same = |old: usize, new: usize| Step { old: Some(old), new: Some(new) };
    let mut out: Vec<Step> = (0..head).map(|i| same(i, i)).collect();
    out.extend(
        middle(a, b)
            .into_iter()
            .map(|step| Step { old: step.old.map(|i| i + head), new: step.new.map(|i| i + head) }),
    );
    out.extend((0..tail).map(|i| same(head + a.len() + i, head + b.len() + i)));
    out
}

/// The shortest way, found by going as far as possible with no change, one change, two, … (Myers).
/// `ways[d][k + d]` is how far into `a` one gets with `d` changes on the diagonal `k`.
fn middle(a: &[usize], b: &[usize]) -> Vec<Step> {
    let (n, m) = (a.len() as isize, b.len() as isize);
    let mut ways: Vec<Vec<isize>> = Vec::new();
    for d in 0..=(n + m).min(MAX_CHANGES as isize) {
        let mut way = vec![0; 2 * d as usize + 1];
        for k in (-d..=d).step_by(2) {
            let mut x = if d == 0 { 0 } else { begin(&ways[d as usize - 1], d, k).0 };
            while x < n && x - k < m && x - k >= 0 && a[x as usize] == b[(x - k) as usize] {
                x += 1;
            }
            way[(k + d) as usize] = x;
            if x >= n && x - k >= m {
                ways.push(way);
                return back(&ways, n, m);
            }
        }
        ways.push(way);
    }
    let removed = (0..a.len()).map(|i| Step { old: Some(i), new: None });
    removed.chain((0..b.len()).map(|i| Step { old: None, new: Some(i) })).collect()
}

/// Where the diagonal `k` begins with the change number `d`, and from which diagonal one comes.
fn begin(last: &[isize], d: isize, k: isize) -> (isize, isize) {
    let at = |k: isize| last.get((k + d - 1) as usize).copied();
    // A line of `b` is added when one comes from above, one of `a` removed when from below.
    let (down, right) =
        (if k < d { at(k + 1) } else { None }, if k > -d { at(k - 1) } else { None });
    match (down, right) {
        (Some(down), Some(right)) if right + 1 > down => (right + 1, k - 1),
        (Some(down), _) => (down, k + 1),
        (None, Some(right)) => (right + 1, k - 1),
        (None, None) => (0, k),
    }
}

fn back(ways: &[Vec<isize>], n: isize, m: isize) -> Vec<Step> {
    let mut out = Vec::new();
    let (mut x, mut k) = (n, n - m);
    for d in (0..ways.len() as isize).rev() {
        let (first, from) = if d == 0 { (0, k) } else { begin(&ways[d as usize - 1], d, k) };
        while x > first {
            x -= 1;
            out.push(Step { old: Some(x as usize), new: Some((x - k) as usize) });
        }
        if d > 0 {
            if from > k {
                out.push(Step { old: None, new: Some((x - k - 1) as usize) });
            } else {
                x -= 1;
                out.push(Step { old: Some(x as usize), new: None });
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

    /// Whether the steps go through both texts in order, and how many changes they have.
    fn changes(old: &[&str], new: &[&str]) -> usize {
        let steps = steps(old, new);
        let (mut o, mut n) = (0, 0);
        for step in &steps {
            if let Some(at) = step.old {
                assert_eq!(at, o);
                o += 1;
            }
            if let Some(at) = step.new {
                assert_eq!(at, n);
                n += 1;
            }
            if let (Some(a), Some(b)) = (step.old, step.new) {
                assert_eq!(old[a], new[b]);
            }
        }
        assert_eq!((o, n), (old.len(), new.len()));
        steps.iter().filter(|s| !s.is_same()).count()
    }

    #[test]
    fn finds_the_shortest_way() {
        assert_eq!(changes(&[], &[]), 0);
        assert_eq!(changes(&["a"], &[]), 1);
        assert_eq!(changes(&[], &["a", "b"]), 2);
        assert_eq!(changes(&["a", "b", "c"], &["a", "c"]), 1);
        assert_eq!(changes(&["a", "b"], &["x", "y"]), 4);
        let (old, new) = (["a", "b", "c", "a", "b", "b", "a"], ["c", "b", "a", "b", "a", "c"]);
        assert_eq!(changes(&old, &new), 5);
    }

    /// Every pair of short texts of two letters, against the longest common part.
    #[test]
    fn is_right_for_all_short_texts() {
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
                assert_eq!(changes(&old, &new), len + 5 - 2 * best[len][5], "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn texts_that_share_little_are_replaced() {
        let (old, new): (Vec<String>, Vec<String>) = (
            (0..4000).map(|n| format!("o{n}")).collect(),
            (0..4000).map(|n| format!("n{n}")).collect(),
        );
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
        assert_eq!(changes(&old, &new), 8000);
    }
}
