//! Whole texts and path fields, with a cache of recent results.

pub(super) mod long;
pub(super) mod short;

use super::{Redactor, SegmentCarry};
use crate::escapes;
use crate::paths::{Mode, field};
use crate::text::RawRepr;
use ecow::EcoString;
use long::{CachedClean, LongTextCache, RedactionTraits};
use short::{FieldKind, ShortTextCache};

impl Redactor {
    /// Returns the redacted text when it differs.
    pub(crate) fn changed_text(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        if text.len() < 4 {
            return None;
        }
        if ShortTextCache::is_for(text) {
            return Some(self.redact_short(text, mode)).filter(|clean| clean != text);
        }
        self.redact_long(text, mode)
    }

    /// Returns the redacted text; a cached result is shared, not copied.
    pub(crate) fn shared_text(&mut self, raw: RawRepr, mode: Mode) -> EcoString {
        let text = raw.peek();
        if ShortTextCache::is_for(text) {
            return self.redact_short(text, mode);
        }
        if !LongTextCache::is_for(text) {
            let clean = if text.len() < 4 { None } else { self.redact_uncached(text, mode) };
            return clean.unwrap_or_else(|| raw.shared());
        }
        if let Some(CachedClean(clean)) = self.long_cache.same(text, mode) {
            return clean.unwrap_or_else(|| raw.shared());
        }
        let (clean, traits) = self.redact_tracked(text, mode);
        if let Some(clean) = clean {
            self.long_cache.insert(raw, Some(clean.clone()), traits);
            return clean;
        }
        let same = raw.shared();
        self.long_cache.insert(RawRepr::Shared(same.clone()), None, traits);
        same
    }

    fn redact_short(&mut self, text: &str, mode: Mode) -> EcoString {
        self.cached_short(text, FieldKind::Text(mode), |redactor| {
            redactor.redact_uncached(text, mode)
        })
    }

    fn redact_long(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        if !LongTextCache::is_for(text) {
            return self.redact_uncached(text, mode);
        }
        if let Some(CachedClean(clean)) = self.long_cache.same(text, mode) {
            return clean;
        }
        let (clean, traits) = self.redact_tracked(text, mode);
        self.long_cache.insert(RawRepr::Shared(text.into()), clean.clone(), traits);
        clean
    }

    /// Redacts a text for the cache and notes what the result depends on.
    fn redact_tracked(&mut self, text: &str, mode: Mode) -> (Option<EcoString>, RedactionTraits) {
        self.multi_line = false;
        self.mode_sensitive.set(false);
        let escapes = escapes::has_any(text);
        let clean = if escapes {
            self.redact_escaped(text, mode)
        } else if let Some(CachedClean(clean)) = self.redact_near_match(text, mode) {
            clean
        } else {
            self.redact_part(&mut SegmentCarry::default(), text, 0..text.len(), mode, true)
        };
        let by_line = !self.multi_line && !escapes;
        (clean, RedactionTraits { mode, any_mode: !self.mode_sensitive.get(), by_line })
    }

    /// Redacts a short text unless the result is cached.
    fn cached_short(
        &mut self,
        text: &str,
        kind: FieldKind,
        clean: impl FnOnce(&mut Self) -> Option<EcoString>,
    ) -> EcoString {
        if let Some((clean, counts)) = self.short_cache.get(text, kind) {
            self.counts.add_all(counts);
            return clean;
        }
        let before = std::mem::take(&mut self.counts);
        let clean = clean(self);
        let removed = std::mem::replace(&mut self.counts, before);
        self.counts.add_all(&removed);
        self.short_cache.insert(text, kind, clean.as_ref(), removed)
    }

    /// Redacts only the part of a text that differs from a cached one.
    fn redact_near_match(&mut self, text: &str, mode: Mode) -> Option<CachedClean> {
        let near = self.long_cache.near(text, mode)?;
        let part = text.get(near.from..near.to)?;
        let mut carry = SegmentCarry::default();
        let clean = self.redact_part(&mut carry, part, 0..part.len(), mode, near.to == text.len());
        if near.mode_sensitive {
            self.mode_sensitive.set(true);
        }
        if self.multi_line || !carry.is_idle() {
            self.multi_line = false;
            return None;
        }
        let Some((before, after)) = near.around else {
            let joined = clean.map(|clean| {
                let mut all = EcoString::with_capacity(text.len());
                all.push_str(&text[..near.from]);
                all.push_str(&clean);
                all.push_str(&text[near.to..]);
                all
            });
            return Some(CachedClean(joined));
        };
        let mut all = EcoString::with_capacity(text.len());
        all.push_str(&before);
        all.push_str(clean.as_deref().unwrap_or(part));
        all.push_str(&after);
        Some(CachedClean((all != text).then_some(all)))
    }

    /// Redacts a path field: it becomes relative to the root that contains it.
    pub(crate) fn path_text(&mut self, path: &str) -> EcoString {
        if !ShortTextCache::is_for(path) {
            return self.path_text_uncached(path).into();
        }
        self.cached_short(path, FieldKind::Path, |redactor| {
            let redacted = redactor.path_text_uncached(path);
            (redacted != path).then(|| redacted.into())
        })
    }

    fn path_text_uncached(&mut self, path: &str) -> String {
        let Some(redacted) = field::show(&self.paths, path) else {
            return self
                .changed_text(path, Mode::Text)
                .map_or_else(|| path.to_owned(), String::from);
        };
        if redacted != path {
            self.counts.add("path");
        }
        // The remaining path is text like any other.
        self.changed_text(&redacted, Mode::Body).map_or(redacted, String::from)
    }
}
