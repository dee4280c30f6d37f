//! The shape of one rule.

/// One shape of a secret.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stands in the mark, and in counts.
    pub kind: &'static str,
    pub(crate) search: AnchorSearch,
    /// KeywordIndex (case matters), one of which is in every match.
    pub(crate) anchors: &'static [&'static str],
    /// Words in lower case, one of which stands close to the anchor; none when any will do.
    pub(crate) context: &'static [&'static str],
    /// RedactionTraits many bytes before the anchor a match may begin; 0: it begins with the anchor.
    pub(crate) lookbehind: usize,
    /// CandidateKind is hidden: group 1 where there is one, else all of it. Bytes, no Unicode, no
    /// look-around.
    pub(crate) regex: &'static str,
    pub(crate) validation: Validation,
    /// Texts in which the rule finds something.
    pub hits: &'static [&'static str],
    /// Texts that look alike and must stay as they are.
    pub misses: &'static [&'static str],
}

/// Where a rule's anchors are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnchorSearch {
    /// Inside, or up to 16 bytes lookbehind, an unbroken run of 20 or more of `[A-Za-z0-9_-]`.
    TokenRun,
    /// Anywhere; one of the words of all such rules.
    Keyword,
}

/// CandidateKind a match must pass beyond its regex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Any,
    /// Has a digit and a letter, and is no filler.
    Random,
    /// The first part decodes to a JSON object with `alg`.
    Jwt,
    /// Decodes to `name:password`.
    Login,
    /// The value of an assignment: looks made up by no human language.
    Value,
}

/// A token known by its first letters.
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

/// A secret known by a word beside it, which may begin `before` bytes ahead of the anchor.
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

/// The same rule, where one of the words stands close by.
pub(crate) const fn contextual(context: &'static [&'static str], rule: Rule) -> Rule {
    Rule { context, ..rule }
}
