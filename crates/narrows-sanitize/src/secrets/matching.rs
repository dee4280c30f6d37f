//! The match of one rule around its anchor.

use super::rule::{AnchorSearch, Rule, Validation};
use super::scan::SecretMatch;
use super::table::RuleTable;
use super::token_runs::is_word;
use super::{CompiledUserRule, validate};
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

/// Bytes after its anchor that a match may span.
pub(super) const MATCH_WINDOW_BYTES: usize = 4096;
/// The same for the value of a key name.
const VALUE_WINDOW_BYTES: usize = 1024;

impl RuleTable {
    /// Returns the match of a rule around its anchor.
    pub(super) fn match_rule(
        &self,
        rule: usize,
        b: &[u8],
        at: usize,
    ) -> Option<SecretMatch<'static>> {
        let regex = self.regex(rule)?;
        let rule: &'static Rule = self.rules[rule];
        let reach = if rule.validation == Validation::Value {
            VALUE_WINDOW_BYTES
        } else {
            MATCH_WINDOW_BYTES
        };
        let end = b.len().min(at + reach);
        let mut captures = regex.create_captures();
        for start in start_range(rule, b, at) {
            let input = Input::new(b).span(start..end).anchored(Anchored::Yes);
            regex.search_captures(&input, &mut captures);
            let Some((from, mut to)) = redacted_group(&captures) else { continue };
            // A longer secret is redacted to its end.
            if to == end {
                let more = |c: &&u8| is_word(**c) || b"./+=~%".contains(*c);
                to += b[end..].iter().take_while(more).count();
            }
            let secret = &b[from..to];
            let before = start.checked_sub(1).map_or(b' ', |i| b[i]);
            let next = b.get(to).copied();
            // `Endpoint::Authorization`, `f(authorization)`: code that names a header.
            let code = before.is_ascii_alphanumeric() || before == b':' || next == Some(b'(');
            let passes = match rule.validation {
                _ if code && rule.kind == "authorization" => false,
                Validation::Any => true,
                Validation::Random => validate::is_random(secret),
                Validation::Jwt => validate::is_jwt(secret),
                Validation::Login => validate::is_login(secret),
                Validation::Value => {
                    let quoted = from > 0 && matches!(b[from - 1], b'"' | b'\'' | b'`');
                    let name = &b[start..from];
                    // `Type::Secret`, `arn:secret:name`: parts of a longer name.
                    let two = start.checked_sub(2).map(|i| b[i]) == Some(b':');
                    let part = before == b':' && (two || name.ends_with(b":"));
                    !part && !validate::is_pager(name) && validate::is_value(secret, next, quoted)
                }
            };
            let generic = rule.is_generic();
            return passes.then_some(SecretMatch {
                kind: rule.kind,
                start: from,
                end: to,
                generic,
            });
        }
        None
    }

    /// Returns whether the regex of a rule matches around its anchor, before validation.
    pub(super) fn regex_matches(&self, rule: usize, b: &[u8], at: usize) -> bool {
        let Some(regex) = self.regex(rule) else { return false };
        let end = b.len().min(at + MATCH_WINDOW_BYTES);
        start_range(self.rules[rule], b, at).any(|start| {
            let input = Input::new(b).span(start..end).anchored(Anchored::Yes).earliest(true);
            regex.search_half(&input).is_some()
        })
    }
}

impl Rule {
    pub(super) fn is_generic(&self) -> bool {
        self.search == AnchorSearch::Keyword && self.validation != Validation::Login
    }
}

/// The positions where a match with its anchor at `at` may start, the earliest first.
pub(crate) fn start_range(rule: &Rule, b: &[u8], at: usize) -> std::ops::RangeInclusive<usize> {
    if rule.validation == Validation::Value {
        // The name of a key starts at one position only.
        let name = |c: &&u8| is_word(**c) || **c == b'.';
        let len = b[..at].iter().rev().take(rule.lookbehind).take_while(name).count();
        return at - len..=at - len;
    }
    at.saturating_sub(rule.lookbehind)..=at
}

/// The redacted range of a match: its group, or all of it.
pub(super) fn redacted_group(captures: &Captures) -> Option<(usize, usize)> {
    let whole = captures.get_group(0)?;
    let group = if captures.group_len() > 1 { captures.get_group(1) } else { None };
    let span = group.unwrap_or(whole);
    (span.start < span.end).then_some((span.start, span.end))
}

/// Returns the match of a user rule that contains the keyword at `at`.
pub(super) fn match_user_rule<'a>(
    rule: &'a CompiledUserRule,
    b: &[u8],
    at: usize,
) -> Option<SecretMatch<'a>> {
    let (low, high) =
        (at.saturating_sub(MATCH_WINDOW_BYTES / 8), b.len().min(at + MATCH_WINDOW_BYTES));
    let mut from = low;
    let mut captures = rule.regex.create_captures();
    while from <= at {
        rule.regex.search_captures(&Input::new(b).span(from..high), &mut captures);
        let whole = captures.get_group(0)?;
        if whole.start > at {
            return None;
        }
        if whole.end >= at + rule.keyword.len() {
            let (start, end) = redacted_group(&captures)?;
            return Some(SecretMatch { kind: &rule.kind, start, end, generic: false });
        }
        from = whole.end.max(from + 1);
    }
    None
}

/// `scheme://name:password@`: matches the password before the `@` at `at`.
pub(super) fn match_url_password(b: &[u8], at: usize) -> Option<SecretMatch<'static>> {
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
    (scheme.count() > 0 && !filler).then_some(SecretMatch {
        kind: "url-password",
        start: from,
        end: at,
        generic: true,
    })
}
