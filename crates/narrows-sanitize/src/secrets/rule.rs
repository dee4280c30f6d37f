//! The definition of a rule, and constructors for the rule tables.

/// One format of a secret.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stands in the placeholder and in the counts.
    pub kind: &'static str,
    pub(crate) search: AnchorSearch,
    /// Literals (case matters), one of which every match contains.
    pub(crate) anchors: &'static [&'static str],
    /// Lower-case words, one of which must stand near the anchor; empty when none is needed.
    pub(crate) context: &'static [&'static str],
    /// Bytes before the anchor where a match may start; 0 when it starts with the anchor.
    pub(crate) lookbehind: usize,
    /// The redacted part: group 1 where there is one, else the whole match. Bytes, no Unicode, no
    /// look-around.
    pub(crate) regex: &'static str,
    pub(crate) validation: Validation,
    /// Samples with a match.
    pub hits: &'static [&'static str],
    /// Samples that look similar and must stay unchanged.
    pub misses: &'static [&'static str],
}

/// Where the anchors of a rule are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnchorSearch {
    /// Inside, or up to 16 bytes before, an unbroken run of 20 or more of `[A-Za-z0-9_-]`.
    TokenRun,
    /// Anywhere, in one search for the keywords of all such rules.
    Keyword,
}

/// The check of a match beyond its regex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Any,
    /// Contains a digit and a letter, and is no filler.
    Random,
    /// The first part decodes to a JSON object with `alg`.
    Jwt,
    /// Decodes to `name:password`.
    Login,
    /// The value of an assignment: not a word of a human language.
    Value,
}

/// A token that is recognized by its prefix.
pub(crate) const fn prefixed(
    kind: &'static str,
    anchors: &'static [&'static str],
    regex: &'static str,
    hits: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    Rule {
        kind,
        search: AnchorSearch::TokenRun,
        anchors,
        context: &[],
        lookbehind: 0,
        regex,
        validation: Validation::Random,
        hits,
        misses,
    }
}

/// A secret that is recognized by a keyword next to it; a match may start `lookbehind` bytes before
/// it.
pub(crate) const fn keyword(
    kind: &'static str,
    validation: Validation,
    anchors: &'static [&'static str],
    lookbehind: usize,
    regex: &'static str,
    hits: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    Rule {
        search: AnchorSearch::Keyword,
        lookbehind,
        validation,
        ..prefixed(kind, anchors, regex, hits, misses)
    }
}

/// Restricts a rule to positions with one of the words nearby.
pub(crate) const fn contextual(context: &'static [&'static str], rule: Rule) -> Rule {
    Rule { context, ..rule }
}
