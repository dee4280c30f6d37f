//! Which files a call changed, and by how many lines.

use super::{Diff, ToolCall, ToolKind, ToolStatus};
use std::collections::HashMap;

/// More changes than this are not looked for among lines that both texts have: then only those count
/// as the same that stand once in each.
const MAX_CHANGES: usize = 3000;

/// A file that a call changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Relative to the session root.
    pub path: String,
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
}

impl ToolCall {
    /// The files that the call changed, each once; none while it runs, or when it failed.
    pub fn changed_files(&self) -> Vec<ChangedFile> {
        let mut files: Vec<ChangedFile> = Vec::new();
        let edits = matches!(self.kind, ToolKind::Edit | ToolKind::Move | ToolKind::Delete);
        if !edits || self.status != Some(ToolStatus::Completed) {
            return files;
        }
        for diff in self.diffs.iter().flatten().filter(|d| !d.path.is_empty()) {
            let (added, removed) = diff.changed_lines();
            if let Some(file) = files.iter_mut().find(|f| f.path == *diff.path) {
                file.added += added;
                file.removed += removed;
            } else {
                files.push(ChangedFile { path: diff.path.as_str().to_owned(), added, removed });
            }
        }
        let path = self.file_path.as_ref().filter(|p| files.is_empty() && !p.is_empty());
        let of = |path: &str| ChangedFile { path: path.to_owned(), added: 0, removed: 0 };
        files.extend(path.map(|path| of(path)));
        files
    }
}

impl Diff {
    /// Lines that came and went: as the agent counts them, or counted in what it tells.
    pub fn changed_lines(&self) -> (u64, u64) {
        if let (Some(added), Some(removed)) = (self.additions, self.deletions) {
            return (added, removed);
        }
        if let Some(hunks) = self.hunks.as_ref().filter(|h| !h.is_empty()) {
            return signs(hunks.iter().flat_map(|h| &h.lines).map(|line| &**line));
        }
        if let Some(patch) = self.patch.as_ref().filter(|p| !p.trim().is_empty()) {
            let is_head = |line: &&str| line.starts_with("+++ ") || line.starts_with("--- ");
            return signs(patch.lines().filter(|line| !is_head(line)));
        }
        let (old, new) = (self.old_text.as_deref(), self.new_text.as_deref());
        between(old.unwrap_or_default(), new.unwrap_or_default())
    }
}

fn signs<'a>(lines: impl Iterator<Item = &'a str>) -> (u64, u64) {
    lines.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
        Some(b'+') => (added + 1, removed),
        Some(b'-') => (added, removed + 1),
        _ => (added, removed),
    })
}

/// Lines that come and go between two texts, by the shortest way.
fn between(old: &str, new: &str) -> (u64, u64) {
    // Lines as numbers, so that comparing them is cheap.
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut numbers = |text| -> Vec<usize> {
        let name = |line| {
            let next = names.len();
            *names.entry(line).or_insert(next)
        };
        str::lines(text).map(name).collect()
    };
    let (old, new) = (numbers(old), numbers(new));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let (gone, come) = (old.len(), new.len());
    // A line that only one of the texts has is never the same as another.
    let (old, new) = (among(old, new, names.len()), among(new, old, names.len()));
    // Each change is a line that comes or one that goes.
    let same = match changes(&old, &new) {
        Some(n) => (old.len() + new.len() - n) / 2,
        None => once(&old, &new, names.len()),
    };
    ((come - same) as u64, (gone - same) as u64)
}

/// Those lines that the other text has too.
fn among(lines: &[usize], other: &[usize], names: usize) -> Vec<usize> {
    let mut there = vec![false; names];
    other.iter().for_each(|line| there[*line] = true);
    lines.iter().copied().filter(|line| there[*line]).collect()
}

/// How many lines that stand once in both texts have the same order in both, at most.
fn once(old: &[usize], new: &[usize], names: usize) -> usize {
    // Where a line stands, and whether it does so again.
    let places = |lines: &[usize]| {
        let mut at = vec![(usize::MAX, false); names];
        for (n, line) in lines.iter().enumerate() {
            at[*line] = (n, at[*line].0 != usize::MAX);
        }
        at
    };
    let (before, after) = (places(old), places(new));
    let both = old.iter().filter(|line| !before[**line].1 && !after[**line].1);
    // The last places of the best rows of each length (the longest rising row).
    let mut last: Vec<usize> = Vec::new();
    for at in both.map(|line| after[*line].0) {
        let longer = last.partition_point(|place| *place < at);
        match last.get_mut(longer) {
            Some(place) => *place = at,
            None => last.push(at),
        }
    }
    last.len()
}

/// How many lines must come or go at least: found by going as far as possible with no change, one
/// change, two, … (Myers). `far[k + middle]` is how far into `a` one gets on the diagonal `k`.
fn changes(a: &[usize], b: &[usize]) -> Option<usize> {
    if a.is_empty() || b.is_empty() {
        return Some(a.len() + b.len());
    }
    let most = (a.len() + b.len()).min(MAX_CHANGES);
    let middle = most + 1;
    let mut far = vec![0_usize; 2 * middle + 1];
    for d in 0..=most {
        // Diagonals are counted from the middle, so that none is below zero.
        for k in (middle - d..=middle + d).step_by(2) {
            let down = k == middle - d || (k != middle + d && far[k - 1] < far[k + 1]);
            let mut x = if down { far[k + 1] } else { far[k - 1] + 1 };
            // On this diagonal, `b` is as many lines behind `a` as it is away from the middle.
            let y = |x: usize| (x + middle).checked_sub(k);
            while let Some(at) = y(x)
                && x < a.len()
                && at < b.len()
                && a[x] == b[at]
            {
                x += 1;
            }
            far[k] = x;
            if x >= a.len() && y(x).is_some_and(|y| y >= b.len()) {
                return Some(d);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_lines_that_come_and_go() {
        for (old, new, expected) in [
            ("", "", (0, 0)),
            ("a\nb\n", "a\nb\n", (0, 0)),
            ("", "a\nb\n", (2, 0)),
            ("a\nb\n", "", (0, 2)),
            ("a\nb\nc\n", "a\nx\nc\n", (1, 1)),
            ("a\nb\nc\n", "c\nb\na\n", (2, 2)),
            ("a\nb\nc\nd\n", "b\nc\nd\ne\nf\n", (2, 1)),
            ("one\ntwo\n", "zero\none\nmore\ntwo\nend", (3, 0)),
            ("x\ny\nz\n", "y\n", (0, 2)),
        ] {
            assert_eq!(between(old, new), expected, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn every_way_is_the_shortest_one() {
        // Against the longest common part, found the slow way.
        let mut seed = 7_u64;
        for _ in 0..500 {
            let mut text = || {
                let mut lines = String::new();
                for _ in 0..seed % 9 {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    lines.push(char::from(b'a' + u8::try_from((seed >> 33) % 3).unwrap_or(0)));
                    lines.push('\n');
                }
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(3) >> 3;
                lines
            };
            let (old, new) = (text(), text());
            let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
            let mut common = vec![vec![0; b.len() + 1]; a.len() + 1];
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    common[i + 1][j + 1] = if x == y {
                        common[i][j] + 1
                    } else {
                        common[i][j + 1].max(common[i + 1][j])
                    };
                }
            }
            let same = common[a.len()][b.len()];
            let expected = ((b.len() - same) as u64, (a.len() - same) as u64);
            assert_eq!(between(&old, &new), expected, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn many_changed_lines_are_counted() {
        let old: String = (0..2000).map(|n| format!("{n}\n")).collect();
        let new: String = (0..2500).map(|n| format!("new {n}\n")).collect();
        assert_eq!(between(&old, &new), (2500, 2000));
        // Every third line of ten thousand is another one.
        let line = |n: u32, word: &str| format!("{word} {n}\n");
        let old: String = (0..10_000).map(|n| line(n, "line")).collect();
        let word = |n: u32| if n.is_multiple_of(3) { "other" } else { "line" };
        let new: String = (0..10_000).map(|n| line(n, word(n))).collect();
        assert_eq!(between(&old, &new), (3334, 3334));
        // The same with lines that stand there more than once.
        let old: String = (0..10_000).map(|n| format!("{{\n{n}\n}}\n")).collect();
        let new: String = (0..10_000).map(|n| format!("{{\n{} {n}\n}}\n", word(n))).collect();
        assert_eq!(between(&old, &new), (10_000, 10_000));
    }

    #[test]
    fn of_more_changes_than_are_looked_for_most_are_found() {
        let old: String = (0..20_000).map(|n| format!("{n}\n")).collect();
        let moved = (0..20_000_u32).map(|n| if n.is_multiple_of(4) { 19_999 - n } else { n });
        let new: String = moved.map(|n| format!("{n}\n")).collect();
        let (added, removed) = between(&old, &new);
        assert_eq!(added, removed);
        assert!((5000..=10_000).contains(&added), "{added}");
    }
}
