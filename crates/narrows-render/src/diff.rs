//! File edits as the lines of a unified diff.

use super::{escape, line_diff};
use narrows::tool::{Diff, DiffAction, ToolCall, Tri};

/// Unchanged lines around an edit.
const CONTEXT_LINES: usize = 3;

/// The kind of a diff line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffLineKind {
    HunkHeader,
    Context,
    Added,
    Removed,
}

/// An escaped line of a diff, with its sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffLine {
    pub(crate) kind: DiffLineKind,
    pub(crate) text: String,
}

fn escaped_line(kind: DiffLineKind, sign: &str, text: &str) -> DiffLine {
    DiffLine { kind, text: format!("{sign}{}", escape::line_of_code(text)) }
}

/// Returns what happened to the file, unless it was only modified.
pub(crate) fn action(call: &ToolCall, diff: &Diff) -> Option<&'static str> {
    match diff.action {
        Some(DiffAction::Add) => Some("new file"),
        Some(DiffAction::Delete) => Some("deleted"),
        Some(DiffAction::Move) => Some("moved"),
        Some(DiffAction::Update) => None,
        None if diff.new_text.is_none() && diff.old_text.is_some() => Some("deleted"),
        None => {
            let new = call.is_new_file == Some(Tri::Yes);
            (new && call.file_path.as_ref() == Some(&diff.path)).then_some("new file")
        }
    }
}

/// Returns the lines of a diff: the agent's own, or computed from the texts before and after.
pub(crate) fn unified_lines(diff: &Diff) -> Vec<DiffLine> {
    if let Some(hunks) = diff.hunks.as_ref().filter(|h| !h.is_empty()) {
        let mut out = Vec::new();
        for hunk in hunks {
            out.push(hunk_header(hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines));
            out.extend(hunk.lines.iter().map(|line| parse_patch_line(line)));
        }
        return out;
    }
    if let Some(patch) = diff.patch.as_ref().filter(|p| !p.trim().is_empty()) {
        return patch.lines().map(parse_patch_line).collect();
    }
    let (old, new) = (diff.old_text.as_deref(), diff.new_text.as_deref());
    unified_diff(old.unwrap_or_default(), new.unwrap_or_default())
}

/// Parses a line that has its sign.
fn parse_patch_line(line: &str) -> DiffLine {
    let kind = match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', b' ', ..] | [b'@', ..] => {
            DiffLineKind::HunkHeader
        }
        [b'+', ..] => DiffLineKind::Added,
        [b'-', ..] => DiffLineKind::Removed,
        _ => DiffLineKind::Context,
    };
    escaped_line(kind, "", line)
}

fn hunk_header(old: u64, old_lines: u64, new: u64, new_lines: u64) -> DiffLine {
    let text = format!("@@ -{old},{old_lines} +{new},{new_lines} @@");
    DiffLine { kind: DiffLineKind::HunkHeader, text }
}

/// Computes the unified diff of two texts.
fn unified_diff(old: &str, new: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let pairs = line_diff::diff_lines(&old, &new);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(first) = pairs[at..].iter().position(|s| !s.is_same()) {
        let begin = (at + first).saturating_sub(CONTEXT_LINES).max(at);
        // A hunk extends to the next edit if their contexts touch.
        let mut end = at + first;
        while let Some(next) = pairs[end..].iter().position(|s| !s.is_same()) {
            if next > 2 * CONTEXT_LINES {
                break;
            }
            end += next + 1;
        }
        let end = (end + CONTEXT_LINES).min(pairs.len());
        let hunk = &pairs[begin..end];
        let (olds, news) = (
            hunk.iter().filter(|s| s.old.is_some()).count(),
            hunk.iter().filter(|s| s.new.is_some()).count(),
        );
        let before =
            |of: fn(&line_diff::LinePair) -> bool| pairs[..begin].iter().filter(|s| of(s)).count();
        let (old_at, new_at) = (before(|s| s.old.is_some()), before(|s| s.new.is_some()));
        let number = |at: usize, n: usize| (at + usize::from(n > 0)) as u64;
        out.push(hunk_header(number(old_at, olds), olds as u64, number(new_at, news), news as u64));
        for pair in hunk {
            out.push(match (pair.old, pair.new) {
                (Some(at), Some(_)) => escaped_line(DiffLineKind::Context, " ", old[at]),
                (Some(at), None) => escaped_line(DiffLineKind::Removed, "-", old[at]),
                (_, Some(at)) => escaped_line(DiffLineKind::Added, "+", new[at]),
                (None, None) => continue,
            });
        }
        at = end;
    }
    out
}

/// Counts the added and removed lines of a call that changed files.
pub(crate) fn line_counts(call: &ToolCall) -> (Option<u64>, Option<u64>) {
    let Some(diffs) = call.diffs.as_ref().filter(|d| !d.is_empty()) else { return (None, None) };
    let (mut added, mut removed) = (0, 0);
    for diff in diffs {
        if let (Some(plus), Some(minus)) = (diff.additions, diff.deletions) {
            (added, removed) = (added + plus, removed + minus);
            continue;
        }
        for line in unified_lines(diff) {
            match line.kind {
                DiffLineKind::Added => added += 1,
                DiffLineKind::Removed => removed += 1,
                DiffLineKind::HunkHeader | DiffLineKind::Context => {}
            }
        }
    }
    (Some(added), Some(removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> Vec<String> {
        unified_diff(old, new).into_iter().map(|l| l.text).collect()
    }

    #[test]
    fn unified_diff_has_hunk_headers_and_context() {
        assert_eq!(shown("a\nb\nc\n", "a\nx\nc\n"), ["@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]);
        assert_eq!(shown("", "a\nb\n"), ["@@ -0,0 +1,2 @@", "+a", "+b"]);
        assert_eq!(shown("a\n", ""), ["@@ -1,1 +0,0 @@", "-a"]);
        assert_eq!(shown("same\n", "same\n"), Vec::<String>::new());
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n30\nmore\n");
        let lines = shown(&old, &new);
        let headers: Vec<&String> = lines.iter().filter(|l| l.starts_with("@@")).collect();
        assert_eq!(headers, ["@@ -3,7 +3,7 @@", "@@ -29,6 +29,7 @@"]);
        let near = old.replace("\n5\n", "\nfive\n").replace("\n10\n", "\nten\n");
        assert_eq!(shown(&old, &near).iter().filter(|l| l.starts_with("@@")).count(), 1);
    }

    #[test]
    fn diff_lines_are_escaped() {
        assert_eq!(shown("", "a\u{1b}[2Jb\rc"), ["@@ -0,0 +1,1 @@", "+ab␍c"]);
    }
}
