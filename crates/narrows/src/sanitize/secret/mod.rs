//! Secrets: found by their format, hidden behind marks.
//!
//! A literal is looked for first, then one small regex runs at that place and nowhere else.
//! Whatever is found becomes `[redacted:<kind>:<4 hex>]`; the same secret always gives the same
//! mark, and a mark is nothing that a rule could find.

mod check;
mod find;
mod literals;
mod rules;
mod runs;
mod span;
mod vendors;

pub(super) use check::turns;
pub(super) use find::{Secret, Spot, What};
pub(super) use literals::Literals;
pub use rules::Rule;
pub(super) use span::{MAX_SPAN, OPEN};

use aho_corasick::AhoCorasick;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use rules::{Found, RULES};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};
use vendors::VENDORS;

/// Shortest value that is hidden because it is known.
pub const MIN_KNOWN: usize = 8;
/// Shortest keyword of a rule of one's own.
pub const MIN_KEYWORD: usize = 3;
/// Most memory that the regex of one rule may need.
const MAX_REGEX: usize = 1 << 20;
/// Most memory that one regex keeps between two searches.
const MAX_CACHE: usize = 64 << 10;

/// The kind of what is hidden because its value is known.
pub(super) const KNOWN: &str = "known-value";

/// A rule of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRule {
    /// Stands in the mark: lower-case letters, digits and hyphens.
    pub kind: String,
    /// A literal that is in every match; the regex runs only where it is.
    pub keyword: String,
    /// What is hidden: group 1 where there is one, else the whole match. Within one line.
    pub regex: String,
}

/// Why a rule was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    kind: String,
    reason: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?}: {}", self.kind, self.reason)
    }
}

impl std::error::Error for RuleError {}

/// The secrets to hide: the built-in rules, and what the user added.
#[derive(Clone)]
pub struct Secrets {
    on: bool,
    key: [u8; 32],
    own: Vec<Arc<OwnRule>>,
    known: Vec<String>,
    allowed: HashSet<Vec<u8>>,
    /// The known values first, then the keywords of own rules.
    extra: Option<AhoCorasick>,
}

// Known values and the key are not shown, not even to whoever debugs.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (own, known) = (self.own.len(), self.known.len());
        write!(f, "Secrets({own} rules and {known} values of one's own)")
    }
}

#[derive(Debug)]
pub(super) struct OwnRule {
    kind: String,
    keyword: String,
    regex: Regex,
}

impl Default for Secrets {
    fn default() -> Self {
        Secrets {
            on: true,
            key: [0; 32],
            own: Vec::new(),
            known: Vec::new(),
            allowed: HashSet::new(),
            extra: None,
        }
    }
}

impl Secrets {
    /// Hides no secret: for measuring, and for who does it elsewhere.
    pub fn none() -> Self {
        Secrets { on: false, ..Secrets::default() }
    }

    /// The built-in rules, with samples of what they find and what they leave.
    pub fn rules() -> impl Iterator<Item = &'static Rule> {
        RULES.iter().chain(VENDORS)
    }

    /// Whether a variable of this name normally holds a secret.
    pub fn is_secret_name(name: &str) -> bool {
        const ENDS: [&str; 13] = [
            "TOKEN",
            "SECRET",
            "PASSWORD",
            "PASSWD",
            "PASSPHRASE",
            "PASS",
            "PWD",
            "API_KEY",
            "APIKEY",
            "ACCESS_KEY",
            "PRIVATE_KEY",
            "SECRET_KEY",
            "CREDENTIALS",
        ];
        let name = name.to_ascii_uppercase();
        let bare = matches!(name.as_str(), "PWD" | "OLDPWD");
        let end = |e: &str| name.strip_suffix(e).is_some_and(|n| n.is_empty() || n.ends_with('_'));
        !bare && (ENDS.iter().any(|e| end(e)) || name.ends_with("_KEY") || name.ends_with("TOKEN"))
    }

    /// Whether a value that somebody sets is hard to guess, whatever its name: eight characters or more,
    /// letters and digits mixed; no words, names with versions, numbers, paths or addresses.
    pub fn is_secret_value(value: &str) -> bool {
        let value = value.as_bytes();
        check::is_value(value, None, true) && !check::is_versioned(value)
    }

    /// Sets the key of the marks: installations with different keys give different marks.
    pub fn set_key(&mut self, key: [u8; 32]) {
        self.key = key;
    }

    /// Adds a rule.
    pub fn add_rule(&mut self, rule: UserRule) -> Result<(), RuleError> {
        let refuse = |reason: String| RuleError { kind: rule.kind.clone(), reason };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if rule.kind.is_empty() || rule.kind.len() > 32 || !rule.kind.chars().all(plain) {
            return Err(refuse(
                "the kind is 1 to 32 lower-case letters, digits and hyphens".to_owned(),
            ));
        }
        if rule.keyword.len() < MIN_KEYWORD || rule.keyword.contains(char::is_whitespace) {
            return Err(refuse(format!(
                "the keyword has at least {MIN_KEYWORD} characters and no blanks"
            )));
        }
        let regex = compile(&rule.regex).map_err(|e| refuse(e.to_string()))?;
        if regex.is_match(b"") {
            return Err(refuse("the regex matches nothing at all".to_owned()));
        }
        self.own.push(Arc::new(OwnRule { kind: rule.kind, keyword: rule.keyword, regex }));
        self.rebuild();
        Ok(())
    }

    /// Never hides this value.
    pub fn allow(&mut self, value: &str) {
        self.allowed.insert(value.as_bytes().to_vec());
    }

    /// Hides this value wherever it stands. Says whether it is long enough for that.
    pub fn add_known(&mut self, value: &str) -> bool {
        let mut taken = false;
        for line in value.lines().map(str::trim).filter(|l| l.len() >= MIN_KNOWN) {
            taken = true;
            if !self.known.iter().any(|k| k == line) {
                self.known.push(line.to_owned());
            }
        }
        if taken {
            self.rebuild();
        }
        taken
    }

    fn rebuild(&mut self) {
        let keywords = self.own.iter().map(|r| r.keyword.as_str());
        let all: Vec<&str> = self.known.iter().map(String::as_str).chain(keywords).collect();
        self.extra = AhoCorasick::new(all).ok();
    }

    /// Whether there are rules of one's own.
    pub(super) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// The values that are known.
    pub(super) fn known(&self) -> &[String] {
        &self.known
    }

    /// The mark of a secret.
    pub(super) fn mark(&self, kind: &str, secret: &[u8]) -> String {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(secret);
        let hash = hash.finalize();
        format!("[redacted:{kind}:{:02x}{:02x}]", hash[0], hash[1])
    }

    fn is_allowed(&self, secret: &[u8]) -> bool {
        !self.allowed.is_empty() && self.allowed.contains(secret)
    }
}

fn compile(regex: &str) -> Result<Regex, Box<regex_automata::meta::BuildError>> {
    Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(
            Regex::config()
                .utf8_empty(false)
                .nfa_size_limit(Some(MAX_REGEX))
                // Many small regexes on short windows: each keeps little.
                .hybrid_cache_capacity(MAX_CACHE),
        )
        .build(regex)
        .map_err(Box::new)
}

/// The built-in rules, ready to be searched for.
pub(super) struct Table {
    rules: Vec<&'static Rule>,
    regexes: Vec<OnceLock<Option<Regex>>>,
    walks: Vec<OnceLock<Option<Box<span::Walk>>>>,
    /// Words that stand anywhere.
    words: Option<Literals>,
    word_rules: Vec<Vec<usize>>,
    /// Beginnings of tokens, looked for in long runs.
    starts: Option<AhoCorasick>,
    start_rules: Vec<Vec<usize>>,
    discord: Option<usize>,
    azure: Option<usize>,
}

/// Stands among the words for the beginning of a private key.
const PEM: &str = "-----BEGIN";
/// Stands among the words for an escape written as text: a colour may cut a token in two.
const ESCAPE: &str = "\\u001";

/// The order in which the words are given to the search, which groups them by it: of many orders
/// tried on code and logs, this one was the fastest, by half.
const ORDER: [&str; 32] = [
    "-key", "ikey", "IKEY", ESCAPE, "assw", "asic", "ASSW", "ookie", "_KEY", "ebhooks/", "OKEN",
    "uthoriz", PEM, "ECRET", "redent", "ecret", "ssKey", "iKey", "oken", "pwd=", "_auth",
    "hooks.s", "sig=", "auth\"", "auth\\", "ntKey", "-Key", "Pwd=", "_key", "assphr", "earer",
    "teKey",
];

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let rules: Vec<&'static Rule> = Secrets::rules().collect();
    let group = |found: Found| {
        let mut order: Vec<&'static str> = Vec::new();
        let mut by: HashMap<&'static str, Vec<usize>> = HashMap::new();
        for (i, rule) in rules.iter().enumerate().filter(|(_, r)| r.found == found) {
            for anchor in rule.anchors.iter().filter(|a| !a.contains('~')) {
                by.entry(anchor).or_insert_with(|| {
                    order.push(anchor);
                    Vec::new()
                });
                by.entry(anchor).and_modify(|list| list.push(i));
            }
        }
        if found == Found::Word {
            order.extend([PEM, ESCAPE]);
            order.sort_by_key(|a| ORDER.iter().position(|o| o == a));
        }
        let lists = order.iter().map(|a| by.get(a).cloned().unwrap_or_default()).collect();
        (order, lists)
    };
    let (words, word_rules): (Vec<&str>, Vec<Vec<usize>>) = group(Found::Word);
    let words: Vec<Vec<u8>> = words.iter().map(|w| w.as_bytes().to_vec()).collect();
    let (starts, start_rules) = group(Found::Run);
    let named = |kind: &str| rules.iter().position(|r| r.kind == kind);
    Table {
        regexes: rules.iter().map(|_| OnceLock::new()).collect(),
        walks: rules.iter().map(|_| OnceLock::new()).collect(),
        words: Literals::new(&words),
        word_rules,
        starts: AhoCorasick::builder()
            .kind(Some(aho_corasick::AhoCorasickKind::DFA))
            .build(starts)
            .ok(),
        start_rules,
        discord: named("discord-token"),
        azure: named("azure-secret"),
        rules,
    }
});

impl Table {
    pub(super) fn get() -> &'static Table {
        &TABLE
    }

    fn regex(&self, rule: usize) -> Option<&Regex> {
        let made = self.regexes.get(rule)?;
        made.get_or_init(|| compile(self.rules[rule].regex).ok()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_has_a_plain_kind() {
        for (i, rule) in TABLE.rules.iter().enumerate() {
            assert!(TABLE.regex(i).is_some(), "{}: {:?}", rule.kind, compile(rule.regex).err());
            let plain = rule.kind.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
            assert!(plain && rule.kind.len() < runs::RUN, "{}", rule.kind);
        }
        assert!(TABLE.starts.is_some() && TABLE.words.is_some());
        // More would need a slower search.
        assert_eq!(TABLE.word_rules.len(), ORDER.len(), "words that have no place in the order");
    }
}
