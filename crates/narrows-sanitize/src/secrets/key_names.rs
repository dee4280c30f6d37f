//! Words that name a secret.

/// Returns whether a word names a secret, so that its value may follow, with or without a sign
/// between.
pub(crate) fn is_key(word: &[u8]) -> bool {
    const KEYS: [&str; 10] = [
        "secret",
        "passw",
        "passphr",
        "token",
        "key",
        "auth",
        "basic",
        "bearer",
        "credential",
        "pwd",
    ];
    static LETTERS: [u32; KEYS.len()] = {
        let mut all = [0; KEYS.len()];
        let mut i = 0;
        while i < KEYS.len() {
            all[i] = letters(KEYS[i].as_bytes());
            i += 1;
        }
        all
    };
    let has = letters(word);
    let named = |(key, need): (&&str, &u32)| {
        has & need == *need
            && word.windows(key.len()).any(|w| w.eq_ignore_ascii_case(key.as_bytes()))
    };
    word.starts_with(b"-") || KEYS.iter().zip(&LETTERS).any(named) || has_flag(word)
}

/// `--token` after a quote or a bracket.
fn has_flag(word: &[u8]) -> bool {
    word.windows(2).any(|w| w == b"--")
}

/// The letters of a word, one bit each.
const fn letters(word: &[u8]) -> u32 {
    let mut bits = 0;
    let mut i = 0;
    while i < word.len() {
        let c = word[i] | 0x20;
        if c.is_ascii_lowercase() {
            bits |= 1 << (c - b'a');
        }
        i += 1;
    }
    bits
}
