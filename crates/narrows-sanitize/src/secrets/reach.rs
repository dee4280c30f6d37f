//! The spans of secrets with their names, through which a text must not be cut.
//!
//! A match may contain blanks. The regex of its rule says how far it extends: an automaton follows
//! it byte by byte, and the end stays open as long as more text could still make a match.

use super::Secrets;
use super::matching::start_range;
use super::rule::Validation;
use super::rules::NAME_END;
use super::table::{RuleTable, compile};
use super::token_runs::is_word;
use crate::chars::segment_start_before;
use memchr::{memchr_iter, memmem};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, LazyLock};

/// Longest span in bytes.
pub(crate) const MAX_SPAN_BYTES: usize = 4096;
/// The end of a span that only more text can decide.
pub(crate) const OPEN_END: usize = usize::MAX;
/// Words after the keyword of a user rule that may belong to a match.
const USER_RULE_WORDS: usize = 4;
/// Most bytes of these words.
const USER_RULE_BYTES: usize = 512;
/// Longest first or last line of a private key.
const ARMOR_LINE_BYTES: usize = 64;
/// Longest header line of a private key.
const ARMOR_HEADER_BYTES: usize = 128;
/// Longest name that has a value, from its anchor on, and the shortest value.
const MAX_NAME_LEN: usize = 96;
const MIN_VALUE_LEN: usize = 8;
/// Memory that one automaton keeps, in bytes.
const MAX_DFA_CACHE_BYTES: usize = 128 << 10;

/// The headers of a private key, before and after the dash in their names.
const HEADERS: [(&[u8], &[u8]); 2] = [(b"Proc", b"-Type:"), (b"DEK", b"-Info:")];
/// The end of a name that has a value.
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| compile(NAME_END).ok());

/// How far a match extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct MatchReach {
    /// The end of the match.
    to: Option<usize>,
    /// The text ends before it is decided whether the match extends further.
    open: bool,
}

impl Secrets {
    /// Reports each span that must not be cut. Its end is [`OPEN_END`] when the text ends before it
    /// is decided and `more` says that the text may continue.
    pub(crate) fn each_span(&self, b: &[u8], more: bool, mut emit: impl FnMut(usize, usize)) {
        if self.enabled {
            RuleTable::get().each_span(b, more, &mut emit);
        }
        for rule in &self.user_rules {
            for at in memmem::find_iter(b, rule.keyword.as_bytes()) {
                emit(segment_start_before(b, at), user_rule_end(b, at, more));
            }
        }
    }
}

impl RuleTable {
    fn each_span(&self, b: &[u8], more: bool, emit: &mut impl FnMut(usize, usize)) {
        if let Some(keywords) = &self.keywords {
            keywords.each(b, |word, at| {
                let rules = &self.keyword_rules[word];
                for rule in rules {
                    let low = segment_start_before(b, at);
                    let reach = self.reach(*rule, b, low, at);
                    emit_reach(reach, low, more, emit);
                }
                if rules.is_empty() && b[at] == b'-' {
                    emit_reach(armor(b, at), at, more, emit);
                }
            });
        }
        for dash in memchr_iter(b'-', b) {
            let (before, rest) = b.split_at(dash);
            if rest.starts_with(b"-----END ") {
                emit_reach(armor(b, dash), dash, more, emit);
            }
            let header =
                |(name, more): &(&[u8], &[u8])| rest.starts_with(more) && before.ends_with(name);
            if let Some((name, _)) = HEADERS.iter().find(|parts| header(parts)) {
                let at = dash - name.len();
                let to = at + ARMOR_HEADER_BYTES;
                let over = b.len() < to && more;
                emit(at, if over { OPEN_END } else { to });
            }
        }
    }

    /// The reach of a rule whose anchor stands at `at`, for matches that start at `low` or later.
    fn reach(&self, rule: usize, b: &[u8], low: usize, at: usize) -> MatchReach {
        let entry = self.rules[rule];
        if entry.validation == Validation::Value {
            let start = *start_range(entry, b, at).start();
            return value(b, start.max(low), at, entry.regex.starts_with("(?i)--"));
        }
        let Some(dfa) = self.dfas.get(rule).and_then(|made| {
            made.get_or_init(|| RuleDfa::new(entry.regex).map(Box::new)).as_deref()
        }) else {
            return MatchReach::default();
        };
        let mut all = MatchReach::default();
        for start in start_range(entry, b, at).filter(|start| *start >= low) {
            let one = dfa.run(b, start);
            all = MatchReach { to: all.to.max(one.to), open: all.open || one.open };
        }
        all
    }
}

fn emit_reach(reach: MatchReach, from: usize, more: bool, emit: &mut impl FnMut(usize, usize)) {
    if reach.open && more {
        emit(from, OPEN_END);
    } else if let Some(to) = reach.to {
        emit(from, to);
    }
}

/// The regex of a rule as an automaton that is followed byte by byte.
pub(crate) struct RuleDfa {
    dfa: Arc<DFA>,
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>,
}

impl RuleDfa {
    fn new(regex: &str) -> Option<RuleDfa> {
        let config =
            DFA::config().cache_capacity(MAX_DFA_CACHE_BYTES).skip_cache_capacity_check(true);
        let dfa = DFA::builder()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .configure(config)
            .build(regex)
            .ok()?;
        let dfa = Arc::new(dfa);
        let made = Arc::clone(&dfa);
        Some(RuleDfa { dfa, caches: Pool::new(Box::new(move || made.create_cache())) })
    }

    /// The reach of a match that starts at `start`.
    fn run(&self, b: &[u8], start: usize) -> MatchReach {
        let end = b.len().min(start + MAX_SPAN_BYTES);
        let mut cache = self.caches.get();
        let cache = &mut *cache;
        let input = Input::new(b).span(start..end).anchored(Anchored::Yes);
        let Ok(mut state) = self.dfa.start_state_forward(cache, &input) else {
            return MatchReach::default();
        };
        let mut to = None;
        for (at, byte) in b[start..end].iter().enumerate() {
            let Ok(next) = self.dfa.next_state(cache, state, *byte) else { break };
            state = next;
            if state.is_match() {
                to = Some(start + at);
            } else if state.is_dead() || state.is_quit() {
                return MatchReach { to, open: false };
            }
        }
        if end < b.len() {
            return MatchReach { to: Some(end), open: false };
        }
        if self.dfa.next_eoi_state(cache, state).is_ok_and(|s| s.is_match()) {
            to = Some(end);
        }
        MatchReach { to, open: true }
    }
}

/// The reach of a name with its value; the name starts at `start` and its anchor stands at `at`.
/// Accepts what the regexes of values accept, or a little more.
fn value(b: &[u8], start: usize, at: usize, flag: bool) -> MatchReach {
    let open = MatchReach { to: None, open: true };
    let end = skip(b, at, MAX_NAME_LEN, |c| is_word(c) || c == b'.');
    if end == b.len() {
        return open;
    }
    let name = &b[start..end];
    if end - at >= MAX_NAME_LEN || !is_name(name) {
        return MatchReach::default();
    }
    let blank = |c: u8| c == b' ' || c == b'\t';
    let mut to = end;
    if flag {
        to = skip(b, end, 8, blank);
        if to == end || !name.starts_with(b"--") {
            return MatchReach::default();
        }
    } else {
        to = skip(b, to, 4, |c| matches!(c, b'"' | b'\'' | b']' | b'\\'));
        let mut signs = 0;
        // A type may stand between the name and its value, with a sign before and after it.
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
            let Some(type_end) = string_type_end(b, from) else { return open };
            if type_end == from {
                to = from;
                break;
            }
            let sign = skip(b, type_end, 8, blank);
            if b.get(sign).is_some_and(|c| !matches!(c, b':' | b'=')) {
                to = from;
                break;
            }
            to = type_end;
        }
        if signs == 0 {
            return MatchReach::default();
        }
    }
    // `b"`, `r'`, and quotes with backslashes before them.
    let letters = skip(b, to, 2, |c| matches!(c | 0x20, b'b' | b'r' | b'u'));
    let quotes = skip(b, letters, 6, |c| matches!(c, b'\\' | b'"' | b'\'' | b'`'));
    if quotes == b.len() {
        return open;
    }
    let from = if quotes > letters { quotes } else { to };
    let to = skip(b, from, MAX_SPAN_BYTES, |c| is_word(c) || b"!#$%*+./:=?@^~".contains(&c));
    MatchReach { to: (to - from >= MIN_VALUE_LEN).then_some(to), open: to == b.len() }
}

/// Returns whether values of this name are redacted.
pub(crate) fn is_name(name: &[u8]) -> bool {
    NAME.as_ref().is_some_and(|regex| regex.is_match(name))
}

/// The end of the string type at `from`, or `from` when there is none; `None` when the text ends
/// too early to decide.
fn string_type_end(b: &[u8], from: usize) -> Option<usize> {
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

/// Skips at most `max` bytes that are `wanted`.
fn skip(b: &[u8], from: usize, max: usize, wanted: impl Fn(u8) -> bool) -> usize {
    from + b[from..].iter().take(max).take_while(|c| wanted(**c)).count()
}

/// The reach of the first or last line of a key at `at`.
fn armor(b: &[u8], at: usize) -> MatchReach {
    const DASHES: &[u8] = b"-----";
    let from = at + DASHES.len();
    let line = &b[from.min(b.len())..b.len().min(at + ARMOR_LINE_BYTES)];
    let upper = |c: &u8| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == b' ';
    let name = line.iter().take_while(|c| upper(c)).count();
    let rest = &line[name..];
    let to = rest.starts_with(DASHES).then_some(from + name + DASHES.len());
    MatchReach { to, open: from + line.len() == b.len() && DASHES.starts_with(rest) }
}

/// The end of the words after the keyword of a user rule.
fn user_rule_end(b: &[u8], at: usize, more: bool) -> usize {
    let mut to = at;
    for _ in 0..USER_RULE_WORDS {
        to = skip(b, to, USER_RULE_BYTES, |c| !c.is_ascii_whitespace());
        to = skip(b, to, USER_RULE_BYTES, |c| c.is_ascii_whitespace());
    }
    let max = at + USER_RULE_BYTES;
    if to >= b.len() && b.len() < max && more { OPEN_END } else { max.min(to + 1) }
}
