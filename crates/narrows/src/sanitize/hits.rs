//! What is found in one segment, and what stands there instead.

use super::begun;
use super::clean::{Cleaner, Kind};
use super::paths::{Mode, Owner};
use super::scan::{self, Put};
use super::secret::{Secret, Secrets, Spot, What};
use super::view::{View, colour};
use ecow::EcoString;
use std::collections::HashMap;

/// How much of a token must be there for it to be hidden where the text breaks off.
const BEGUN: usize = 8;
/// How often one rule may look in vain in one segment: a text of nothing but beginnings of tokens
/// must not cost more than others.
const MAX_VAIN: u16 = 32;

/// Places to look at in a text.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) paths: Vec<(usize, Owner)>,
    pub(super) secrets: Vec<Spot>,
}

/// Something found in a segment.
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: EcoString,
    pub(super) put: EcoString,
    pub(super) secret: bool,
}

impl Hit {
    fn path((start, end): (usize, usize), kind: &str, put: &str) -> Hit {
        Hit { start, end, kind: kind.into(), put: put.into(), secret: false }
    }
}

impl Cleaner {
    /// Everything in a text that may have to be hidden.
    pub(super) fn look(&self, b: &[u8], secrets: bool) -> Found {
        let mut found = Found::default();
        self.paths.spots(b, |at, owner| found.paths.push((at, owner)));
        if found.paths.iter().any(|(_, owner)| matches!(owner, Owner::Sessions)) {
            self.moded.set(true);
        }
        if secrets {
            self.secrets.spots(b, |spot| found.secrets.push(spot));
        }
        found
    }

    /// Everything to hide in a segment, in order.
    pub(super) fn hits(&self, text: &str, found: &Found, mode: Mode, kind: Kind) -> Vec<Hit> {
        let mut hits = Vec::new();
        if found.paths.is_empty() && found.secrets.is_empty() && !kind.ends {
            return hits;
        }
        let view = View::new(text);
        if view.is_source() {
            self.hits_in(&view, found, mode, kind.ends, &mut hits);
        } else {
            self.hits_in(&view, &self.look(&view.b, kind.secrets), mode, kind.ends, &mut hits);
            if let Some(view) = View::literal(text) {
                let from = hits.len();
                let found = self.look(&view.b, kind.secrets);
                self.hits_in(&view, &found, mode, kind.ends, &mut hits);
                // A backslash that is no escape was seen as a separator before.
                let mut late = hits.split_off(from);
                late.retain(|h| h.secret || !text[h.start..h.end].contains('\\'));
                hits.append(&mut late);
            }
        }
        hits.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end)));
        hits
    }

    fn hits_in(&self, view: &View<'_>, found: &Found, mode: Mode, ends: bool, hits: &mut Vec<Hit>) {
        let b = &*view.b;
        for cut in scan::cuts(&self.paths, &found.paths, b, mode) {
            let (kind, put) = match &cut.put {
                Put::Nothing => ("path", ""),
                Put::Dot => ("path", "."),
                Put::Home => ("home", "~"),
                Put::Ellipsis => ("id", "…"),
                Put::Text(text) => ("path", text.as_str()),
            };
            hits.push(Hit::path(view.source(cut.start, cut.end), kind, put));
        }
        let mut secrets = self.secrets_in(b, &found.secrets);
        if ends {
            let covered = secrets.iter().map(|s| s.end).max().unwrap_or(0);
            // Behind a whole token, a full stop begins nothing.
            let behind = b[covered.min(b.len())..].iter().any(u8::is_ascii_alphanumeric);
            let begun = self.secrets.begun(b, b.len(), BEGUN);
            secrets.extend(begun.filter(|s| s.end > covered && (behind || s.start >= covered)));
            let from = begun::begun(&self.paths, b, false);
            if from < b.len() {
                hits.push(Hit::path(view.source(from, b.len()), "path", "…"));
            }
        }
        for secret in secrets {
            let (start, end) = view.source(secret.start, secret.end);
            let put = self.secrets.mark(secret.kind, &b[secret.start..secret.end]).into();
            hits.push(Hit { start, end, kind: secret.kind.into(), put, secret: true });
        }
    }

    /// The secrets at the spots of a text.
    fn secrets_in(&self, b: &[u8], spots: &[Spot]) -> Vec<Secret<'_>> {
        if spots.is_empty() {
            return Vec::new();
        }
        let mut spots = spots.to_vec();
        spots.sort_by_key(|s| s.at);
        let (mut covered, mut around) = (0, 0);
        let mut vain: HashMap<What, u16> = HashMap::new();
        let mut found: Vec<Secret<'_>> = Vec::new();
        for spot in spots.into_iter().filter(|s| !matches!(s.what, What::Pem | What::Odd)) {
            let generic = Secrets::is_generic(spot);
            let done = if generic { around } else { covered };
            if spot.at < done && spot.what != What::Login {
                continue;
            }
            if !generic && vain.get(&spot.what).is_some_and(|n| *n >= MAX_VAIN) {
                continue;
            }
            let Some(secret) = self.secrets.at(b, spot) else {
                *vain.entry(spot.what).or_default() += 1;
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

    /// The text with what was found replaced. What overlaps is hidden as one.
    pub(super) fn put_in(&mut self, text: &str, hits: &[Hit]) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut at, mut marked) = (0, false);
        for hit in hits.iter().filter(|h| h.end > h.start) {
            if hit.end <= at {
                continue;
            }
            let start = hit.start.max(at);
            let apart = at == 0 || hit.start >= at;
            out.push_str(text.get(at..start).unwrap_or_default());
            if apart || (hit.secret && !marked) {
                out.push_str(&hit.put);
                marked = hit.secret;
                self.removed.add(&hit.kind);
            }
            // Colours that change within it change behind it.
            let hidden = &text.as_bytes()[start..hit.end];
            for i in memchr::memchr_iter(0x1b, hidden) {
                if let Some(len) = colour(&hidden[i..]) {
                    out.push_str(text.get(start + i..start + i + len).unwrap_or_default());
                }
            }
            at = hit.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// Whether nothing can be found any more once the hits are replaced: nothing else was spotted, and
/// no name meets what stood behind a hit.
pub(super) fn is_settled(text: &str, found: &Found, hits: &[Hit]) -> bool {
    let b = text.as_bytes();
    let meets = |h: &Hit| {
        let before = h.start.checked_sub(1).map_or(b' ', |i| b[i]);
        h.secret
            || !matches!(before, b' ' | b'\n' | b'\t' | b'"' | b'\'' | b'(' | b'=' | b':' | b'`')
    };
    let plain = memchr::memchr3(b'\\', b'%', 0x1b, b).is_none() && text.is_ascii();
    let within = |at: usize| hits.iter().any(|h| h.start <= at && at < h.end);
    plain
        && hits.len() <= 8
        && !hits.iter().any(meets)
        && found.paths.iter().all(|(at, _)| within(*at))
}
