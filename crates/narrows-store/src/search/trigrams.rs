//! Sets of trigrams: the distinct sequences of three characters in an item's texts, as terms of the
//! index.

use crate::db::Value;
use std::collections::HashSet;

/// Characters whose trigrams fit into a bit set.
const ASCII_CHARS: u32 = 128;

/// A set of trigrams.
#[derive(Debug, Default)]
pub(crate) struct TrigramSet {
    /// A bit for each trigram of ASCII characters.
    bits: Vec<u64>,
    ascii: Vec<u32>,
    others: HashSet<u64>,
}

impl TrigramSet {
    /// Adds the trigrams of a case-folded text.
    pub(crate) fn add(&mut self, text: &str) {
        self.add_chars(text.chars());
    }

    pub(crate) fn add_chars(&mut self, chars: impl Iterator<Item = char>) {
        let (mut one, mut two) = (None, None);
        for c3 in chars.map(u32::from) {
            if let (Some(a), Some(b)) = (one, two) {
                self.insert(a, b, c3);
            }
            (one, two) = (two, Some(c3));
        }
    }

    fn insert(&mut self, a: u32, b: u32, c: u32) {
        if (a | b | c) >= ASCII_CHARS {
            self.others.insert((u64::from(a) << 42) | (u64::from(b) << 21) | u64::from(c));
            return;
        }
        if self.bits.is_empty() {
            self.bits = vec![0; (ASCII_CHARS * ASCII_CHARS * ASCII_CHARS / 64) as usize];
        }
        let at = (a * ASCII_CHARS + b) * ASCII_CHARS + c;
        let (term, bit) = ((at / 64) as usize, 1 << (at % 64));
        if self.bits[term] & bit == 0 {
            self.bits[term] |= bit;
            self.ascii.push(at);
        }
    }

    /// Prints every trigram as a term and clears the set.
    pub(crate) fn take_terms(&mut self, out: &mut String) {
        let mut terms: Vec<u64> = self.others.drain().collect();
        for at in self.ascii.drain(..) {
            self.bits[(at / 64) as usize] = 0;
            let (a, b, c) =
                (at / ASCII_CHARS / ASCII_CHARS, at / ASCII_CHARS % ASCII_CHARS, at % ASCII_CHARS);
            terms.push((u64::from(a) << 42) | (u64::from(b) << 21) | u64::from(c));
        }
        // Sorted terms insert faster into the index.
        terms.sort_unstable();
        for term in terms {
            if !out.is_empty() {
                out.push(' ');
            }
            print(term, out);
        }
    }
}

/// Parses terms back to integers.
pub(crate) fn parse_terms(tokens: &str) -> Value<'static> {
    let numbers = tokens.split(' ').filter_map(|term| i64::from_str_radix(term, 32).ok());
    Value::List(numbers.map(Value::Int).collect())
}

/// Prints a number in base 32.
fn print(mut number: u64, out: &mut String) {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut digits = [0_u8; 13];
    let mut from = digits.len();
    while number > 0 || from == digits.len() {
        from -= 1;
        digits[from] = DIGITS[(number % 32) as usize];
        number /= 32;
    }
    out.extend(digits[from..].iter().map(|d| char::from(*d)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigrams_are_unique() {
        let count = |text: &str| {
            let (mut set, mut out) = (TrigramSet::default(), String::new());
            set.add(text);
            set.take_terms(&mut out);
            out.split(' ').filter(|w| !w.is_empty()).count()
        };
        assert_eq!(count("ab"), 0);
        assert_eq!(count("abcabcabc"), 3);
        assert_eq!(count("漢字漢字漢"), 2);
        assert_eq!(count("aé漢"), 1);
    }

    #[test]
    fn trigram_terms_parse_back_to_integers() {
        let (mut set, mut out) = (TrigramSet::default(), String::new());
        set.add("abc");
        set.add("\u{10ffff}\u{10ffff}\u{10ffff}");
        set.take_terms(&mut out);
        let number = |a: i64, b: i64, c: i64| Value::Int((a << 42) | (b << 21) | c);
        let last = 0x10_ffff;
        let both = vec![number(0x61, 0x62, 0x63), number(last, last, last)];
        assert_eq!(parse_terms(&out), Value::List(both));
        assert_eq!(parse_terms(""), Value::List(Vec::new()));
    }
}
