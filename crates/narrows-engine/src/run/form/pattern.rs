//! Patterns of text fields. They are written for JavaScript; what cannot be said here in the same
//! meaning is left to the agent.

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;

/// Longest pattern that is looked at, in bytes.
const MAX_PATTERN: usize = 4 << 10;
/// What a pattern may take, in bytes.
const MAX_SIZE: usize = 1 << 20;

/// What JavaScript means by these, in the words of a class.
const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const NO_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

/// Whether a pattern is found in a text; none when that cannot be said.
pub(super) fn is_found(pattern: &str, text: &str) -> Option<bool> {
    if pattern.len() > MAX_PATTERN {
        return None;
    }
    let config = Config::new()
        .nfa_size_limit(Some(MAX_SIZE))
        .onepass_size_limit(Some(MAX_SIZE))
        .hybrid_cache_capacity(MAX_SIZE);
    let pattern = in_our_words(pattern)?;
    let regex = Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(64))
        .build(&pattern)
        .ok()?;
    Some(regex.is_match(text))
}

/// The pattern as the engine here reads it; none when it could mean something else there.
fn in_our_words(pattern: &str) -> Option<String> {
    let mut words = String::with_capacity(pattern.len());
    let mut letters = pattern.chars().peekable();
    let mut class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next()? {
                kind @ ('d' | 'D' | 'w' | 'W' | 's' | 'S') => {
                    let list = match kind {
                        'd' | 'D' => DIGIT,
                        'w' | 'W' => WORD,
                        _ => SPACE,
                    };
                    let not = if kind.is_ascii_uppercase() { "^" } else { "" };
                    if class && not.is_empty() {
                        words.push_str(list);
                    } else {
                        words.extend(["[", not, list, "]"]);
                    }
                }
                'b' if class => words.push_str(r"\x08"),
                'b' => words.push_str(r"(?-u:\b)"),
                // Escapes that mean the same here.
                kind @ ('t' | 'n' | 'r' | 'f' | 'v' | 'x' | 'u' | 'p' | 'P') => {
                    words.extend(['\\', kind]);
                }
                // References back, control letters, octal numbers.
                other if other.is_ascii_alphanumeric() => return None,
                other if other.is_ascii() => words.extend(['\\', other]),
                other => words.push(other),
            },
            '[' if class => words.push_str(r"\["),
            '[' => {
                class = true;
                words.push('[');
                if letters.next_if_eq(&'^').is_some() {
                    words.push('^');
                }
                // An empty class is nothing, or anything.
                if letters.peek() == Some(&']') {
                    return None;
                }
            }
            ']' if class => {
                class = false;
                words.push(']');
            }
            // Lists of lists have these signs here.
            '&' | '~' if class => words.extend(['\\', letter]),
            '-' if class && letters.peek() == Some(&'-') => return None,
            '.' if !class => words.push_str(NO_LINE_END),
            // Text that looks ahead or back, and flags.
            '(' if letters.peek() == Some(&'?') => {
                words.push('(');
                words.extend(letters.next());
                match letters.next()? {
                    ':' => words.push(':'),
                    '<' if letters.peek().is_some_and(|l| !matches!(l, '=' | '!')) => {
                        words.push('<');
                    }
                    _ => return None,
                }
            }
            other => words.push(other),
        }
    }
    (!class).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_javascript() {
        for (pattern, text, found) in [
            ("^[a-z]+$", "abc", Some(true)),
            ("^[a-z]+$", "abc1", Some(false)),
            // It is looked for anywhere.
            ("b", "abc", Some(true)),
            (r"^\d{3}-\d{4}$", "555-1234", Some(true)),
            // Digits and letters are those of ASCII, and all others are none.
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
            // What cannot be said here.
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
            assert_eq!(is_found(pattern, text), found, "{pattern} in {text:?}");
        }
        assert_eq!(is_found(&"(".repeat(3000), "a"), None);
        assert_eq!(is_found(&format!("{}a{}", "(".repeat(200), ")".repeat(200)), "a"), None);
        // Time goes with the text's length, whatever the pattern.
        assert_eq!(is_found("^(a+)+$", &format!("{}!", "a".repeat(50_000))), Some(false));
    }
}
