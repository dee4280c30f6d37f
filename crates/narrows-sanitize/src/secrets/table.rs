//! The built-in rules, compiled for the search.

use super::reach::RuleDfa;
use super::rule::{AnchorSearch, Rule};
use super::{MAX_REGEX_BYTES, MAX_REGEX_CACHE_BYTES, Secrets};
use crate::keyword_index::KeywordIndex;
use aho_corasick::AhoCorasick;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// The built-in rules with their search structures.
pub(crate) struct RuleTable {
    pub(super) rules: Vec<&'static Rule>,
    pub(super) regexes: Vec<OnceLock<Option<Regex>>>,
    pub(super) dfas: Vec<OnceLock<Option<Box<RuleDfa>>>>,
    /// Keywords that are searched for everywhere.
    pub(super) keywords: Option<KeywordIndex>,
    pub(super) keyword_rules: Vec<Vec<usize>>,
    /// Token prefixes that are searched for in long runs.
    pub(super) prefixes: Option<AhoCorasick>,
    pub(super) prefix_rules: Vec<Vec<usize>>,
    pub(super) discord: Option<usize>,
    pub(super) azure: Option<usize>,
}

/// The header of a private key, searched for with the keywords.
const PEM_HEADER: &str = "-----BEGIN";

/// An escape that is written as text, searched for with the keywords: a color may cut a token in
/// two.
const JSON_ESCAPE: &str = "\\u001";

/// The order of the keywords. The search groups them by it; of many orders measured on code and
/// logs, this one was the fastest, by half.
const KEYWORD_ORDER: [&str; 32] = [
    "-key",
    "ikey",
    "IKEY",
    JSON_ESCAPE,
    "assw",
    "asic",
    "ASSW",
    "ookie",
    "_KEY",
    "ebhooks/",
    "OKEN",
    "uthoriz",
    PEM_HEADER,
    "ECRET",
    "redent",
    "ecret",
    "ssKey",
    "iKey",
    "oken",
    "pwd=",
    "_auth",
    "hooks.s",
    "sig=",
    "auth\"",
    "auth\\",
    "ntKey",
    "-Key",
    "Pwd=",
    "_key",
    "assphr",
    "earer",
    "teKey",
];

static RULE_TABLE: LazyLock<RuleTable> = LazyLock::new(|| {
    let rules: Vec<&'static Rule> = Secrets::rules().collect();
    let group = |found: AnchorSearch| {
        let mut order: Vec<&'static str> = Vec::new();
        let mut by: HashMap<&'static str, Vec<usize>> = HashMap::new();
        for (i, rule) in rules.iter().enumerate().filter(|(_, r)| r.search == found) {
            for anchor in rule.anchors.iter().filter(|a| !a.contains('~')) {
                by.entry(anchor).or_insert_with(|| {
                    order.push(anchor);
                    Vec::new()
                });
                by.entry(anchor).and_modify(|list| list.push(i));
            }
        }
        if found == AnchorSearch::Keyword {
            order.extend([PEM_HEADER, JSON_ESCAPE]);
            order.sort_by_key(|a| KEYWORD_ORDER.iter().position(|o| o == a));
        }
        let lists = order.iter().map(|a| by.get(a).cloned().unwrap_or_default()).collect();
        (order, lists)
    };
    let (keywords, keyword_rules): (Vec<&str>, Vec<Vec<usize>>) = group(AnchorSearch::Keyword);
    let keywords: Vec<Vec<u8>> = keywords.iter().map(|w| w.as_bytes().to_vec()).collect();
    let (prefixes, prefix_rules) = group(AnchorSearch::TokenRun);
    let named = |kind: &str| rules.iter().position(|r| r.kind == kind);
    RuleTable {
        regexes: rules.iter().map(|_| OnceLock::new()).collect(),
        dfas: rules.iter().map(|_| OnceLock::new()).collect(),
        keywords: KeywordIndex::new(&keywords),
        keyword_rules,
        prefixes: AhoCorasick::builder()
            .kind(Some(aho_corasick::AhoCorasickKind::DFA))
            .build(prefixes)
            .ok(),
        prefix_rules,
        discord: named("discord-token"),
        azure: named("azure-secret"),
        rules,
    }
});

impl RuleTable {
    pub(crate) fn get() -> &'static RuleTable {
        &RULE_TABLE
    }

    pub(super) fn regex(&self, rule: usize) -> Option<&Regex> {
        let made = self.regexes.get(rule)?;
        made.get_or_init(|| compile(self.rules[rule].regex).ok()).as_ref()
    }
}

pub(super) fn compile(regex: &str) -> Result<Regex, Box<regex_automata::meta::BuildError>> {
    Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(
            Regex::config()
                .utf8_empty(false)
                .nfa_size_limit(Some(MAX_REGEX_BYTES))
                // Many small regexes on short windows: each keeps little memory.
                .hybrid_cache_capacity(MAX_REGEX_CACHE_BYTES),
        )
        .build(regex)
        .map_err(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::token_runs::MIN_RUN_LEN;

    #[test]
    fn built_in_rules_compile_and_have_plain_kinds() {
        for (i, rule) in RULE_TABLE.rules.iter().enumerate() {
            assert!(
                RULE_TABLE.regex(i).is_some(),
                "{}: {:?}",
                rule.kind,
                compile(rule.regex).err()
            );
            let plain = rule.kind.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
            assert!(plain && rule.kind.len() < MIN_RUN_LEN, "{}", rule.kind);
        }
        assert!(RULE_TABLE.prefixes.is_some() && RULE_TABLE.keywords.is_some());
        // More keywords would need a slower search.
        assert_eq!(
            RULE_TABLE.keyword_rules.len(),
            KEYWORD_ORDER.len(),
            "keywords without a place in the order"
        );
    }
}
