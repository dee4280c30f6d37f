//! The checksum of an item's terms in the search index.
//!
//! The full-text index stores no text to compare it with. Each item therefore has one more term, the
//! sum of the weights of its other terms; `integrity` adds the weights up again.

/// The first character of the term that holds the sum. No trigram term starts with it.
pub(crate) const SUM_PREFIX: char = 'z';

/// The share of one term in the sum of an item.
pub(crate) fn term_weight(key: i64, term: &str) -> u64 {
    let hash = term.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mut mixed = hash ^ key.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Appends the sum term to the terms of an item.
pub(crate) fn with_sum_term(key: i64, terms: &str) -> String {
    if terms.is_empty() {
        return String::new();
    }
    let sum = terms.split(' ').fold(0_u64, |sum, term| sum.wrapping_add(term_weight(key, term)));
    format!("{terms} {SUM_PREFIX}{sum:x}")
}
