//! Case folding for search and filters: one character stays one character.

/// Folds a text for comparison: to lower case, where that is a single character. NUL terminates
/// texts in the index, so it is replaced.
pub(crate) fn fold_case(text: &str) -> String {
    text.chars().map(to_lower).collect()
}

pub(crate) fn to_lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some('\0'), None) => char::REPLACEMENT_CHARACTER,
        // Final and medial sigma are one letter.
        (Some('ς'), None) => 'σ',
        (Some(one), None) => one,
        _ => c,
    }
}
