//! The matches of one segment and their replacements.

use super::{Redactor, SegmentHints};
use crate::normalize::{NormalizedText, color};
use crate::paths::scan::{self, Replacement};
use crate::paths::{AnchorKind, Mode, partial};
use crate::secrets::{Candidate, CandidateKind, SecretMatch, Secrets};
use ecow::EcoString;
use std::collections::HashMap;

/// Shortest part of a token that is redacted where the text breaks off.
const MIN_PARTIAL_TOKEN_LEN: usize = 8;
/// Failed attempts per rule and segment. Bounds the cost of a text that is full of token prefixes.
const MAX_MISSES: u16 = 32;

/// Positions in a text where a match may be.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) paths: Vec<(usize, AnchorKind)>,
    pub(crate) secrets: Vec<Candidate>,
}

/// A part of a segment and its replacement.
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: EcoString,
    pub(crate) replacement: EcoString,
    pub(crate) secret: bool,
}

impl Match {
    fn path((start, end): (usize, usize), kind: &str, replacement: &str) -> Match {
        Match { start, end, kind: kind.into(), replacement: replacement.into(), secret: false }
    }
}

impl Redactor {
    /// Finds every position where something to redact may be.
    pub(crate) fn find_candidates(&self, b: &[u8], secrets: bool) -> Candidates {
        let mut found = Candidates::default();
        self.paths.each_candidate(b, |at, anchor| found.paths.push((at, anchor)));
        if found.paths.iter().any(|(_, anchor)| matches!(anchor, AnchorKind::Sessions)) {
            self.mode_sensitive.set(true);
        }
        if secrets {
            self.secrets.each_candidate(b, |candidate| found.secrets.push(candidate));
        }
        found
    }

    /// Resolves candidates to matches, sorted by position.
    pub(crate) fn resolve_matches(
        &self,
        text: &str,
        candidates: &Candidates,
        mode: Mode,
        hints: SegmentHints,
    ) -> Vec<Match> {
        let mut matches = Vec::new();
        if candidates.paths.is_empty() && candidates.secrets.is_empty() && !hints.ends {
            return matches;
        }
        let view = NormalizedText::new(text);
        if view.is_source() {
            self.resolve_in(&view, candidates, mode, hints.ends, &mut matches);
        } else {
            self.resolve_in(
                &view,
                &self.find_candidates(&view.b, hints.secrets),
                mode,
                hints.ends,
                &mut matches,
            );
            if let Some(view) = NormalizedText::literal(text) {
                let from = matches.len();
                let found = self.find_candidates(&view.b, hints.secrets);
                self.resolve_in(&view, &found, mode, hints.ends, &mut matches);
                // The decoded text read a backslash as a separator where it is no escape.
                let mut literal = matches.split_off(from);
                literal.retain(|m| m.secret || !text[m.start..m.end].contains('\\'));
                matches.append(&mut literal);
            }
        }
        matches.sort_by_key(|m| (m.start, std::cmp::Reverse(m.end)));
        matches
    }

    fn resolve_in(
        &self,
        view: &NormalizedText<'_>,
        candidates: &Candidates,
        mode: Mode,
        ends: bool,
        matches: &mut Vec<Match>,
    ) {
        let b = &*view.b;
        for span in scan::spans(&self.paths, &candidates.paths, b, mode) {
            let (kind, replacement) = match &span.replacement {
                Replacement::Empty => ("path", ""),
                Replacement::Dot => ("path", "."),
                Replacement::Home => ("home", "~"),
                Replacement::Ellipsis => ("id", "…"),
                Replacement::Text(text) => ("path", text.as_str()),
            };
            matches.push(Match::path(view.source(span.start, span.end), kind, replacement));
        }
        let mut secrets = self.resolve_secrets(b, &candidates.secrets);
        if ends {
            let covered = secrets.iter().map(|s| s.end).max().unwrap_or(0);
            // After a whole token, a full stop starts nothing.
            let has_more = b[covered.min(b.len())..].iter().any(u8::is_ascii_alphanumeric);
            let partial_token = self.secrets.partial_token(b, b.len(), MIN_PARTIAL_TOKEN_LEN);
            secrets.extend(
                partial_token.filter(|s| s.end > covered && (has_more || s.start >= covered)),
            );
            let from = partial::partial_start(&self.paths, b, false);
            if from < b.len() {
                matches.push(Match::path(view.source(from, b.len()), "path", "…"));
            }
        }
        for secret in secrets {
            let (start, end) = view.source(secret.start, secret.end);
            let replacement =
                self.secrets.placeholder(secret.kind, &b[secret.start..secret.end]).into();
            matches.push(Match { start, end, kind: secret.kind.into(), replacement, secret: true });
        }
    }

    /// Resolves the secrets at the candidates of a text.
    fn resolve_secrets(&self, b: &[u8], candidates: &[Candidate]) -> Vec<SecretMatch<'_>> {
        if candidates.is_empty() {
            return Vec::new();
        }
        let mut candidates = candidates.to_vec();
        candidates.sort_by_key(|s| s.at);
        let (mut covered, mut covered_generic) = (0, 0);
        let mut misses: HashMap<CandidateKind, u16> = HashMap::new();
        let mut found: Vec<SecretMatch<'_>> = Vec::new();
        for candidate in candidates
            .into_iter()
            .filter(|s| !matches!(s.kind, CandidateKind::Pem | CandidateKind::Obscured))
        {
            let generic = Secrets::is_generic(candidate);
            let done = if generic { covered_generic } else { covered };
            if candidate.at < done && candidate.kind != CandidateKind::UrlPassword {
                continue;
            }
            if !generic && misses.get(&candidate.kind).is_some_and(|n| *n >= MAX_MISSES) {
                continue;
            }
            let Some(secret) = self.secrets.match_at(b, candidate) else {
                *misses.entry(candidate.kind).or_default() += 1;
                continue;
            };
            let done = if generic { &mut covered_generic } else { &mut covered };
            *done = secret.end.max(*done);
            found.push(secret);
        }
        let mut specific: Vec<(usize, usize)> =
            found.iter().filter(|s| !s.generic).map(|s| (s.start, s.end)).collect();
        specific.sort_unstable();
        found.retain(|s| {
            let at = specific.partition_point(|(start, _)| *start <= s.start);
            let within = at.checked_sub(1).is_some_and(|i| specific[i].1 >= s.end);
            !s.generic || !within
        });
        found
    }

    /// Replaces the matches of a text. Overlapping matches get one replacement.
    pub(crate) fn apply_matches(&mut self, text: &str, matches: &[Match]) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut at, mut is_secret_marked) = (0, false);
        for m in matches.iter().filter(|m| m.end > m.start) {
            if m.end <= at {
                continue;
            }
            let start = m.start.max(at);
            let is_separate = at == 0 || m.start >= at;
            out.push_str(text.get(at..start).unwrap_or_default());
            if is_separate || (m.secret && !is_secret_marked) {
                out.push_str(&m.replacement);
                is_secret_marked = m.secret;
                self.counts.add(&m.kind);
            }
            // Color changes inside a match take effect after it.
            let source = &text.as_bytes()[start..m.end];
            for i in memchr::memchr_iter(0x1b, source) {
                if let Some(len) = color(&source[i..]) {
                    out.push_str(text.get(start + i..start + i + len).unwrap_or_default());
                }
            }
            at = m.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// Returns whether no match can be left after the replacement: there was no other candidate, and no
/// removed part joins two names.
pub(crate) fn is_fixpoint(text: &str, candidates: &Candidates, matches: &[Match]) -> bool {
    let b = text.as_bytes();
    let joins_names = |m: &Match| {
        let before = m.start.checked_sub(1).map_or(b' ', |i| b[i]);
        m.secret
            || !matches!(before, b' ' | b'\n' | b'\t' | b'"' | b'\'' | b'(' | b'=' | b':' | b'`')
    };
    let plain = memchr::memchr3(b'\\', b'%', 0x1b, b).is_none() && text.is_ascii();
    let within = |at: usize| matches.iter().any(|m| m.start <= at && at < m.end);
    plain
        && matches.len() <= 8
        && !matches.iter().any(joins_names)
        && candidates.paths.iter().all(|(at, _)| within(*at))
}
