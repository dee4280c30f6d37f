//! Sets of trigrams: the distinct sequences of three characters in an item's texts, as terms of the
//! index.

use crate::db::Value;
use std::collections::HashSet;

/// Characters whose trigrams fit into a bit set.
const PLAIN: u32 = 128;

/// A set of trigrams.
#[derive(Debug, Default)]
pub(crate) struct Threes {
    /// A bit for each trigram of ASCII characters.
    bits: Vec<u64>,
    plain: Vec<u32>,
    others: HashSet<u64>,
}

impl Threes {
    /// Adds the trigrams of a case-folded text.
    pub(crate) fn add(&mut self, text: &str) {
        self.add_letters(text.chars());
    }

    pub(crate) fn add_letters(&mut self, letters: impl Iterator<Item = char>) {
        let (mut one, mut two) = (None, None);
        for three in letters.map(u32::from) {
            if let (Some(a), Some(b)) = (one, two) {
                self.insert(a, b, three);
            }
            (one, two) = (two, Some(three));
        }
    }

    fn insert(&mut self, a: u32, b: u32, c: u32) {
        if (a | b | c) >= PLAIN {
            self.others.insert((u64::from(a) << 42) | (u64::from(b) << 21) | u64::from(c));
            return;
        }
        if self.bits.is_empty() {
            self.bits = vec![0; (PLAIN * PLAIN * PLAIN / 64) as usize];
        }
        let at = (a * PLAIN + b) * PLAIN + c;
        let (word, bit) = ((at / 64) as usize, 1 << (at % 64));
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            self.plain.push(at);
        }
    }

    /// Prints every trigram as a term and clears the set.
    pub(crate) fn tokens(&mut self, out: &mut String) {
        let mut words: Vec<u64> = self.others.drain().collect();
        for at in self.plain.drain(..) {
            self.bits[(at / 64) as usize] = 0;
            let (a, b, c) = (at / PLAIN / PLAIN, at / PLAIN % PLAIN, at % PLAIN);
            words.push((u64::from(a) << 42) | (u64::from(b) << 21) | u64::from(c));
        }
        // Sorted terms insert faster into the index.
        words.sort_unstable();
        for word in words {
            if !out.is_empty() {
                out.push(' ');
            }
            print(word, out);
        }
    }
}

/// Parses terms back to integers.
pub(crate) fn numbers(tokens: &str) -> Value<'static> {
    let numbers = tokens.split(' ').filter_map(|word| i64::from_str_radix(word, 32).ok());
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
    fn each_three_letters_stand_once() {
        let count = |text: &str| {
            let (mut threes, mut out) = (Threes::default(), String::new());
            threes.add(text);
            threes.tokens(&mut out);
            out.split(' ').filter(|w| !w.is_empty()).count()
        };
        assert_eq!(count("ab"), 0);
        assert_eq!(count("abcabcabc"), 3);
        assert_eq!(count("漢字漢字漢"), 2);
        assert_eq!(count("aé漢"), 1);
    }

    #[test]
    fn words_are_numbers() {
        let (mut threes, mut out) = (Threes::default(), String::new());
        threes.add("abc");
        threes.add("\u{10ffff}\u{10ffff}\u{10ffff}");
        threes.tokens(&mut out);
        let number = |a: i64, b: i64, c: i64| Value::Int((a << 42) | (b << 21) | c);
        let last = 0x10_ffff;
        let both = vec![number(0x61, 0x62, 0x63), number(last, last, last)];
        assert_eq!(numbers(&out), Value::List(both));
        assert_eq!(numbers(""), Value::List(Vec::new()));
    }
}
