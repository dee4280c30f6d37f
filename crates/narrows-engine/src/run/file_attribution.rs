//! Attributes file changes to tool calls: several sessions may work in one directory.

use narrows::Doing;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls of one session that are remembered.
const MAX_CALLS: usize = 64;
/// Calls and file changes arrive on two paths: their times may differ by this much.
const ATTRIBUTION_WINDOW: Duration = Duration::from_millis(400);

/// The active calls of this server's agents.
#[derive(Debug, Default)]
pub(super) struct FileAttribution {
    runs: Mutex<HashMap<i64, SessionCalls>>,
}

#[derive(Debug)]
struct SessionCalls {
    root: PathBuf,
    calls: VecDeque<ActiveCall>,
}

#[derive(Debug)]
struct ActiveCall {
    id: String,
    words: String,
    started_at: Instant,
    ended_at: Option<Instant>,
}

impl FileAttribution {
    /// Records calls of a session.
    pub(super) fn record_calls(&self, session: i64, root: &Path, calls: Vec<Doing>) {
        let now = Instant::now();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || SessionCalls { root: root.to_owned(), calls: VecDeque::new() };
        let run = runs.entry(session).or_insert_with(new);
        for doing in calls.into_iter().filter(|doing| doing.may_write) {
            let known = run.calls.iter().position(|call| call.id == doing.id);
            if known.is_none() {
                let (id, words) = (doing.id.clone(), String::new());
                run.calls.push_back(ActiveCall { id, words, started_at: now, ended_at: None });
            }
            let at = known.unwrap_or(run.calls.len() - 1);
            if let Some(call) = run.calls.get_mut(at) {
                if !doing.words.is_empty() {
                    call.words = doing.words;
                }
                if doing.ended {
                    call.ended_at.get_or_insert(now);
                }
            }
        }
        run.calls
            .retain(|call| call.ended_at.is_none_or(|ended| now - ended < 4 * ATTRIBUTION_WINDOW));
        let excess = run.calls.len().saturating_sub(MAX_CALLS);
        run.calls.drain(..excess);
    }

    /// Removes a session whose agent has stopped.
    pub(super) fn remove_session(&self, session: i64) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    /// The call of this session that wrote a file; `None` if a call of another session may have written it.
    pub(super) fn writer_of(&self, session: i64, file: &Path, at: Instant) -> Option<String> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let was_active = |call: &&ActiveCall| {
            call.started_at <= at + ATTRIBUTION_WINDOW
                && call.ended_at.is_none_or(|ended| at <= ended + ATTRIBUTION_WINDOW)
        };
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let names_file = |call: &ActiveCall| contains_name(&call.words, name);
        let in_root = runs.iter().filter(|(_, run)| file.starts_with(&run.root));
        let all: Vec<(i64, &ActiveCall)> = in_root
            .flat_map(|(key, run)| run.calls.iter().filter(was_active).map(|call| (*key, call)))
            .collect();
        // A call that names the file wins; otherwise the only active call.
        let named = all.iter().any(|(_, call)| names_file(call));
        let candidates: Vec<(i64, &ActiveCall)> =
            all.into_iter().filter(|(_, call)| !named || names_file(call)).collect();
        let is_own = candidates.iter().all(|(key, _)| *key == session);
        candidates.last().filter(|_| is_own).map(|(_, call)| call.id.clone())
    }
}

/// Returns whether text contains a file name as a whole, not as a part of another name.
fn contains_name(words: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !name.is_empty()
        && words.match_indices(name).any(|(at, _)| {
            let before = words[..at].chars().next_back();
            let after = words[at + name.len()..].chars().next();
            !before.is_some_and(|c| is_part(c) || c == '.') && !after.is_some_and(is_part)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doing(id: &str, words: &str, ended: bool) -> Doing {
        Doing { id: id.to_owned(), words: words.to_owned(), may_write: true, ended }
    }

    #[test]
    fn file_change_is_attributed_to_its_call() {
        let attribution = FileAttribution::default();
        let (root, now) = (Path::new("/work/shop"), Instant::now());
        let file = Path::new("/work/shop/outputs/report.md");
        assert_eq!(attribution.writer_of(1, file, now), None, "no active call");
        attribution.record_calls(1, root, vec![doing("a", "make report", false)]);
        attribution.record_calls(3, Path::new("/work/other"), vec![doing("o", "sleep", false)]);
        assert_eq!(
            attribution.writer_of(1, file, now).as_deref(),
            Some("a"),
            "the only active call"
        );
        assert_eq!(attribution.writer_of(2, file, now), None, "idle");
        attribution.record_calls(2, root, vec![doing("b", "sleep 10", false)]);
        assert_eq!(attribution.writer_of(1, file, now), None, "ambiguous");
        assert_eq!(attribution.writer_of(2, file, now), None);
        attribution.record_calls(1, root, vec![doing("c", "echo x > outputs/report.md", false)]);
        assert_eq!(attribution.writer_of(1, file, now).as_deref(), Some("c"), "it names the file");
        assert_eq!(attribution.writer_of(2, file, now), None);
        // A call that ended long before did not write it.
        attribution.record_calls(1, root, vec![doing("a", "", true), doing("c", "", true)]);
        let later = Instant::now() + 3 * ATTRIBUTION_WINDOW;
        assert_eq!(attribution.writer_of(1, file, later), None);
        assert_eq!(attribution.writer_of(2, file, later).as_deref(), Some("b"));
        attribution.remove_session(2);
        assert_eq!(attribution.writer_of(2, file, later), None);
    }

    #[test]
    fn file_name_matches_whole_words_only() {
        assert!(contains_name("echo x > outputs/a.md", "a.md"));
        assert!(contains_name(r#"{"path":"a.md"}"#, "a.md"));
        assert!(contains_name("cat > 報告.md.", "報告.md"));
        for other in ["outputs/data.md", "a.mdx", "b.a.md", "", "-a.md"] {
            assert!(!contains_name(other, "a.md"), "{other}");
        }
        assert!(!contains_name("anything", ""));
    }

    #[test]
    fn read_only_calls_are_not_attributed() {
        let attribution = FileAttribution::default();
        let (root, now) = (Path::new("/work"), Instant::now());
        let reads = Doing { may_write: false, ..doing("r", "cat a", false) };
        attribution.record_calls(1, root, vec![reads]);
        assert_eq!(attribution.writer_of(1, Path::new("/work/a"), now), None);
    }
}
