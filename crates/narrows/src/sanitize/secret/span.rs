//! How far the name of a secret and its value reach: where a text must not be cut.
//!
//! What a rule finds may have blanks in it. The expressions themselves say how far it goes: one is
//! followed byte by byte, and as long as more text could still make a match, nothing is decided.

use super::find::starts;
use super::rules::{Check, NAME_END};
use super::runs::is_word;
use super::{Secrets, Table, compile};
use crate::sanitize::segment::cut_before;
use memchr::{memchr_iter, memmem};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, LazyLock};

/// Longest span.
pub(in crate::sanitize) const MAX_SPAN: usize = 4096;
/// The end of a span that more text decides.
pub(in crate::sanitize) const OPEN: usize = usize::MAX;
/// Words behind the keyword of one's own rule that may belong to a match.
const OWN_WORDS: usize = 4;
/// Most bytes of them.
const OWN_BYTES: usize = 512;
/// Longest first or last line of a private key.
const ARMOUR: usize = 64;
/// Longest line of its headers.
const HEADER: usize = 128;
/// Longest name that has a value, from its anchor on; shortest value.
const MAX_NAME: usize = 96;
const MIN_VALUE: usize = 8;
/// Most memory that one automaton keeps.
const MAX_CACHE: usize = 128 << 10;

/// The headers of a private key, before and behind the dash in their names.
const HEADERS: [(&[u8], &[u8]); 2] = [(b"Proc", b"-Type:"), (b"DEK", b"-Info:")];
/// The end of a name that has a value.
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| compile(NAME_END).ok());

/// How far something reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Reach {
    /// The end of a match.
    to: Option<usize>,
    /// The text ends before it is decided whether it goes further.
    open: bool,
}

impl Secrets {
    /// Tells from where to where something reaches that a cut would take apart. The end is [`OPEN`]
    /// where the text is over before that is decided, and `more` says that it may go on.
    pub(in crate::sanitize) fn spans(
        &self,
        b: &[u8],
        more: bool,
        mut tell: impl FnMut(usize, usize),
    ) {
        if self.on {
            Table::get().spans(b, more, &mut tell);
        }
        for rule in &self.own {
            for at in memmem::find_iter(b, rule.keyword.as_bytes()) {
                tell(cut_before(b, at), own_end(b, at, more));
            }
        }
    }
}

impl Table {
    fn spans(&self, b: &[u8], more: bool, tell: &mut impl FnMut(usize, usize)) {
        if let Some(words) = &self.words {
            words.each(b, |word, at| {
                let rules = &self.word_rules[word];
                for rule in rules {
                    let low = cut_before(b, at);
                    let reach = self.reach(*rule, b, low, at);
                    told(reach, low, more, tell);
                }
                if rules.is_empty() && b[at] == b'-' {
                    told(armour(b, at), at, more, tell);
                }
            });
        }
        for dash in memchr_iter(b'-', b) {
            let (before, rest) = b.split_at(dash);
            if rest.starts_with(b"-----END ") {
                told(armour(b, dash), dash, more, tell);
            }
            let header =
                |(name, more): &(&[u8], &[u8])| rest.starts_with(more) && before.ends_with(name);
            if let Some((name, _)) = HEADERS.iter().find(|parts| header(parts)) {
                let at = dash - name.len();
                let to = at + HEADER;
                let over = b.len() < to && more;
                tell(at, if over { OPEN } else { to });
            }
        }
    }

    /// How far a rule reaches whose anchor stands at `at`, when it begins at `low` or later.
    fn reach(&self, rule: usize, b: &[u8], low: usize, at: usize) -> Reach {
        let entry = self.rules[rule];
        if entry.check == Check::Value {
            let start = *starts(entry, b, at).start();
            return value(b, start.max(low), at, entry.regex.starts_with("(?i)--"));
        }
        let Some(walk) = self
            .walks
            .get(rule)
            .and_then(|made| made.get_or_init(|| Walk::new(entry.regex).map(Box::new)).as_deref())
        else {
            return Reach::default();
        };
        let mut all = Reach::default();
        for start in starts(entry, b, at).filter(|start| *start >= low) {
            let one = walk.run(b, start);
            all = Reach { to: all.to.max(one.to), open: all.open || one.open };
        }
        all
    }
}

fn told(reach: Reach, from: usize, more: bool, tell: &mut impl FnMut(usize, usize)) {
    if reach.open && more {
        tell(from, OPEN);
    } else if let Some(to) = reach.to {
        tell(from, to);
    }
}

/// An expression that is followed byte by byte.
pub(super) struct Walk {
    dfa: Arc<DFA>,
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>,
}

impl Walk {
    fn new(regex: &str) -> Option<Walk> {
        let config = DFA::config().cache_capacity(MAX_CACHE).skip_cache_capacity_check(true);
        let dfa = DFA::builder()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .configure(config)
            .build(regex)
            .ok()?;
        let dfa = Arc::new(dfa);
        let made = Arc::clone(&dfa);
        Some(Walk { dfa, caches: Pool::new(Box::new(move || made.create_cache())) })
    }

    /// How far a match goes that begins at `start`.
    fn run(&self, b: &[u8], start: usize) -> Reach {
        let end = b.len().min(start + MAX_SPAN);
        let mut cache = self.caches.get();
        let cache = &mut *cache;
        let input = Input::new(b).span(start..end).anchored(Anchored::Yes);
        let Ok(mut state) = self.dfa.start_state_forward(cache, &input) else {
            return Reach::default();
        };
        let mut to = None;
        for (at, byte) in b[start..end].iter().enumerate() {
            let Ok(next) = self.dfa.next_state(cache, state, *byte) else { break };
            state = next;
            if state.is_match() {
                to = Some(start + at);
            } else if state.is_dead() || state.is_quit() {
                return Reach { to, open: false };
            }
        }
        if end < b.len() {
            return Reach { to: Some(end), open: false };
        }
        if self.dfa.next_eoi_state(cache, state).is_ok_and(|s| s.is_match()) {
            to = Some(end);
        }
        Reach { to, open: true }
    }
}

/// How far a name reaches whose anchor stands at `at` and that begins at `start`, with its value.
/// Reads what the expressions of values read, or a little more.
fn value(b: &[u8], start: usize, at: usize, flag: bool) -> Reach {
    let open = Reach { to: None, open: true };
    let end = skip(b, at, MAX_NAME, |c| is_word(c) || c == b'.');
    if end == b.len() {
        return open;
    }
    let name = &b[start..end];
    if end - at >= MAX_NAME || !is_name(name) {
        return Reach::default();
    }
    let blank = |c: u8| c == b' ' || c == b'\t';
    let mut to = end;
    if flag {
        to = skip(b, end, 8, blank);
        if to == end || !name.starts_with(b"--") {
            return Reach::default();
        }
    } else {
        to = skip(b, to, 4, |c| matches!(c, b'"' | b'\'' | b']' | b'\\'));
        let mut signs = 0;
        // A type may stand between the name and its value, with a sign before it and one behind.
        for _ in 0..2 {
            let from = skip(b, to, 8, blank);
            to = skip(b, from, 4, |c| matches!(c, b':' | b'=' | b'>'));
            if to == b.len() {
                return open;
            }
            if to == from {
                break;
            }
            signs += 1;
            let from = skip(b, to, 8, blank);
            let Some(behind) = kind(b, from) else { return open };
            if behind == from {
                to = from;
                break;
            }
            let sign = skip(b, behind, 8, blank);
            if b.get(sign).is_some_and(|c| !matches!(c, b':' | b'=')) {
                to = from;
                break;
            }
            to = behind;
        }
        if signs == 0 {
            return Reach::default();
        }
    }
    // `b"`, `r'`, and quotes with backslashes before them.
    let letters = skip(b, to, 2, |c| matches!(c | 0x20, b'b' | b'r' | b'u'));
    let quotes = skip(b, letters, 6, |c| matches!(c, b'\\' | b'"' | b'\'' | b'`'));
    if quotes == b.len() {
        return open;
    }
    let from = if quotes > letters { quotes } else { to };
    let to = skip(b, from, MAX_SPAN, |c| is_word(c) || b"!#$%*+./:=?@^~".contains(&c));
    Reach { to: (to - from >= MIN_VALUE).then_some(to), open: to == b.len() }
}

/// Whether a name is one whose value is hidden.
pub(super) fn is_name(name: &[u8]) -> bool {
    NAME.as_ref().is_some_and(|regex| regex.is_match(name))
}

/// Where the name of a string's type ends that begins at `from`, which it need not; nothing when the
/// text ends before that is known.
fn kind(b: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    for part in [&b"&"[..], b"'static ", b"str", b"ing"] {
        let rest = &b[at..];
        if rest.len() < part.len() && part[..rest.len()].eq_ignore_ascii_case(rest) {
            return None;
        }
        if rest.get(..part.len()).is_some_and(|r| r.eq_ignore_ascii_case(part)) {
            at += part.len();
        } else if part == b"str" {
            return Some(from);
        }
    }
    Some(at)
}

/// Behind the bytes from `from` on that are wanted, of which there are `most`.
fn skip(b: &[u8], from: usize, most: usize, wanted: impl Fn(u8) -> bool) -> usize {
    from + b[from..].iter().take(most).take_while(|c| wanted(**c)).count()
}

/// The first or last line of a key that begins at `at`.
fn armour(b: &[u8], at: usize) -> Reach {
    const DASHES: &[u8] = b"-----";
    let from = at + DASHES.len();
    let line = &b[from.min(b.len())..b.len().min(at + ARMOUR)];
    let upper = |c: &u8| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == b' ';
    let name = line.iter().take_while(|c| upper(c)).count();
    let rest = &line[name..];
    let to = rest.starts_with(DASHES).then_some(from + name + DASHES.len());
    Reach { to, open: from + line.len() == b.len() && DASHES.starts_with(rest) }
}

/// Where the words behind the keyword of one's own rule end.
fn own_end(b: &[u8], at: usize, more: bool) -> usize {
    let mut to = at;
    for _ in 0..OWN_WORDS {
        to = skip(b, to, OWN_BYTES, |c| !c.is_ascii_whitespace());
        to = skip(b, to, OWN_BYTES, |c| c.is_ascii_whitespace());
    }
    let most = at + OWN_BYTES;
    if to >= b.len() && b.len() < most && more { OPEN } else { most.min(to + 1) }
}
