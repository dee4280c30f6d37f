//! What of the text that is held back can be shown while its stream pauses. It is shown beside the log
//! and taken back when the text itself comes, so nothing may be in it that could still become a
//! secret or a path of the machine.

use super::Sanitizer;
use super::clean::Cleaner;
use super::paths::{Mode, Paths};
use super::scan::{Scan, is_name};
use super::secret::OPEN;
use super::segment::is_alone;
use super::text::Clean;
use super::view::{View, complete};
use super::walk::is_stop;
use crate::event::{Body, Event};
use memchr::{memchr2_iter, memrchr2};

/// Outputs of calls that are looked at, the newest ones.
const MAX_OUTPUTS: usize = 16;
/// Letters and digits in a row that may be the beginning of a token, whatever it begins with.
const RUN: usize = 12;
/// How much of a known value or id must be there for it to have begun.
const BEGUN: usize = 2;
const BEGUN_ID: usize = 4;

impl Sanitizer {
    /// The texts that pause, as far as they can be shown: events as they would come if the text ended
    /// there, and ids of calls with the end of their output. Nothing changes by it.
    pub(crate) fn preview(&mut self) -> (Option<Event>, Vec<(Clean, Clean)>) {
        let cleaner = &mut self.cleaner;
        let text = self.text.as_ref().and_then(|open| {
            let part = open.seam.preview(cleaner)?;
            let mut event = open.shell.clone();
            *event.body.text_mut()? = part;
            Some(event)
        });
        let mut outputs = Vec::new();
        for id in self.order.iter().rev().take(MAX_OUTPUTS).rev() {
            if let Some(open) = self.outputs.get(id)
                && let Body::ToolCallProgress(tool) = &open.shell.body
                && let Some(part) = open.seam.preview(cleaner)
            {
                outputs.push((tool.id.clone(), part));
            }
        }
        (text, outputs)
    }
}

impl Cleaner {
    /// The cleaned beginning of a text that pauses in which nothing to hide can have begun.
    pub(super) fn preview(&mut self, text: &str, mode: Mode) -> Option<Clean> {
        let text = &text[..self.certain(text)];
        if text.is_empty() {
            return None;
        }
        let counted = self.removed.clone();
        let clean = self.fresh(text, mode);
        self.removed = counted;
        Some(Clean(clean.unwrap_or_else(|| text.into())))
    }

    /// Up to where nothing in a text that may go on can become something to hide.
    fn certain(&self, text: &str) -> usize {
        let mut at = self.may_begin(text);
        let whole = &text[..complete(text)];
        at = at.min(whole.len());
        let start = memrchr2(b'\n', b'\r', whole.as_bytes()).map_or(0, |i| i + 1);
        let line = &whole[start..];
        let view = View::new(line);
        at = at.min(start + self.certain_in(&view));
        if !view.is_source()
            && let Some(view) = View::literal(line)
        {
            at = at.min(start + self.certain_in(&view));
        }
        super::clean::floor(text, at)
    }

    /// The same for one line as it reads; a place in its source.
    fn certain_in(&self, view: &View<'_>) -> usize {
        let b = &*view.b;
        let mut at = b.len();
        let named = !self.secrets.has_own();
        self.secrets.spans(b, true, |from, to| {
            // The name of a secret is none, as long as nothing stands beside it.
            if to == OPEN && !(named && is_name_only(&b[from..])) {
                at = at.min(from);
            }
        });
        for value in self.secrets.known().iter().map(String::as_bytes) {
            let begun = (BEGUN..value.len()).rev().find(|len| b.ends_with(&value[..*len]));
            at = at.min(begun.map_or(b.len(), |len| b.len() - len));
        }
        at = at.min(absolute(b)).min(root_begun(&self.paths, b)).min(id_begun(&self.paths, b));
        at = at.min(run_begun(b));
        if at == b.len() {
            view.source(at, at).1.max(view.source(0, at).1)
        } else {
            view.source(at, at).0
        }
    }
}

/// Whether nothing but letters stands there, as in the name of a field, and perhaps a sign behind it.
fn is_name_only(b: &[u8]) -> bool {
    let sign = |c: &u8| matches!(c, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'');
    let len = b.len() - b.iter().rev().take_while(|c| sign(c)).count();
    len <= 48 && b[..len].iter().all(|c| c.is_ascii_alphabetic() || matches!(c, b'_' | b'-'))
}

/// Where the first path begins that is not relative to something.
fn absolute(b: &[u8]) -> usize {
    for at in memchr2_iter(b'/', b'\\', b) {
        let before = &b[..at];
        let begins = match before.last() {
            None => true,
            Some(b'~') => return at - 1,
            Some(b':') => {
                let [.., drive, _] = before else { return at };
                let other = before.len().checked_sub(3).map(|i| before[i]);
                if drive.is_ascii_alphabetic() && !other.is_some_and(|c| c.is_ascii_alphanumeric())
                {
                    return at - 2;
                }
                false
            }
            Some(b'/' | b'\\' | b'.' | b')' | b'}') => false,
            Some(c) if *c >= 0x80 => {
                let from = before.len().saturating_sub(4);
                let last = String::from_utf8_lossy(&before[from..]);
                last.chars().next_back().is_none_or(|c| is_alone(c) || !c.is_alphanumeric())
            }
            Some(c) => is_stop(*c) || !is_name(*c),
        };
        if begins {
            return at;
        }
    }
    b.len()
}

/// Where the names of a root have begun, with or without the separator before them.
fn root_begun(paths: &Paths, b: &[u8]) -> usize {
    let scan = Scan::new(paths, b, Mode::Text);
    let mut best = b.len();
    for root in &paths.roots {
        let longest: usize = root.parts.iter().map(|p| p.len() + 8).sum();
        let low = b.len().saturating_sub(longest);
        let places =
            (low..b.len()).filter(|at| *at == 0 || !is_name(b[at - 1]) || b[at - 1] >= 0x80);
        for at in places {
            let (from, led) = match scan.sep_after(at) {
                Some(from) => (from, true),
                None => (at, false),
            };
            // A first name alone is a word like others.
            let first = root.parts.first().map_or(0, String::len);
            if (led || b.len() - from > first) && scan.reaches(root, from) {
                best = best.min(at);
                break;
            }
        }
        if let Some(dashed) = &root.dashed {
            let name = dashed.name.as_bytes();
            let begun = (BEGUN + 1..=name.len().min(b.len()))
                .rev()
                .find(|len| b[b.len() - len..].eq_ignore_ascii_case(&name[..*len]));
            best = best.min(begun.map_or(b.len(), |len| b.len() - len));
        }
    }
    best
}

/// Where a known id has begun.
fn id_begun(paths: &Paths, b: &[u8]) -> usize {
    let part = |c: &&u8| c.is_ascii_alphanumeric() || **c == b'-';
    let from = b.len() - b.iter().rev().take(48).take_while(part).count();
    let mut best = b.len();
    for id in &paths.ids {
        let text = id.text.as_bytes();
        for at in from..b.len() {
            let mut rest = b[at..].iter().filter(|c| !id.long || **c != b'-');
            let len = rest.clone().count();
            let same = len <= text.len()
                && text.iter().zip(&mut rest).all(|(a, c)| a.eq_ignore_ascii_case(c));
            if same && len >= BEGUN_ID {
                best = best.min(at);
                break;
            }
        }
    }
    best
}

/// Where the letters and digits begin at the end of a text, if they may be part of a token.
fn run_begun(b: &[u8]) -> usize {
    let part = |c: &&u8| c.is_ascii_alphanumeric() || b"_-.+/=~".contains(*c);
    let from = b.len() - b.iter().rev().take_while(part).count();
    let run = &b[from..];
    let long = run.split(|c| !c.is_ascii_alphanumeric() && !matches!(c, b'_' | b'-')).any(|run| {
        let mixed = run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
        run.len() >= RUN && mixed
    });
    if long { from } else { b.len() }
}
