//! Whole texts and path fields: what was cleaned before is not cleaned again.

use super::clean::{Cleaner, Flow};
use super::escape;
use super::field;
use super::memo::{Became, How, Memo};
use super::paths::Mode;
use super::short::{As, Short};
use super::text::Store;
use ecow::EcoString;

impl Cleaner {
    /// The cleaned text, when it differs.
    pub(super) fn text(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        if text.len() < 4 {
            return None;
        }
        if Short::is_for(text) {
            return Some(self.short_text(text, mode)).filter(|clean| clean != text);
        }
        self.long(text, mode)
    }

    /// The cleaned text; one that was cleaned before is shared.
    pub(super) fn shared(&mut self, raw: Store, mode: Mode) -> EcoString {
        let text = raw.peek();
        if Short::is_for(text) {
            return self.short_text(text, mode);
        }
        if !Memo::is_for(text) {
            let clean = if text.len() < 4 { None } else { self.fresh(text, mode) };
            return clean.unwrap_or_else(|| raw.shared());
        }
        if let Some(Became(clean)) = self.memo.same(text, mode) {
            return clean.unwrap_or_else(|| raw.shared());
        }
        let (clean, how) = self.changed(text, mode);
        if let Some(clean) = clean {
            self.memo.keep(raw, Some(clean.clone()), how);
            return clean;
        }
        let same = raw.shared();
        self.memo.keep(Store::Shared(same.clone()), None, how);
        same
    }

    fn short_text(&mut self, text: &str, mode: Mode) -> EcoString {
        self.short(text, As::Text(mode), |cleaner| cleaner.fresh(text, mode))
    }

    fn long(&mut self, text: &str, mode: Mode) -> Option<EcoString> {
        if !Memo::is_for(text) {
            return self.fresh(text, mode);
        }
        if let Some(Became(clean)) = self.memo.same(text, mode) {
            return clean;
        }
        let (clean, how) = self.changed(text, mode);
        self.memo.keep(Store::Shared(text.into()), clean.clone(), how);
        clean
    }

    /// What becomes of a text that is worth remembering.
    fn changed(&mut self, text: &str, mode: Mode) -> (Option<EcoString>, How) {
        self.wide = false;
        self.moded.set(false);
        let escapes = escape::has_any(text);
        let clean = if escapes {
            self.escaped(text, mode)
        } else if let Some(Became(clean)) = self.nearly(text, mode) {
            clean
        } else {
            self.run(&mut Flow::default(), text, 0..text.len(), mode, true)
        };
        let by_line = !self.wide && !escapes;
        (clean, How { mode, any_mode: !self.moded.get(), by_line })
    }

    /// A short text, which may have been cleaned just so before.
    fn short(
        &mut self,
        text: &str,
        r#as: As,
        clean: impl FnOnce(&mut Self) -> Option<EcoString>,
    ) -> EcoString {
        if let Some((known, removed)) = self.short.get(text, r#as) {
            self.removed.add_all(removed);
            return known;
        }
        let before = std::mem::take(&mut self.removed);
        let clean = clean(self);
        let removed = std::mem::replace(&mut self.removed, before);
        self.removed.add_all(&removed);
        self.short.keep(text, r#as, clean.as_ref(), removed)
    }

    /// Cleans what a text has that a text before it had not.
    fn nearly(&mut self, text: &str, mode: Mode) -> Option<Became> {
        let near = self.memo.near(text, mode)?;
        let part = text.get(near.from..near.to)?;
        let mut flow = Flow::default();
        let clean = self.run(&mut flow, part, 0..part.len(), mode, near.to == text.len());
        if near.moded {
            self.moded.set(true);
        }
        if self.wide || !flow.is_idle() {
            self.wide = false;
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
            return Some(Became(joined));
        };
        let mut all = EcoString::with_capacity(text.len());
        all.push_str(&before);
        all.push_str(clean.as_deref().unwrap_or(part));
        all.push_str(&after);
        Some(Became((all != text).then_some(all)))
    }

    /// Cleans a path field: relative to the session root where it lies inside.
    pub(super) fn field(&mut self, path: &str) -> EcoString {
        if !Short::is_for(path) {
            return self.fresh_field(path).into();
        }
        self.short(path, As::Path, |cleaner| {
            let shown = cleaner.fresh_field(path);
            (shown != path).then(|| shown.into())
        })
    }

    fn fresh_field(&mut self, path: &str) -> String {
        let Some(shown) = field::show(&self.paths, path) else {
            return self.text(path, Mode::Text).map_or_else(|| path.to_owned(), String::from);
        };
        if shown != path {
            self.removed.add("path");
        }
        // What is left of it is text like any other.
        self.text(&shown, Mode::Body).map_or(shown, String::from)
    }
}
