//! What the sanitizer knows about host paths, and the three ways to clean a text of them.

use super::{field, scan};
use ecow::EcoString;
use memchr::memchr3;
use memchr::memmem::Finder;
use std::borrow::Cow;

/// Roots known at once; a session normally has one.
pub(super) const MAX_ROOTS: usize = 8;

/// How much of a text is the agent's and how much the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Commands, outputs, prose: every known spelling of a session path is cut.
    Text,
    /// File bodies: only the known root and prefixes with a UUID are cut.
    Body,
}

/// One session root, ready to be found.
#[derive(Debug, Clone)]
pub(super) struct Root {
    pub(super) parts: Vec<String>,
    /// The part that is searched for: the longest, as the rarest.
    pub(super) key: usize,
    pub(super) finder: Finder<'static>,
    /// The root as Claude Code names its project folder: `-workspace-sessions-1`.
    pub(super) dashed: Option<Finder<'static>>,
    pub(super) len: usize,
    pub(super) spaced: bool,
}

impl Root {
    fn new(path: &str) -> Option<Root> {
        let parts: Vec<String> = field::parts(path).into_iter().map(str::to_owned).collect();
        let key = (0..parts.len()).max_by_key(|i| parts[*i].len())?;
        let finder = Finder::new(parts[key].as_bytes()).into_owned();
        let dashed = (parts.len() >= 3).then(|| {
            let name: String = parts.iter().flat_map(|p| ["-", p.as_str()]).collect();
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let name: String = name.chars().map(plain).collect();
            Finder::new(name.as_bytes()).into_owned()
        });
        let len = path.len();
        Some(Root { parts, key, finder, dashed, len, spaced: path.contains(char::is_whitespace) })
    }
}

/// The paths to hide.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    pub(super) roots: Vec<Root>,
    pub(super) home: Vec<String>,
    /// Ids inside a known root: they appear in no output, whatever surrounds them.
    pub(super) ids: Vec<Finder<'static>>,
    pub(super) word: Word,
    /// Some root has an id, or a dashed name, that the search for its longest part does not find.
    pub(super) vague: bool,
}

/// The word that every session path without a known root has.
#[derive(Debug, Clone)]
pub(super) struct Word(pub(super) Finder<'static>);

impl Default for Word {
    fn default() -> Self {
        Word(Finder::new("sessions"))
    }
}

impl Paths {
    /// Knows no root: only the `sandboxes/<id>/sessions/<id>` and `sessions/<id>` shapes are found.
    pub fn new() -> Self {
        Paths::default()
    }

    /// Adds the real root of the session. The same root twice, or `/`, changes nothing.
    pub fn add_root(&mut self, path: &str) {
        let Some(root) = Root::new(path) else { return };
        if self.roots.len() >= MAX_ROOTS || self.roots.iter().any(|r| r.parts == root.parts) {
            return;
        }
        let plain = |part: &str| part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
        self.vague |= !plain(&root.parts[root.key]) || root.parts.len() < 2;
        for (i, part) in root.parts.iter().enumerate() {
            if scan::is_long_id(part.as_bytes()) {
                self.vague |= i != root.key;
                self.ids.push(Finder::new(part.as_bytes()).into_owned());
            }
        }
        // The longest root first: one root may lie inside another.
        self.roots.push(root);
        self.roots.sort_by_key(|r| std::cmp::Reverse(r.parts.len()));
    }

    /// Sets the home directory that is shown as `~`.
    pub fn set_home(&mut self, path: &str) {
        let parts = field::parts(path);
        if parts.len() >= 2 {
            self.home = parts.into_iter().map(str::to_owned).collect();
        }
    }

    /// Cleans free text.
    pub fn text<'a>(&self, text: &'a str, mode: Mode) -> Cow<'a, str> {
        match self.changed(text, mode) {
            Some(clean) => Cow::Owned(clean.into()),
            None => Cow::Borrowed(text),
        }
    }

    /// The cleaned text, when it differs.
    pub(super) fn changed(&self, text: &str, mode: Mode) -> Option<EcoString> {
        // Every spelling of a path has a separator; most short texts have none.
        if memchr3(b'/', b'\\', b'%', text.as_bytes()).is_some() {
            return scan::clean(self, text, mode);
        }
        scan::mask_ids(self, text).map(EcoString::from)
    }

    /// Cleans a path field: relative to the session root where it lies inside.
    pub fn field(&self, path: &str) -> String {
        field::clean(self, path)
    }
}

/// Strips the session prefix of one path, as a path field is cleaned when no root is known.
///
/// ```
/// let path = "/workspace/sessions/9c7662c1-785f-4f1c-b9e0-9021ddbf2893/outputs/web/page.tsx";
/// assert_eq!(narrows::strip_session_prefix(path), "outputs/web/page.tsx");
/// ```
pub fn strip_session_prefix(path: &str) -> String {
    Paths::new().field(path)
}

/// Cuts session prefixes out of free text, as text is cleaned when no root is known.
///
/// ```
/// let text = "cd /workspace/sessions/def-456/outputs/web && ls";
/// assert_eq!(narrows::sanitize_paths_in_text(text), "cd outputs/web && ls");
/// ```
pub fn sanitize_paths_in_text(text: &str) -> Cow<'_, str> {
    Paths::new().text(text, Mode::Text)
}
