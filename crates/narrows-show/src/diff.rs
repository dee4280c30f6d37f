//! Changed files as the lines of a unified diff.

use super::{escape, lines};
use narrows::tool::{Diff, DiffAction, ToolCall, Tri};

/// Lines around a change.
const AROUND: usize = 3;

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Place,
    Same,
    Added,
    Removed,
}

/// A line of a diff, with its sign, without escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffLine {
    pub(crate) mark: Mark,
    pub(crate) text: String,
}

fn made(mark: Mark, sign: &str, text: &str) -> DiffLine {
    DiffLine { mark, text: format!("{sign}{}", escape::line_of_code(text)) }
}

/// What happened to the file, where it was more than a change.
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

/// The lines of a diff: of the agent's own, or made from the texts before and after.
pub(crate) fn of(diff: &Diff) -> Vec<DiffLine> {
    if let Some(hunks) = diff.hunks.as_ref().filter(|h| !h.is_empty()) {
        let mut out = Vec::new();
        for hunk in hunks {
            out.push(place(hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines));
            out.extend(hunk.lines.iter().map(|line| signed(line)));
        }
        return out;
    }
    if let Some(patch) = diff.patch.as_ref().filter(|p| !p.trim().is_empty()) {
        return patch.lines().map(signed).collect();
    }
    let (old, new) = (diff.old_text.as_deref(), diff.new_text.as_deref());
    between(old.unwrap_or_default(), new.unwrap_or_default())
}

/// A line that has its sign.
fn signed(line: &str) -> DiffLine {
    let mark = match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', b' ', ..] | [b'@', ..] => Mark::Place,
        [b'+', ..] => Mark::Added,
        [b'-', ..] => Mark::Removed,
        _ => Mark::Same,
    };
    made(mark, "", line)
}

fn place(old: u64, old_lines: u64, new: u64, new_lines: u64) -> DiffLine {
    let text = format!("@@ -{old},{old_lines} +{new},{new_lines} @@");
    DiffLine { mark: Mark::Place, text }
}

/// The unified diff of two texts.
fn between(old: &str, new: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let steps = lines::steps(&old, &new);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(first) = steps[at..].iter().position(|s| !s.is_same()) {
        let begin = (at + first).saturating_sub(AROUND).max(at);
        // A hunk goes on while the next change is near.
        let mut end = at + first;
        while let Some(next) = steps[end..].iter().position(|s| !s.is_same()) {
            if next > 2 * AROUND {
                break;
            }
            end += next + 1;
        }
        let end = (end + AROUND).min(steps.len());
        let hunk = &steps[begin..end];
        let (olds, news) = (
            hunk.iter().filter(|s| s.old.is_some()).count(),
            hunk.iter().filter(|s| s.new.is_some()).count(),
        );
        let before = |of: fn(&lines::Step) -> bool| steps[..begin].iter().filter(|s| of(s)).count();
        let (old_at, new_at) = (before(|s| s.old.is_some()), before(|s| s.new.is_some()));
        let number = |at: usize, n: usize| (at + usize::from(n > 0)) as u64;
        out.push(place(number(old_at, olds), olds as u64, number(new_at, news), news as u64));
        for step in hunk {
            out.push(match (step.old, step.new) {
                (Some(at), Some(_)) => made(Mark::Same, " ", old[at]),
                (Some(at), None) => made(Mark::Removed, "-", old[at]),
                (_, Some(at)) => made(Mark::Added, "+", new[at]),
                (None, None) => continue,
            });
        }
        at = end;
    }
    out
}

/// Lines added and removed by a call, where it changed files.
pub(crate) fn counts(call: &ToolCall) -> (Option<u64>, Option<u64>) {
    let Some(diffs) = call.diffs.as_ref().filter(|d| !d.is_empty()) else { return (None, None) };
    let (mut added, mut removed) = (0, 0);
    for diff in diffs {
        if let (Some(plus), Some(minus)) = (diff.additions, diff.deletions) {
            (added, removed) = (added + plus, removed + minus);
            continue;
        }
        for line in of(diff) {
            match line.mark {
                Mark::Added => added += 1,
                Mark::Removed => removed += 1,
                Mark::Place | Mark::Same => {}
            }
        }
    }
    (Some(added), Some(removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> Vec<String> {
        between(old, new).into_iter().map(|l| l.text).collect()
    }

    #[test]
    fn makes_a_unified_diff() {
        assert_eq!(shown("a\nb\nc\n", "a\nx\nc\n"), ["@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]);
        assert_eq!(shown("", "a\nb\n"), ["@@ -0,0 +1,2 @@", "+a", "+b"]);
        assert_eq!(shown("a\n", ""), ["@@ -1,1 +0,0 @@", "-a"]);
        assert_eq!(shown("same\n", "same\n"), Vec::<String>::new());
    }

    #[test]
    fn far_changes_are_apart() {
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n30\nmore\n");
        let lines = shown(&old, &new);
        let places: Vec<&String> = lines.iter().filter(|l| l.starts_with("@@")).collect();
        assert_eq!(places, ["@@ -3,7 +3,7 @@", "@@ -29,6 +29,7 @@"]);
        let near = old.replace("\n5\n", "\nfive\n").replace("\n10\n", "\nten\n");
        assert_eq!(shown(&old, &near).iter().filter(|l| l.starts_with("@@")).count(), 1);
    }

    #[test]
    fn escapes_are_gone() {
        assert_eq!(shown("", "a\u{1b}[2Jb\rc"), ["@@ -0,0 +1,1 @@", "+ab␍c"]);
    }
}
