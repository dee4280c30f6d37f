//! Whose call wrote a file: several sessions may work in one folder.

use narrows::Doing;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls of one session that are remembered.
const MAX_CALLS: usize = 64;
/// What is heard of a call and what is seen of a file come on two ways: so far they may be apart.
const APART: Duration = Duration::from_millis(400);

/// What the agents of this server are doing now.
#[derive(Debug, Default)]
pub(super) struct Writers {
    runs: Mutex<HashMap<i64, Run>>,
}

#[derive(Debug)]
struct Run {
    root: PathBuf,
    calls: VecDeque<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    words: String,
    began: Instant,
    ended: Option<Instant>,
}

impl Writers {
    /// The calls of a session that were heard of.
    pub(super) fn heard(&self, session: i64, root: &Path, calls: Vec<Doing>) {
        let now = Instant::now();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Run { root: root.to_owned(), calls: VecDeque::new() };
        let run = runs.entry(session).or_insert_with(new);
        for doing in calls.into_iter().filter(|doing| doing.may_write) {
            let known = run.calls.iter().position(|call| call.id == doing.id);
            if known.is_none() {
                let (id, words) = (doing.id.clone(), String::new());
                run.calls.push_back(Call { id, words, began: now, ended: None });
            }
            let at = known.unwrap_or(run.calls.len() - 1);
            if let Some(call) = run.calls.get_mut(at) {
                if !doing.words.is_empty() {
                    call.words = doing.words;
                }
                if doing.ended {
                    call.ended.get_or_insert(now);
                }
            }
        }
        run.calls.retain(|call| call.ended.is_none_or(|ended| now - ended < 4 * APART));
        let over = run.calls.len().saturating_sub(MAX_CALLS);
        run.calls.drain(..over);
    }

    /// The agent of a session is not there any more.
    pub(super) fn gone(&self, session: i64) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    /// The call of this session that wrote a file, if it was one of its calls and no other session's.
    pub(super) fn call(&self, session: i64, file: &Path, at: Instant) -> Option<String> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let could = |call: &&Call| {
            call.began <= at + APART && call.ended.is_none_or(|ended| at <= ended + APART)
        };
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let tells = |call: &Call| names(&call.words, name);
        let near = runs.iter().filter(|(_, run)| file.starts_with(&run.root));
        let all: Vec<(i64, &Call)> = near
            .flat_map(|(key, run)| run.calls.iter().filter(could).map(|call| (*key, call)))
            .collect();
        // Who names it has written it; else it is whoever was the only one at work.
        let named = all.iter().any(|(_, call)| tells(call));
        let of: Vec<(i64, &Call)> =
            all.into_iter().filter(|(_, call)| !named || tells(call)).collect();
        let is_mine = of.iter().all(|(key, _)| *key == session);
        of.last().filter(|_| is_mine).map(|(_, call)| call.id.clone())
    }
}

/// Whether words name a file, and not another one whose name has this one in it.
fn names(words: &str, name: &str) -> bool {
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
    fn a_file_is_of_whoever_wrote_it() {
        let writers = Writers::default();
        let (root, now) = (Path::new("/work/shop"), Instant::now());
        let file = Path::new("/work/shop/outputs/report.md");
        assert_eq!(writers.call(1, file, now), None, "nobody is at work");
        writers.heard(1, root, vec![doing("a", "make report", false)]);
        writers.heard(3, Path::new("/work/other"), vec![doing("o", "sleep", false)]);
        assert_eq!(writers.call(1, file, now).as_deref(), Some("a"), "the only one at work here");
        assert_eq!(writers.call(2, file, now), None, "idle");
        writers.heard(2, root, vec![doing("b", "sleep 10", false)]);
        assert_eq!(writers.call(1, file, now), None, "it could be either");
        assert_eq!(writers.call(2, file, now), None);
        writers.heard(1, root, vec![doing("c", "echo x > outputs/report.md", false)]);
        assert_eq!(writers.call(1, file, now).as_deref(), Some("c"), "it names the file");
        assert_eq!(writers.call(2, file, now), None);
        // A call that ended long before did not write it.
        writers.heard(1, root, vec![doing("a", "", true), doing("c", "", true)]);
        let later = Instant::now() + 3 * APART;
        assert_eq!(writers.call(1, file, later), None);
        assert_eq!(writers.call(2, file, later).as_deref(), Some("b"));
        writers.gone(2);
        assert_eq!(writers.call(2, file, later), None);
    }

    #[test]
    fn a_name_is_a_whole_word() {
        assert!(names("echo x > outputs/a.md", "a.md"));
        assert!(names(r#"{"path":"a.md"}"#, "a.md"));
        assert!(names("cat > 報告.md.", "報告.md"));
        for other in ["outputs/data.md", "a.mdx", "b.a.md", "", "-a.md"] {
            assert!(!names(other, "a.md"), "{other}");
        }
        assert!(!names("anything", ""));
    }

    #[test]
    fn what_only_reads_wrote_nothing() {
        let writers = Writers::default();
        let (root, now) = (Path::new("/work"), Instant::now());
        let reads = Doing { may_write: false, ..doing("r", "cat a", false) };
        writers.heard(1, root, vec![reads]);
        assert_eq!(writers.call(1, Path::new("/work/a"), now), None);
    }
}
