//! Secrets, recognized by their format and replaced by placeholders.
//!
//! A literal is searched for first; then one small regex runs at that position and nowhere else. A
//! match becomes `[redacted:<kind>:<4 hex>]`. The same secret always gets the same placeholder, and
//! no rule matches a placeholder.

mod key_names;
mod matching;
pub(crate) mod pem;
mod reach;
mod rule;
mod rules;
mod scan;
mod table;
mod token_runs;
mod validate;
mod vendors;

pub(crate) use key_names::is_key;
pub(crate) use reach::{MAX_SPAN_BYTES, OPEN_END};
pub use rule::Rule;
pub(crate) use scan::{Candidate, CandidateKind, SecretMatch};
pub(crate) use validate::turns;

use aho_corasick::AhoCorasick;
use regex_automata::meta::Regex;
use rules::RULES;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use table::compile;
use vendors::VENDORS;

/// Shortest known value that is redacted, in bytes.
pub const MIN_KNOWN_LEN: usize = 8;
/// Shortest keyword of a user rule, in bytes.
pub const MIN_KEYWORD_LEN: usize = 3;
/// Memory limit of the regex of one rule, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Memory that one regex keeps between two searches, in bytes.
const MAX_REGEX_CACHE_BYTES: usize = 64 << 10;

/// The kind of known values.
pub(crate) const KNOWN_VALUE_KIND: &str = "known-value";

/// A rule that the user adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRule {
    /// Stands in the placeholder: lower-case letters, digits and hyphens.
    pub kind: String,
    /// A literal that every match contains; the regex runs only where it is.
    pub keyword: String,
    /// The redacted part: group 1 where there is one, else the whole match. Within one line.
    pub regex: String,
}

/// Why a rule was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    kind: String,
    reason: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot add rule {:?}: {}", self.kind, self.reason)
    }
}

impl std::error::Error for RuleError {}

/// The secrets to redact: the built-in rules, user rules and known values.
#[derive(Clone)]
pub struct Secrets {
    enabled: bool,
    hash_key: [u8; 32],
    user_rules: Vec<Arc<CompiledUserRule>>,
    known_values: Vec<String>,
    allowed: HashSet<Vec<u8>>,
    /// Known values first, then the keywords of user rules.
    user_index: Option<AhoCorasick>,
}

// Known values and the key must not be printed, not even for debugging.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rules, values) = (self.user_rules.len(), self.known_values.len());
        write!(f, "Secrets({rules} user rules, {values} known values)")
    }
}

#[derive(Debug)]
pub(crate) struct CompiledUserRule {
    kind: String,
    keyword: String,
    regex: Regex,
}

impl Default for Secrets {
    fn default() -> Self {
        Secrets {
            enabled: true,
            hash_key: [0; 32],
            user_rules: Vec::new(),
            known_values: Vec::new(),
            allowed: HashSet::new(),
            user_index: None,
        }
    }
}

impl Secrets {
    /// Redacts no secret: for benchmarks, and for text that is redacted elsewhere.
    pub fn none() -> Self {
        Secrets { enabled: false, ..Secrets::default() }
    }

    /// The built-in rules, with samples that match and that must not.
    pub fn rules() -> impl Iterator<Item = &'static Rule> {
        RULES.iter().chain(VENDORS)
    }

    /// Returns whether an environment variable of this name normally holds a secret.
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

    /// Returns whether the value of a setting is hard to guess, whatever its name: at least eight
    /// characters with letters and digits mixed; no words, versioned names, numbers, paths or
    /// addresses.
    pub fn is_secret_value(value: &str) -> bool {
        let value = value.as_bytes();
        validate::is_value(value, None, true) && !validate::is_versioned(value)
    }

    /// Sets the key of the placeholders' hashes: different keys give different placeholders.
    pub fn set_key(&mut self, key: [u8; 32]) {
        self.hash_key = key;
    }

    /// Adds a user rule.
    pub fn add_rule(&mut self, rule: UserRule) -> Result<(), RuleError> {
        let refuse = |reason: String| RuleError { kind: rule.kind.clone(), reason };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if rule.kind.is_empty() || rule.kind.len() > 32 || !rule.kind.chars().all(plain) {
            return Err(refuse(
                "the kind is not 1 to 32 lower-case letters, digits and hyphens".to_owned(),
            ));
        }
        if rule.keyword.len() < MIN_KEYWORD_LEN || rule.keyword.contains(char::is_whitespace) {
            return Err(refuse(format!(
                "the keyword needs at least {MIN_KEYWORD_LEN} characters and no blanks"
            )));
        }
        let regex = compile(&rule.regex).map_err(|e| refuse(e.to_string()))?;
        if regex.is_match(b"") {
            return Err(refuse("the regex matches the empty text".to_owned()));
        }
        self.user_rules.push(Arc::new(CompiledUserRule {
            kind: rule.kind,
            keyword: rule.keyword,
            regex,
        }));
        self.rebuild();
        Ok(())
    }

    /// Never redacts this value.
    pub fn allow(&mut self, value: &str) {
        self.allowed.insert(value.as_bytes().to_vec());
    }

    /// Redacts each line of this value wherever it stands. Returns whether any line is long enough.
    pub fn add_known(&mut self, value: &str) -> bool {
        let mut added = false;
        for line in value.lines().map(str::trim).filter(|l| l.len() >= MIN_KNOWN_LEN) {
            added = true;
            if !self.known_values.iter().any(|k| k == line) {
                self.known_values.push(line.to_owned());
            }
        }
        if added {
            self.rebuild();
        }
        added
    }

    fn rebuild(&mut self) {
        let keywords = self.user_rules.iter().map(|r| r.keyword.as_str());
        let all: Vec<&str> = self.known_values.iter().map(String::as_str).chain(keywords).collect();
        self.user_index = AhoCorasick::new(all).ok();
    }

    /// Returns whether there are user rules.
    pub(crate) fn has_user_rules(&self) -> bool {
        !self.user_rules.is_empty()
    }

    /// The known values.
    pub(crate) fn known_values(&self) -> &[String] {
        &self.known_values
    }

    /// The placeholder of a secret.
    pub(crate) fn placeholder(&self, kind: &str, secret: &[u8]) -> String {
        let mut hash = Sha256::new();
        hash.update(self.hash_key);
        hash.update(secret);
        let hash = hash.finalize();
        format!("[redacted:{kind}:{:02x}{:02x}]", hash[0], hash[1])
    }

    fn is_allowed(&self, secret: &[u8]) -> bool {
        !self.allowed.is_empty() && self.allowed.contains(secret)
    }
}
