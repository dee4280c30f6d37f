//! Where secrets may be, and whether they are.

use super::rules::{Check, Found, Rule};
use super::runs::{self, is_word};
use super::{KNOWN, OwnRule, Secrets, Table, check};
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

/// How far a match may reach behind its anchor.
const REACH: usize = 4096;
/// The same for the value beside a key name.
const VALUE_REACH: usize = 1024;
/// A place to look at closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sanitize) struct Spot {
    pub(in crate::sanitize) at: usize,
    pub(in crate::sanitize) what: What,
}

/// What stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::sanitize) enum What {
    /// An anchor of a built-in rule.
    Rule(usize),
    /// A keyword of one's own rule.
    Own(usize),
    /// A known value, and where it ends.
    Known(usize),
    /// An `@` after an address: a login may stand before it.
    Login,
    /// The beginning of a private key.
    Pem,
    /// Colours, escapes, invisible characters: what reads as one token may not be one here.
    Odd,
}

/// A secret that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sanitize) struct Secret<'a> {
    pub(in crate::sanitize) kind: &'a str,
    pub(in crate::sanitize) start: usize,
    pub(in crate::sanitize) end: usize,
    /// Found by what stands around it: a rule that knows its own shape says more.
    pub(in crate::sanitize) generic: bool,
}

impl Secrets {
    /// Tells every place that may hold a secret, in no particular order.
    pub(in crate::sanitize) fn spots(&self, b: &[u8], mut tell: impl FnMut(Spot)) {
        if self.on {
            let table = Table::get();
            table.words(b, &mut tell);
            table.signs(b, &mut tell);
        }
        if let Some(extra) = &self.extra {
            for found in extra.find_overlapping_iter(b) {
                let i = found.pattern().as_usize();
                let what = match i.checked_sub(self.known.len()) {
                    None => What::Known(found.end()),
                    Some(own) => What::Own(own),
                };
                tell(Spot { at: found.start(), what });
            }
        }
    }

    /// Whether what is found there is found by what stands around it.
    pub(in crate::sanitize) fn is_generic(spot: Spot) -> bool {
        match spot.what {
            What::Rule(rule) => Table::get().rules[rule].is_generic(),
            What::Login => true,
            _ => false,
        }
    }

    /// The secret at a spot.
    pub(in crate::sanitize) fn at(&self, b: &[u8], spot: Spot) -> Option<Secret<'_>> {
        let secret = match spot.what {
            What::Rule(rule) => Table::get().rule(rule, b, spot.at),
            What::Own(own) => self.own.get(own).and_then(|r| own_rule(r, b, spot.at)),
            What::Known(end) => Some(Secret { kind: KNOWN, start: spot.at, end, generic: false }),
            What::Login => login(b, spot.at),
            What::Pem | What::Odd => None,
        }?;
        (!self.is_allowed(&b[secret.start..secret.end])).then_some(secret)
    }

    /// Whether a value under this key is a secret.
    pub(in crate::sanitize) fn is_keyed(&self, key: &str, value: &str) -> bool {
        // Most keys name no secret: that is seen first.
        let named = self.on && value.len() >= 8 && crate::sanitize::segment::is_key(key.as_bytes());
        if !named || value.contains(' ') || !check::is_value(value.as_bytes(), None, true) {
            return false;
        }
        // As the assignment that it is.
        let text = format!("{key}={value}");
        let mut found = false;
        Table::get().words(text.as_bytes(), &mut |spot| {
            found |= spot.at < key.len() && self.at(text.as_bytes(), spot).is_some();
        });
        found
    }

    /// Whether a value under this key may be a secret, whatever it is.
    pub(in crate::sanitize) fn is_name(&self, key: &str) -> bool {
        self.on && key.len() <= 64 && super::span::is_name(key.as_bytes())
    }

    /// The token that has begun where the text ends at `end`.
    pub(in crate::sanitize) fn begun(
        &self,
        b: &[u8],
        end: usize,
        least: usize,
    ) -> Option<Secret<'_>> {
        let table = Table::get();
        let part = |c: &&u8| {
            is_word(**c)
                || matches!(c, b'.' | b'/' | b'+' | b'=' | b'~')
                || (**c == b':' && least == 0)
        };
        let len = b[..end].iter().rev().take(REACH).take_while(part).count();
        if !self.on || len < least + 3 {
            return None;
        }
        let from = end - len;
        let starts = table.starts.as_ref()?;
        // The earliest beginning, and of those the longest.
        let mut best: Option<(usize, usize, usize)> = None;
        for found in starts.find_overlapping_iter(&b[from..end]) {
            let (start, stop) = (from + found.start(), from + found.end());
            let rule = *table.start_rules.get(found.pattern().as_usize())?.first()?;
            let tail = &b[stop..end];
            let glued = found.start() > 0 && b[start - 1].is_ascii_alphanumeric();
            let before = table.rules[rule].before;
            let strong = stop - start >= 4 || !glued || before > 0;
            let whole = least == 0 || (tail.len() >= least && check::is_jumbled(tail));
            let longer = best.is_none_or(|(s, e, _)| start < s || (start == s && stop > e));
            // What stands before the anchor of some belongs to them: it is looked at while more may come.
            if (before == 0 || least == 0) && strong && whole && longer {
                best = Some((start.saturating_sub(before).max(from), stop, rule));
            }
        }
        let (start, _, rule) = best?;
        Some(Secret { kind: table.rules[rule].kind, start, end, generic: false })
    }
}

impl Secrets {
    /// Whether a word is the first letters of what tokens of some kind begin with.
    pub(in crate::sanitize) fn may_start(&self, word: &[u8]) -> bool {
        let begins =
            |anchor: &&str| anchor.len() > word.len() && anchor.as_bytes().starts_with(word);
        let mut rules = Table::get().rules.iter().filter(|rule| rule.found == super::Found::Run);
        self.on && !word.is_empty() && rules.any(|rule| rule.anchors.iter().any(begins))
    }
}

impl Table {
    fn words(&self, b: &[u8], tell: &mut impl FnMut(Spot)) {
        let Some(words) = &self.words else { return };
        words.each(b, |word, at| {
            let rules = &self.word_rules[word];
            for rule in rules.iter().filter(|r| self.may_be(**r, b, at)) {
                tell(Spot { at, what: What::Rule(*rule) });
            }
            if rules.is_empty() {
                let what = if b[at] == b'-' { What::Pem } else { What::Odd };
                tell(Spot { at, what });
            }
        });
    }

    /// Whether a closer look is worth it: keys are named far more often than given a value.
    fn may_be(&self, rule: usize, b: &[u8], at: usize) -> bool {
        let entry = self.rules[rule];
        if !entry.also.is_empty() {
            let near = b[at.saturating_sub(12)..b.len().min(at + 20)].to_ascii_lowercase();
            if !entry.also.iter().any(|w| memchr::memmem::find(&near, w.as_bytes()).is_some()) {
                return false;
            }
        }
        if entry.check == Check::Value && !Table::has_value(b, at) {
            return false;
        }
        // What is encoded is looked at in the decoded text.
        let encoded = |c: &u8| matches!(c, b'%' | b'\\' | 0x1b) || *c >= 0x80;
        self.matches(rule, b, at)
            || b[at.saturating_sub(16)..b.len().min(at + 96)].iter().any(encoded)
    }

    /// Whether the regex of a rule finds anything around its anchor, right or wrong.
    fn matches(&self, rule: usize, b: &[u8], at: usize) -> bool {
        let Some(regex) = self.regex(rule) else { return false };
        let end = b.len().min(at + REACH);
        starts(self.rules[rule], b, at).any(|start| {
            let input = Input::new(b).span(start..end).anchored(Anchored::Yes).earliest(true);
            regex.search_half(&input).is_some()
        })
    }

    /// Whether a key name is followed by what may be its value.
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
        // Encoded signs are looked at in the decoded text.
        if matches!(rest.first(), Some(b'%' | 0x1b)) || !opened {
            return opened || gap < 3 && rest.first().is_some_and(|c| matches!(c, b'%' | 0x1b));
        }
        // A value has a digit; behind the name of a type, it is quoted.
        let quote = rest.iter().take(24).position(|c| matches!(c, b'"' | b'\''));
        let valued = |v: &[u8]| {
            let end = v.iter().position(u8::is_ascii_whitespace).unwrap_or(v.len());
            end >= 8 && v[..end].iter().any(|c| c.is_ascii_digit() || matches!(c, b'%' | 0x1b))
        };
        valued(rest) || quote.is_some_and(|i| valued(&rest[i + 1..]))
    }

    fn signs(&self, b: &[u8], tell: &mut impl FnMut(Spot)) {
        runs::each(b, |found| match found {
            runs::Found::Run(from, to) => {
                // Names without a digit are many, tokens without one few.
                let run = &b[from..to];
                if run.iter().any(u8::is_ascii_digit) || is_lettered(run) {
                    self.run(b, from, to, tell);
                }
            }
            runs::Found::Sign(at) => self.sign(b, at, tell),
        });
    }

    fn sign(&self, b: &[u8], at: usize, tell: &mut impl FnMut(Spot)) {
        match b[at] {
            b'@' => {
                if login(b, at).is_some() {
                    tell(Spot { at, what: What::Login });
                }
            }
            b'~' => {
                let azure = at >= 5 && b[at - 1] == b'Q' && matches!(b[at - 2], b'7' | b'8');
                if let Some(rule) = self.azure.filter(|_| azure) {
                    tell(Spot { at: at - 2, what: What::Rule(rule) });
                }
            }
            0x1b => tell(Spot { at, what: What::Odd }),
            // The first byte of a character beyond ASCII, or one of its others.
            _ => {
                if crate::sanitize::view::invisible(&b[at..]).is_some() {
                    tell(Spot { at, what: What::Odd });
                }
            }
        }
    }

    fn run(&self, b: &[u8], from: usize, to: usize, tell: &mut impl FnMut(Spot)) {
        let Some(starts) = &self.starts else { return };
        // Hashes and UUIDs have no beginning of a token in them.
        let hex = |c: &u8| c.is_ascii_hexdigit() || *c == b'-';
        let alone = from == 0 || !matches!(b[from - 1], b'.' | b'/' | b':');
        if alone && b[from..to].iter().all(hex) {
            return;
        }
        let low = from.saturating_sub(16);
        for found in starts.find_overlapping_iter(&b[low..to]) {
            for rule in &self.start_rules[found.pattern().as_usize()] {
                let at = low + found.start();
                // A short beginning in the middle of a blob is chance.
                let anchor = &b[at..low + found.end()];
                let weak = anchor.len() <= 4
                    && self.rules[*rule].before < 4
                    && in_blob(b, at)
                    && (anchor.len() < 4 || anchor.iter().all(u8::is_ascii_alphanumeric));
                if !weak {
                    tell(Spot { at, what: What::Rule(*rule) });
                }
            }
        }
        let dotted = b.get(to) == Some(&b'.') && b.get(to + 7) == Some(&b'.');
        if let Some(rule) = self.discord.filter(|_| dotted && to - from >= 24) {
            tell(Spot { at: to.saturating_sub(24), what: What::Rule(rule) });
        }
    }

    /// The match of a rule around its anchor.
    fn rule(&self, rule: usize, b: &[u8], at: usize) -> Option<Secret<'static>> {
        let regex = self.regex(rule)?;
        let rule: &'static Rule = self.rules[rule];
        let reach = if rule.check == Check::Value { VALUE_REACH } else { REACH };
        let end = b.len().min(at + reach);
        let mut captures = regex.create_captures();
        for start in starts(rule, b, at) {
            let input = Input::new(b).span(start..end).anchored(Anchored::Yes);
            regex.search_captures(&input, &mut captures);
            let Some((from, mut to)) = hidden(&captures) else { continue };
            // A longer secret is hidden to its end.
            if to == end {
                let more = |c: &&u8| is_word(**c) || b"./+=~%".contains(*c);
                to += b[end..].iter().take_while(more).count();
            }
            let secret = &b[from..to];
            let before = start.checked_sub(1).map_or(b' ', |i| b[i]);
            let next = b.get(to).copied();
            // `Endpoint::Authorization`, `f(authorization)`: code that names a header.
            let code = before.is_ascii_alphanumeric() || before == b':' || next == Some(b'(');
            let passes = match rule.check {
                _ if code && rule.kind == "authorization" => false,
                Check::Any => true,
                Check::Random => check::is_random(secret),
                Check::Jwt => check::is_jwt(secret),
                Check::Login => check::is_login(secret),
                Check::Value => {
                    let quoted = from > 0 && matches!(b[from - 1], b'"' | b'\'' | b'`');
                    let name = &b[start..from];
                    // `Type::Secret`, `arn:secret:name`: parts of a longer name.
                    let two = start.checked_sub(2).map(|i| b[i]) == Some(b':');
                    let part = before == b':' && (two || name.ends_with(b":"));
                    !part && !check::is_pager(name) && check::is_value(secret, next, quoted)
                }
            };
            let generic = rule.is_generic();
            return passes.then_some(Secret { kind: rule.kind, start: from, end: to, generic });
        }
        None
    }
}

impl Rule {
    fn is_generic(&self) -> bool {
        self.found == Found::Word && self.check != Check::Login
    }
}

/// The places where a match with its anchor at `at` may begin, the earliest first.
pub(super) fn starts(rule: &Rule, b: &[u8], at: usize) -> std::ops::RangeInclusive<usize> {
    if rule.check == Check::Value {
        // The name of the key has one beginning only.
        let name = |c: &&u8| is_word(**c) || **c == b'.';
        let len = b[..at].iter().rev().take(rule.before).take_while(name).count();
        return at - len..=at - len;
    }
    at.saturating_sub(rule.before)..=at
}

/// Whether a run without a digit may be a token: sixteen capitals in a row, or `hf_`.
fn is_lettered(run: &[u8]) -> bool {
    let capitals = |w: &[u8]| w[0].is_ascii_uppercase() && w[15].is_ascii_uppercase();
    run.windows(16).step_by(2).any(capitals)
        || memchr::memchr_iter(b'_', run).any(|i| run[..i].ends_with(b"hf"))
}

/// Whether a long piece of base64 stands right before `at`.
fn in_blob(b: &[u8], at: usize) -> bool {
    let part = |c: &&u8| c.is_ascii_alphanumeric() || **c == b'+';
    b[..at].iter().rev().take(24).take_while(part).count() == 24
}

/// What a match hides: its group, or all of it.
fn hidden(captures: &Captures) -> Option<(usize, usize)> {
    let whole = captures.get_group(0)?;
    let group = if captures.group_len() > 1 { captures.get_group(1) } else { None };
    let span = group.unwrap_or(whole);
    (span.start < span.end).then_some((span.start, span.end))
}

/// The match of one's own rule that holds the keyword at `at`.
fn own_rule<'a>(rule: &'a OwnRule, b: &[u8], at: usize) -> Option<Secret<'a>> {
    let (low, high) = (at.saturating_sub(REACH / 8), b.len().min(at + REACH));
    let mut from = low;
    let mut captures = rule.regex.create_captures();
    while from <= at {
        rule.regex.search_captures(&Input::new(b).span(from..high), &mut captures);
        let whole = captures.get_group(0)?;
        if whole.start > at {
            return None;
        }
        if whole.end >= at + rule.keyword.len() {
            let (start, end) = hidden(&captures)?;
            return Some(Secret { kind: &rule.kind, start, end, generic: false });
        }
        from = whole.end.max(from + 1);
    }
    None
}

/// `scheme://name:password@`: the password before the `@` at `at`.
fn login(b: &[u8], at: usize) -> Option<Secret<'static>> {
    let stop =
        |c: u8| c.is_ascii_whitespace() || matches!(c, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>');
    let len = b[..at].iter().rev().take(512).take_while(|c| !stop(**c)).count();
    let start = at - len;
    if !b[..start].ends_with(b"://") {
        return None;
    }
    let scheme =
        b[..start - 3].iter().rev().take_while(|c| c.is_ascii_alphanumeric() || **c == b'+');
    let colon = b[start..at].iter().position(|c| *c == b':')?;
    let (from, password) = (start + colon + 1, &b[start + colon + 1..at]);
    let filler = password.is_empty()
        || password.iter().any(|c| matches!(c, b'[' | b']' | b'{' | b'}' | b'$' | b'(' | b'*'))
        || matches!(password, b"password" | b"pass" | b"PASSWORD" | b"pwd" | b"secret" | b"token")
        || password.iter().all(|c| matches!(c, b'x' | b'X' | b'.'));
    (scheme.count() > 0 && !filler).then_some(Secret {
        kind: "url-password",
        start: from,
        end: at,
        generic: true,
    })
}
