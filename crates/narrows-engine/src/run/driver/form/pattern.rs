//! Patterns of text fields, which are ECMAScript regular expressions. Patterns without an equivalent here
//! are left to the agent.

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;

/// Longest pattern that is checked, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 10;
/// Bytes that a compiled pattern may take.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// ECMAScript's character classes.
const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const NO_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

/// Returns whether a pattern matches somewhere in a text; `None` if it is unsupported.
pub(super) fn is_match(pattern: &str, text: &str) -> Option<bool> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return None;
    }
    let config = Config::new()
        .nfa_size_limit(Some(MAX_REGEX_BYTES))
        .onepass_size_limit(Some(MAX_REGEX_BYTES))
        .hybrid_cache_capacity(MAX_REGEX_BYTES);
    let pattern = translate(pattern)?;
    let regex = Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(64))
        .build(&pattern)
        .ok()?;
    Some(regex.is_match(text))
}

/// Translates a pattern for our engine; `None` if its meaning could differ.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                kind @ ('d' | 'D' | 'w' | 'W' | 's' | 'S') => {
                    let list = match kind {
                        'd' | 'D' => DIGIT,
                        'w' | 'W' => WORD,
                        _ => SPACE,
                    };
                    let not = if kind.is_ascii_uppercase() { "^" } else { "" };
                    if class && not.is_empty() {
                        out.push_str(list);
                    } else {
                        out.extend(["[", not, list, "]"]);
                    }
                }
                'b' if class => out.push_str(r"\x08"),
                'b' => out.push_str(r"(?-u:\b)"),
                // Escapes with the same meaning.
                kind @ ('t' | 'n' | 'r' | 'f' | 'v' | 'x' | 'u' | 'p' | 'P') => {
                    out.extend(['\\', kind]);
                }
                // Back references, control characters, octal numbers.
                other if other.is_ascii_alphanumeric() => return None,
                other if other.is_ascii() => out.extend(['\\', other]),
                other => out.push(other),
            },
            '[' if class => out.push_str(r"\["),
            '[' => {
                class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // An empty class matches nothing or anything.
                if chars.peek() == Some(&']') {
                    return None;
                }
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            // These are set operators in our engine.
            '&' | '~' if class => out.extend(['\\', c]),
            '-' if class && chars.peek() == Some(&'-') => return None,
            '.' if !class => out.push_str(NO_LINE_END),
            // Lookaround and flags.
            '(' if chars.peek() == Some(&'?') => {
                out.push('(');
                out.extend(chars.next());
                match chars.next()? {
                    ':' => out.push(':'),
                    '<' if chars.peek().is_some_and(|l| !matches!(l, '=' | '!')) => {
                        out.push('<');
                    }
                    _ => return None,
                }
            }
            other => out.push(other),
        }
    }
    (!class).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_ecmascript() {
        for (pattern, text, found) in [
            ("^[a-z]+$", "abc", Some(true)),
            ("^[a-z]+$", "abc1", Some(false)),
            // Matches anywhere.
            ("b", "abc", Some(true)),
            (r"^\d{3}-\d{4}$", "555-1234", Some(true)),
            // Digits and letters are ASCII only.
            (r"^\d+$", "٣", Some(false)),
            (r"^\D+$", "٣", Some(true)),
            (r"^\w+$", "é", Some(false)),
            (r"^\W$", "é", Some(true)),
            (r"^[\w.-]+@[\w-]+\.[\w.]+$", "a.b@example.com", Some(true)),
            (r"^[^\s]+$", "a b", Some(false)),
            (r"^\S+$", "a\u{3000}b", Some(false)),
            (r"^\/srv\/[^/]+$", "/srv/app", Some(true)),
            ("^.$", "\n", Some(false)),
            ("^.$", "\u{2028}", Some(false)),
            ("^.$", "🙂", Some(true)),
            ("^a$", "a\n", Some(false)),
            (r"^[[\]a]+$", "[a]", Some(true)),
            ("^[a&&b]+$", "a&b", Some(true)),
            ("^[a~~b]+$", "a~b", Some(true)),
            (r"\bfoo\b", "a foo b", Some(true)),
            (r"^(?<year>\d{4})$", "2026", Some(true)),
            (r"^(?:a|b)+$", "abba", Some(true)),
            (r"^\u0041$", "A", Some(true)),
            (r"^[\u4e00-\u9fff]+$", "中文", Some(true)),
            (r"^\-\.\@$", "-.@", Some(true)),
            // Unsupported.
            (r"^(?=.*\d).+$", "abc", None),
            (r"^(?!x).+$", "x", None),
            (r"(?<=a)b", "b", None),
            (r"^(a)\1$", "ab", None),
            ("[^]", "a", None),
            ("[]", "a", None),
            ("(", "a", None),
            ("[a", "a", None),
            ("a{2,1}", "a", None),
            (r"\cA", "a", None),
            (r"\ud83d\ude42", "🙂", None),
            ("((a{1000}){1000}){1000}", "a", None),
            (r"\", "a", None),
        ] {
            assert_eq!(is_match(pattern, text), found, "{pattern} in {text:?}");
        }
        assert_eq!(is_match(&"(".repeat(3000), "a"), None);
        assert_eq!(is_match(&format!("{}a{}", "(".repeat(200), ")".repeat(200)), "a"), None);
        // Time is linear in the text's length for every pattern.
        assert_eq!(is_match("^(a+)+$", &format!("{}!", "a".repeat(50_000))), Some(false));
    }
}
