//! Counts the lines that a call added and removed, by file.
//!
//! The diff is our own: it must be deterministic and bounded on hostile input. The Myers diff of
//! `similar` is bounded by a deadline only, and this crate reads no clock.

use super::{Diff, ToolCall, ToolKind, ToolStatus};
use std::collections::HashMap;

/// Edits up to which the shortest edit script is computed. Beyond it, only lines that occur once in each
/// text count as common.
const MAX_EDITS: usize = 3000;

/// A file that a call changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Path relative to the session root.
    pub path: String,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

impl ToolCall {
    /// The files that the call changed, each once; none if it failed or has not ended.
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
        let unchanged = |path: &str| ChangedFile { path: path.to_owned(), added: 0, removed: 0 };
        files.extend(path.map(|path| unchanged(path)));
        files
    }
}

impl Diff {
    /// Lines added and removed: as the agent counts them, or counted in its hunks, patch or texts.
    pub fn changed_lines(&self) -> (u64, u64) {
        if let (Some(added), Some(removed)) = (self.additions, self.deletions) {
            return (added, removed);
        }
        if let Some(hunks) = self.hunks.as_ref().filter(|h| !h.is_empty()) {
            return count_signs(hunks.iter().flat_map(|h| &h.lines).map(|line| &**line));
        }
        if let Some(patch) = self.patch.as_ref().filter(|p| !p.trim().is_empty()) {
            let is_header = |line: &&str| line.starts_with("+++ ") || line.starts_with("--- ");
            return count_signs(patch.lines().filter(|line| !is_header(line)));
        }
        let (old, new) = (self.old_text.as_deref(), self.new_text.as_deref());
        count_changes(old.unwrap_or_default(), new.unwrap_or_default())
    }
}

fn count_signs<'a>(lines: impl Iterator<Item = &'a str>) -> (u64, u64) {
    lines.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
        Some(b'+') => (added + 1, removed),
        Some(b'-') => (added, removed + 1),
        _ => (added, removed),
    })
}

/// Lines added and removed by the shortest edit script between two texts.
fn count_changes(old: &str, new: &str) -> (u64, u64) {
    // Interned lines are cheap to compare.
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut intern = |text| -> Vec<usize> {
        let id_of = |line| {
            let next = ids.len();
            *ids.entry(line).or_insert(next)
        };
        str::lines(text).map(id_of).collect()
    };
    let (old, new) = (intern(old), intern(new));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let (removed, added) = (old.len(), new.len());
    // A line that only one of the texts has is never common.
    let (old, new) = (common_lines(old, new, ids.len()), common_lines(new, old, ids.len()));
    // Each edit adds or removes one line.
    let common = match shortest_edit(&old, &new) {
        Some(n) => (old.len() + new.len() - n) / 2,
        None => unique_common_lines(&old, &new, ids.len()),
    };
    ((added - common) as u64, (removed - common) as u64)
}

/// The lines that the other text has too.
fn common_lines(lines: &[usize], other: &[usize], ids: usize) -> Vec<usize> {
    let mut is_common = vec![false; ids];
    other.iter().for_each(|line| is_common[*line] = true);
    lines.iter().copied().filter(|line| is_common[*line]).collect()
}

/// The most lines that occur once in each text and have the same order in both.
fn unique_common_lines(old: &[usize], new: &[usize], ids: usize) -> usize {
    // The index of each line, and whether it occurs again.
    let positions = |lines: &[usize]| {
        let mut at = vec![(usize::MAX, false); ids];
        for (n, line) in lines.iter().enumerate() {
            at[*line] = (n, at[*line].0 != usize::MAX);
        }
        at
    };
    let (before, after) = (positions(old), positions(new));
    let unique = old.iter().filter(|line| !before[**line].1 && !after[**line].1);
    // The lowest last index of an increasing sequence of each length (patience sorting).
    let mut last: Vec<usize> = Vec::new();
    for at in unique.map(|line| after[*line].0) {
        let length = last.partition_point(|index| *index < at);
        match last.get_mut(length) {
            Some(index) => *index = at,
            None => last.push(at),
        }
    }
    last.len()
}

/// The length of the shortest edit script, by the algorithm of Myers; none if it exceeds
/// [`MAX_EDITS`]. `furthest[k + middle]` is the furthest index in `a` on diagonal `k`.
fn shortest_edit(a: &[usize], b: &[usize]) -> Option<usize> {
    if a.is_empty() || b.is_empty() {
        return Some(a.len() + b.len());
    }
    let max_edits = (a.len() + b.len()).min(MAX_EDITS);
    let middle = max_edits + 1;
    let mut furthest = vec![0_usize; 2 * middle + 1];
    for d in 0..=max_edits {
        // Diagonals are numbered from `middle`, so that none is negative.
        for k in (middle - d..=middle + d).step_by(2) {
            let down = k == middle - d || (k != middle + d && furthest[k - 1] < furthest[k + 1]);
            let mut x = if down { furthest[k + 1] } else { furthest[k - 1] + 1 };
            // On this diagonal, the index in `b` trails the index in `a` by `k - middle`.
            let y = |x: usize| (x + middle).checked_sub(k);
            while let Some(at) = y(x)
                && x < a.len()
                && at < b.len()
                && a[x] == b[at]
            {
                x += 1;
            }
            furthest[k] = x;
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
    fn count_changes_of_small_texts_is_exact() {
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
            assert_eq!(count_changes(old, new), expected, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn count_changes_equals_longest_common_subsequence() {
        // Compared with the longest common subsequence, by dynamic programming.
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
            let mut longest = vec![vec![0; b.len() + 1]; a.len() + 1];
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    longest[i + 1][j + 1] = if x == y {
                        longest[i][j] + 1
                    } else {
                        longest[i][j + 1].max(longest[i + 1][j])
                    };
                }
            }
            let same = longest[a.len()][b.len()];
            let expected = ((b.len() - same) as u64, (a.len() - same) as u64);
            assert_eq!(count_changes(&old, &new), expected, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn count_changes_of_large_texts_is_exact() {
        let old: String = (0..2000).map(|n| format!("{n}\n")).collect();
        let new: String = (0..2500).map(|n| format!("new {n}\n")).collect();
        assert_eq!(count_changes(&old, &new), (2500, 2000));
        // Every third of ten thousand lines changes.
        let line = |n: u32, word: &str| format!("{word} {n}\n");
        let old: String = (0..10_000).map(|n| line(n, "line")).collect();
        let word = |n: u32| if n.is_multiple_of(3) { "other" } else { "line" };
        let new: String = (0..10_000).map(|n| line(n, word(n))).collect();
        assert_eq!(count_changes(&old, &new), (3334, 3334));
        // The same with lines that occur more than once.
        let old: String = (0..10_000).map(|n| format!("{{\n{n}\n}}\n")).collect();
        let new: String = (0..10_000).map(|n| format!("{{\n{} {n}\n}}\n", word(n))).collect();
        assert_eq!(count_changes(&old, &new), (10_000, 10_000));
    }

    #[test]
    fn count_changes_beyond_max_edits_is_approximate() {
        let old: String = (0..20_000).map(|n| format!("{n}\n")).collect();
        let moved = (0..20_000_u32).map(|n| if n.is_multiple_of(4) { 19_999 - n } else { n });
        let new: String = moved.map(|n| format!("{n}\n")).collect();
        let (added, removed) = count_changes(&old, &new);
        assert_eq!(added, removed);
        assert!((5000..=10_000).contains(&added), "{added}");
    }
}
