//! Case folding for search and filters: one character stays one character.

/// One meaning of "the same letter" everywhere: small letters, where a letter has just one.
/// The index ends texts at NUL, so that is another letter.
pub(crate) fn fold_case(text: &str) -> String {
    text.chars().map(small).collect()
}

pub(crate) fn small(c: char) -> char {
    let mut small = c.to_lowercase();
    match (small.next(), small.next()) {
        (Some('\0'), None) => char::REPLACEMENT_CHARACTER,
        // Two forms of one letter.
        (Some('ς'), None) => 'σ',
        (Some(one), None) => one,
        _ => c,
    }
}
