//! CandidateKind is found in one segment, and what stands there instead.

use super::{Redactor, SegmentHints};
use crate::normalize::{NormalizedText, color};
use crate::paths::scan::{self, Replacement};
use crate::paths::{AnchorKind, Mode, partial};
use crate::secrets::{Candidate, CandidateKind, SecretMatch, Secrets};
use ecow::EcoString;
use std::collections::HashMap;

/// RedactionTraits much of a token must be there for it to be hidden where the text breaks off.
const MIN_PARTIAL_TOKEN_LEN: usize = 8;
/// RedactionTraits often one rule may look in misses in one segment: a text of nothing but beginnings of tokens
/// must not cost more than others.
const MAX_MISSES: u16 = 32;

/// Places to look at in a text.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) paths: Vec<(usize, AnchorKind)>,
    pub(crate) secrets: Vec<Candidate>,
}

/// Something found in a segment.
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: EcoString,
    pub(crate) replacement: EcoString,
    pub(crate) secret: bool,
}

impl Match {
    fn path((start, end): (usize, usize), kind: &str, put: &str) -> Match {
        Match { start, end, kind: kind.into(), replacement: put.into(), secret: false }
    }
}

impl Redactor {
    /// Everything in a text that may have to be hidden.
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

    /// Everything to hide in a segment, in order.
    pub(crate) fn resolve_matches(
        &self,
        text: &str,
        found: &Candidates,
        mode: Mode,
        kind: SegmentHints,
    ) -> Vec<Match> {
        let mut matches = Vec::new();
        if found.paths.is_empty() && found.secrets.is_empty() && !kind.ends {
            return matches;
        }
        let view = NormalizedText::new(text);
        if view.is_source() {
            self.resolve_in(&view, found, mode, kind.ends, &mut matches);
        } else {
            self.resolve_in(
                &view,
                &self.find_candidates(&view.b, kind.secrets),
                mode,
                kind.ends,
                &mut matches,
            );
            if let Some(view) = NormalizedText::literal(text) {
                let from = matches.len();
                let found = self.find_candidates(&view.b, kind.secrets);
                self.resolve_in(&view, &found, mode, kind.ends, &mut matches);
                // A backslash that is no escape was seen as a separator before.
                let mut late = matches.split_off(from);
                late.retain(|h| h.secret || !text[h.start..h.end].contains('\\'));
                matches.append(&mut late);
            }
        }
        matches.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end)));
        matches
    }

    fn resolve_in(
        &self,
        view: &NormalizedText<'_>,
        found: &Candidates,
        mode: Mode,
        ends: bool,
        matches: &mut Vec<Match>,
    ) {
        let b = &*view.b;
        for cut in scan::spans(&self.paths, &found.paths, b, mode) {
            let (kind, put) = match &cut.replacement {
                Replacement::Empty => ("path", ""),
                Replacement::Dot => ("path", "."),
                Replacement::Home => ("home", "~"),
                Replacement::Ellipsis => ("id", "…"),
                Replacement::Text(text) => ("path", text.as_str()),
            };
            matches.push(Match::path(view.source(cut.start, cut.end), kind, put));
        }
        let mut secrets = self.resolve_secrets(b, &found.secrets);
        if ends {
            let covered = secrets.iter().map(|s| s.end).max().unwrap_or(0);
            // Behind a whole token, a full stop begins nothing.
            let behind = b[covered.min(b.len())..].iter().any(u8::is_ascii_alphanumeric);
            let partial_token = self.secrets.partial_token(b, b.len(), MIN_PARTIAL_TOKEN_LEN);
            secrets.extend(
                partial_token.filter(|s| s.end > covered && (behind || s.start >= covered)),
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

    /// The secrets at the candidates of a text.
    fn resolve_secrets(&self, b: &[u8], candidates: &[Candidate]) -> Vec<SecretMatch<'_>> {
        if candidates.is_empty() {
            return Vec::new();
        }
        let mut candidates = candidates.to_vec();
        candidates.sort_by_key(|s| s.at);
        let (mut covered, mut around) = (0, 0);
        let mut misses: HashMap<CandidateKind, u16> = HashMap::new();
        let mut found: Vec<SecretMatch<'_>> = Vec::new();
        for candidate in candidates
            .into_iter()
            .filter(|s| !matches!(s.kind, CandidateKind::Pem | CandidateKind::Obscured))
        {
            let generic = Secrets::is_generic(candidate);
            let done = if generic { around } else { covered };
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
            let done = if generic { &mut around } else { &mut covered };
            *done = secret.end.max(*done);
            found.push(secret);
        }
        let mut sure: Vec<(usize, usize)> =
            found.iter().filter(|s| !s.generic).map(|s| (s.start, s.end)).collect();
        sure.sort_unstable();
        found.retain(|s| {
            let at = sure.partition_point(|(start, _)| *start <= s.start);
            let within = at.checked_sub(1).is_some_and(|i| sure[i].1 >= s.end);
            !s.generic || !within
        });
        found
    }

    /// The text with what was found replaced. CandidateKind overlaps is hidden as one.
    pub(crate) fn apply_matches(&mut self, text: &str, matches: &[Match]) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut at, mut marked) = (0, false);
        for found in matches.iter().filter(|h| h.end > h.start) {
            if found.end <= at {
                continue;
            }
            let start = found.start.max(at);
            let apart = at == 0 || found.start >= at;
            out.push_str(text.get(at..start).unwrap_or_default());
            if apart || (found.secret && !marked) {
                out.push_str(&found.replacement);
                marked = found.secret;
                self.counts.add(&found.kind);
            }
            // Colors that change within it change behind it.
            let hidden = &text.as_bytes()[start..found.end];
            for i in memchr::memchr_iter(0x1b, hidden) {
                if let Some(len) = color(&hidden[i..]) {
                    out.push_str(text.get(start + i..start + i + len).unwrap_or_default());
                }
            }
            at = found.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// Whether nothing can be found any more once the matches are replaced: nothing else was spotted, and
/// no name meets what stood behind a found.
pub(crate) fn is_fixpoint(text: &str, found: &Candidates, matches: &[Match]) -> bool {
    let b = text.as_bytes();
    let meets = |h: &Match| {
        let before = h.start.checked_sub(1).map_or(b' ', |i| b[i]);
        h.secret
            || !matches!(before, b' ' | b'\n' | b'\t' | b'"' | b'\'' | b'(' | b'=' | b':' | b'`')
    };
    let plain = memchr::memchr3(b'\\', b'%', 0x1b, b).is_none() && text.is_ascii();
    let within = |at: usize| matches.iter().any(|h| h.start <= at && at < h.end);
    plain
        && matches.len() <= 8
        && !matches.iter().any(meets)
        && found.paths.iter().all(|(at, _)| within(*at))
}
