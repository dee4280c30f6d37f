//! Finds where secrets may be.

use super::matching::{MATCH_WINDOW_BYTES, match_url_password, match_user_rule};
use super::rule::{AnchorSearch, Validation};
use super::table::RuleTable;
use super::token_runs::{self, RunMatch, is_word};
use super::{KNOWN_VALUE_KIND, Secrets, validate};

/// A position that is worth a match attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) at: usize,
    pub(crate) kind: CandidateKind,
}

/// What stands at a candidate position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CandidateKind {
    /// An anchor of a built-in rule.
    Rule(usize),
    /// A keyword of a user rule.
    UserRule(usize),
    /// A known value and its end.
    KnownValue(usize),
    /// An `@` after a URL: a login may stand before it.
    UrlPassword,
    /// The header of a private key.
    Pem,
    /// Colors, escapes, invisible characters: a token may be interrupted here.
    Obscured,
}

/// A secret and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretMatch<'a> {
    pub(crate) kind: &'a str,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Recognized by its context; a match of a rule that knows the format takes precedence.
    pub(crate) generic: bool,
}

impl Secrets {
    /// Reports every position that may hold a secret, in no particular order.
    pub(crate) fn each_candidate(&self, b: &[u8], mut emit: impl FnMut(Candidate)) {
        if self.enabled {
            let table = RuleTable::get();
            table.scan_keywords(b, &mut emit);
            table.scan_runs(b, &mut emit);
        }
        if let Some(index) = &self.user_index {
            for found in index.find_overlapping_iter(b) {
                let i = found.pattern().as_usize();
                let kind = match i.checked_sub(self.known_values.len()) {
                    None => CandidateKind::KnownValue(found.end()),
                    Some(rule) => CandidateKind::UserRule(rule),
                };
                emit(Candidate { at: found.start(), kind });
            }
        }
    }

    /// Returns whether a match at this candidate is recognized by its context.
    pub(crate) fn is_generic(candidate: Candidate) -> bool {
        match candidate.kind {
            CandidateKind::Rule(rule) => RuleTable::get().rules[rule].is_generic(),
            CandidateKind::UrlPassword => true,
            _ => false,
        }
    }

    /// Returns the secret at a candidate.
    pub(crate) fn match_at(&self, b: &[u8], candidate: Candidate) -> Option<SecretMatch<'_>> {
        let secret = match candidate.kind {
            CandidateKind::Rule(rule) => RuleTable::get().match_rule(rule, b, candidate.at),
            CandidateKind::UserRule(rule) => {
                self.user_rules.get(rule).and_then(|r| match_user_rule(r, b, candidate.at))
            }
            CandidateKind::KnownValue(end) => Some(SecretMatch {
                kind: KNOWN_VALUE_KIND,
                start: candidate.at,
                end,
                generic: false,
            }),
            CandidateKind::UrlPassword => match_url_password(b, candidate.at),
            CandidateKind::Pem | CandidateKind::Obscured => None,
        }?;
        (!self.is_allowed(&b[secret.start..secret.end])).then_some(secret)
    }

    /// Returns whether the value of this key is a secret.
    pub(crate) fn is_key_value(&self, key: &str, value: &str) -> bool {
        // Most keys name no secret: check that first.
        let names_secret = self.enabled && value.len() >= 8 && super::is_key(key.as_bytes());
        if !names_secret || value.contains(' ') || !validate::is_value(value.as_bytes(), None, true)
        {
            return false;
        }
        // Match it as an assignment.
        let text = format!("{key}={value}");
        let mut found = false;
        RuleTable::get().scan_keywords(text.as_bytes(), &mut |candidate| {
            found |=
                candidate.at < key.len() && self.match_at(text.as_bytes(), candidate).is_some();
        });
        found
    }

    /// Returns whether any value of this key may be a secret.
    pub(crate) fn is_secret_key(&self, key: &str) -> bool {
        self.enabled && key.len() <= 64 && super::reach::is_name(key.as_bytes())
    }

    /// Returns the token that has started where the text ends at `end`.
    pub(crate) fn partial_token(
        &self,
        b: &[u8],
        end: usize,
        min_tail: usize,
    ) -> Option<SecretMatch<'_>> {
        let table = RuleTable::get();
        let part = |c: &&u8| {
            is_word(**c)
                || matches!(c, b'.' | b'/' | b'+' | b'=' | b'~')
                || (**c == b':' && min_tail == 0)
        };
        let len = b[..end].iter().rev().take(MATCH_WINDOW_BYTES).take_while(part).count();
        if !self.enabled || len < min_tail + 3 {
            return None;
        }
        let from = end - len;
        let prefixes = table.prefixes.as_ref()?;
        // The earliest start, and of those the longest prefix.
        let mut best: Option<(usize, usize, usize)> = None;
        for found in prefixes.find_overlapping_iter(&b[from..end]) {
            let (start, stop) = (from + found.start(), from + found.end());
            let rule = *table.prefix_rules.get(found.pattern().as_usize())?.first()?;
            let tail = &b[stop..end];
            let glued = found.start() > 0 && b[start - 1].is_ascii_alphanumeric();
            let lookbehind = table.rules[rule].lookbehind;
            let strong = stop - start >= 4 || !glued || lookbehind > 0;
            let whole = min_tail == 0 || (tail.len() >= min_tail && validate::is_jumbled(tail));
            let longer = best.is_none_or(|(s, e, _)| start < s || (start == s && stop > e));
            // Some tokens start before their anchor: include that part while more text may come.
            if (lookbehind == 0 || min_tail == 0) && strong && whole && longer {
                best = Some((start.saturating_sub(lookbehind).max(from), stop, rule));
            }
        }
        let (start, _, rule) = best?;
        Some(SecretMatch { kind: table.rules[rule].kind, start, end, generic: false })
    }
}

impl Secrets {
    /// Returns whether a word is the start of some token's prefix.
    pub(crate) fn may_start_token(&self, word: &[u8]) -> bool {
        let begins =
            |anchor: &&str| anchor.len() > word.len() && anchor.as_bytes().starts_with(word);
        let mut rules =
            RuleTable::get().rules.iter().filter(|rule| rule.search == AnchorSearch::TokenRun);
        self.enabled && !word.is_empty() && rules.any(|rule| rule.anchors.iter().any(begins))
    }
}

impl RuleTable {
    fn scan_keywords(&self, b: &[u8], emit: &mut impl FnMut(Candidate)) {
        let Some(keywords) = &self.keywords else { return };
        keywords.each(b, |word, at| {
            let rules = &self.keyword_rules[word];
            for rule in rules.iter().filter(|r| self.is_plausible(**r, b, at)) {
                emit(Candidate { at, kind: CandidateKind::Rule(*rule) });
            }
            if rules.is_empty() {
                let kind = if b[at] == b'-' { CandidateKind::Pem } else { CandidateKind::Obscured };
                emit(Candidate { at, kind });
            }
        });
    }

    /// Returns whether a match attempt is worthwhile: keys are named far more often than assigned.
    fn is_plausible(&self, rule: usize, b: &[u8], at: usize) -> bool {
        let entry = self.rules[rule];
        if !entry.context.is_empty() {
            let near = b[at.saturating_sub(12)..b.len().min(at + 20)].to_ascii_lowercase();
            if !entry.context.iter().any(|w| memchr::memmem::find(&near, w.as_bytes()).is_some()) {
                return false;
            }
        }
        if entry.validation == Validation::Value && !RuleTable::has_value(b, at) {
            return false;
        }
        // Encoded text is matched after decoding.
        let encoded = |c: &u8| matches!(c, b'%' | b'\\' | 0x1b) || *c >= 0x80;
        self.regex_matches(rule, b, at)
            || b[at.saturating_sub(16)..b.len().min(at + 96)].iter().any(encoded)
    }

    /// Returns whether something that may be a value follows a key name.
    fn has_value(b: &[u8], at: usize) -> bool {
        let rest = &b[at..b.len().min(at + 160)];
        let name = rest.iter().take_while(|c| is_word(**c) || **c == b'.').count();
        let mut rest = &rest[name..];
        if rest.is_empty() {
            return true;
        }
        let signs = |c: &&u8| {
            matches!(
                c,
                b'"' | b'\'' | b'\\' | b'`' | b']' | b')' | b' ' | b'\t' | b'=' | b':' | b'>'
            )
        };
        let gap = rest.iter().take(24).take_while(signs).count();
        let opened = rest[..gap].iter().any(|c| matches!(c, b'=' | b':' | b' '));
        rest = &rest[gap..];
        // Encoded signs are matched after decoding.
        if matches!(rest.first(), Some(b'%' | 0x1b)) || !opened {
            return opened || gap < 3 && rest.first().is_some_and(|c| matches!(c, b'%' | 0x1b));
        }
        // A value contains a digit; after a type name, it is quoted.
        let quote = rest.iter().take(24).position(|c| matches!(c, b'"' | b'\''));
        let valued = |v: &[u8]| {
            let end = v.iter().position(u8::is_ascii_whitespace).unwrap_or(v.len());
            end >= 8 && v[..end].iter().any(|c| c.is_ascii_digit() || matches!(c, b'%' | 0x1b))
        };
        valued(rest) || quote.is_some_and(|i| valued(&rest[i + 1..]))
    }

    fn scan_runs(&self, b: &[u8], emit: &mut impl FnMut(Candidate)) {
        token_runs::each(b, |found| match found {
            RunMatch::Run(from, to) => {
                // Many runs have no digit, but few tokens do not.
                let run = &b[from..to];
                if run.iter().any(u8::is_ascii_digit) || is_lettered(run) {
                    self.scan_run(b, from, to, emit);
                }
            }
            RunMatch::Sign(at) => self.scan_sign(b, at, emit),
        });
    }

    fn scan_sign(&self, b: &[u8], at: usize, emit: &mut impl FnMut(Candidate)) {
        match b[at] {
            b'@' => {
                if match_url_password(b, at).is_some() {
                    emit(Candidate { at, kind: CandidateKind::UrlPassword });
                }
            }
            b'~' => {
                let azure = at >= 5 && b[at - 1] == b'Q' && matches!(b[at - 2], b'7' | b'8');
                if let Some(rule) = self.azure.filter(|_| azure) {
                    emit(Candidate { at: at - 2, kind: CandidateKind::Rule(rule) });
                }
            }
            0x1b => emit(Candidate { at, kind: CandidateKind::Obscured }),
            // A byte of a non-ASCII character.
            _ => {
                if crate::normalize::invisible(&b[at..]).is_some() {
                    emit(Candidate { at, kind: CandidateKind::Obscured });
                }
            }
        }
    }

    fn scan_run(&self, b: &[u8], from: usize, to: usize, emit: &mut impl FnMut(Candidate)) {
        let Some(prefixes) = &self.prefixes else { return };
        // Hashes and UUIDs contain no token prefix.
        let hex = |c: &u8| c.is_ascii_hexdigit() || *c == b'-';
        let alone = from == 0 || !matches!(b[from - 1], b'.' | b'/' | b':');
        if alone && b[from..to].iter().all(hex) {
            return;
        }
        let low = from.saturating_sub(16);
        for found in prefixes.find_overlapping_iter(&b[low..to]) {
            for rule in &self.prefix_rules[found.pattern().as_usize()] {
                let at = low + found.start();
                // A short prefix in the middle of a base64 blob is chance.
                let anchor = &b[at..low + found.end()];
                let weak = anchor.len() <= 4
                    && self.rules[*rule].lookbehind < 4
                    && in_blob(b, at)
                    && (anchor.len() < 4 || anchor.iter().all(u8::is_ascii_alphanumeric));
                if !weak {
                    emit(Candidate { at, kind: CandidateKind::Rule(*rule) });
                }
            }
        }
        let dotted = b.get(to) == Some(&b'.') && b.get(to + 7) == Some(&b'.');
        if let Some(rule) = self.discord.filter(|_| dotted && to - from >= 24) {
            emit(Candidate { at: to.saturating_sub(24), kind: CandidateKind::Rule(rule) });
        }
    }
}

/// Returns whether a run without a digit may be a token: sixteen capitals in a row, or `hf_`.
fn is_lettered(run: &[u8]) -> bool {
    let capitals = |w: &[u8]| w[0].is_ascii_uppercase() && w[15].is_ascii_uppercase();
    run.windows(16).step_by(2).any(capitals)
        || memchr::memchr_iter(b'_', run).any(|i| run[..i].ends_with(b"hf"))
}

/// Returns whether a long piece of base64 ends at `at`.
fn in_blob(b: &[u8], at: usize) -> bool {
    let part = |c: &&u8| c.is_ascii_alphanumeric() || **c == b'+';
    b[..at].iter().rev().take(24).take_while(part).count() == 24
}
