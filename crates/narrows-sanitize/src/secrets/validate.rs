//! Checks of a match beyond its regex, so that ordinary text stays unchanged.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};

const LENIENT: GeneralPurposeConfig = general_purpose::GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Returns whether a secret contains a digit and a letter, and is no filler.
pub(crate) fn is_random(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_digit)
        && secret.iter().any(u8::is_ascii_alphabetic)
        && !is_filler(secret)
}

/// Returns whether the secret was left out already: `xxxxxxxx`, `your-key-here`, `****`.
pub(crate) fn is_filler(secret: &[u8]) -> bool {
    // Trailing punctuation says nothing.
    let end = secret.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |i| i + 1);
    let head = &secret[..end.min(256)];
    let same = head
        .windows(6)
        .any(|w| w[0].is_ascii_alphanumeric() && w.iter().all(|c| c.eq_ignore_ascii_case(&w[0])));
    let distinct = |b: &[u8]| {
        let mut seen = [false; 256];
        b.iter().filter(|c| !std::mem::replace(&mut seen[usize::from(**c)], true)).count()
    };
    same || has_word(head, &["xxxx", "****", "....", "your-", "your_", "placeholder", "redacted"])
        || (secret.len() >= 16 && distinct(head) < 6)
}

/// Returns whether letters and digits alternate as in no name: enough for a token that is cut off.
pub(crate) fn is_jumbled(tail: &[u8]) -> bool {
    turns(tail) >= 2 && !is_filler(tail)
}

/// Number of digits next to a letter.
pub(crate) fn turns(text: &[u8]) -> usize {
    let turn = |w: &&[u8]| {
        w[0].is_ascii_digit() && w[1].is_ascii_alphabetic()
            || w[0].is_ascii_alphabetic() && w[1].is_ascii_digit()
    };
    text.windows(2).filter(turn).count()
}

fn has_word(text: &[u8], words: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    words.iter().any(|w| memchr::memmem::find(&lower, w.as_bytes()).is_some())
}

/// Returns whether the first part decodes to a JSON object that names an algorithm.
pub(crate) fn is_jwt(token: &[u8]) -> bool {
    let head = token.split(|c| *c == b'.').next().unwrap_or_default();
    let decoded = URL_SAFE.decode(head).unwrap_or_default();
    decoded.starts_with(b"{\"") && has_word(&decoded, &["\"alg\"", "\"enc\"", "\"typ\""])
}

/// Returns whether the text decodes to `name:password`.
pub(crate) fn is_login(encoded: &[u8]) -> bool {
    let Ok(text) = STANDARD.decode(encoded).or_else(|_| URL_SAFE.decode(encoded)) else {
        return false;
    };
    let printable = text.iter().all(|c| (0x20..0x7f).contains(c) || *c >= 0x80);
    // An object is the first part of another token.
    printable
        && !text.starts_with(b"{\"")
        && text.len() >= 3
        && text.iter().skip(1).any(|c| *c == b':')
}

/// Returns whether the value of a key name was made by a machine, or by a person to be hard to
/// guess.
pub(crate) fn is_value(value: &[u8], next: Option<u8>, quoted: bool) -> bool {
    let placeholder = [
        "example",
        "changeme",
        "change_me",
        "change-me",
        "placeholder",
        "dummy",
        "sample",
        "todo",
        "process.env",
        "os.environ",
        "getenv",
        "insert",
        "replace",
        "redacted",
        "secrets.",
    ];
    // A start that no name has is enough, whatever follows.
    let head = value.iter().take_while(|c| c.is_ascii_alphanumeric()).count();
    if head >= 16 && turns(&value[..head]) >= 4 && !is_filler(&value[..head]) {
        return true;
    }
    if value.len() < 8 || !is_random(value) || has_word(value, &placeholder) {
        return false;
    }
    // A call, an index, a path, a URL, a variable: code that mentions a key.
    let code = matches!(next, Some(b'(' | b'[' | b'{' | b'<' | b'!'))
        || matches!(value[0], b'/' | b'.' | b'~' | b'$' | b'%' | b'&' | b'*' | b'@' | b'#' | b'-')
        || memchr::memmem::find(value, b"://").is_some()
        || memchr::memmem::find(value, b"::").is_some()
        || memchr::memmem::find(value, b"->").is_some()
        || memchr::memmem::find(value, b"=>").is_some();
    // `D3DKMT_PRESENT`: the name of a constant or a type.
    let constant = !quoted
        && value.contains(&b'_')
        && value.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == b'_');
    if code || constant || is_worded(value) || entropy(value) < if quoted { 2.5 } else { 2.75 } {
        return false;
    }
    // Digests and fingerprints are public.
    !has_word(&value[..value.len().min(8)], &["sha1-", "sha256", "sha384", "sha512", "md5:"])
}

/// Returns whether the name is that of a pagination token, which is no secret: `next_token`,
/// `PageToken`.
pub(crate) fn is_pager(name: &[u8]) -> bool {
    let plain: Vec<u8> = name.iter().filter(|c| c.is_ascii_alphanumeric()).copied().collect();
    let words = [
        "nexttoken",
        "pagetoken",
        "paginationtoken",
        "continuationtoken",
        "changetoken",
        "idempotencytoken",
        "startingtoken",
        "synctoken",
        "locktoken",
        "cursortoken",
        "clientrequesttoken",
        "requesttoken",
    ];
    has_word(&plain, &words)
}

/// Returns whether a value is a name: words of letters, each followed by at most a number, and
/// plain numbers.
fn is_worded(value: &[u8]) -> bool {
    value.split(|c| !c.is_ascii_alphanumeric()).all(|word| {
        let letters = word.iter().take_while(|c| c.is_ascii_alphabetic()).count();
        let digits = &word[letters..];
        digits.iter().all(u8::is_ascii_digit)
            && (letters > 0 || digits.len() < 8)
            && (letters == 0 || digits.len() <= 4)
    }) && !value.iter().any(|c| matches!(c, b'!' | b'#' | b'$' | b'^' | b'*' | b'?' | b'@' | b'%'))
}

/// Returns whether a value is a name with a version: words, and numbers of at most four digits that
/// one or two letters may follow (`4o`, `32b`).
pub(crate) fn is_versioned(value: &[u8]) -> bool {
    let is_number = |word: &[u8]| {
        let digits = word.iter().take_while(|c| c.is_ascii_digit()).count();
        let letters = &word[digits..];
        (1..=4).contains(&digits)
            && letters.len() <= 2
            && letters.iter().all(u8::is_ascii_alphabetic)
    };
    value.split(|c| !c.is_ascii_alphanumeric()).all(|word| is_number(word) || is_worded(word))
}

/// Shannon entropy in bits per character.
fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    text.iter().for_each(|c| counts[usize::from(*c)] += 1);
    let len = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    counts.iter().filter(|n| **n > 0).map(|n| f64::from(*n) / len).map(|p| -p * p.log2()).sum()
}

#[cfg(test)]
mod tests {
    use crate::Secrets;

    #[test]
    fn secret_value_of_random_text_is_recognized_by_any_name() {
        for value in
            ["p4ss9harbor", "hunter2hunter2", "k9f2-p4q8-x7z1", "Tr0ub4dor&3x", "9f8e7d6c5b4a"]
        {
            assert!(Secrets::is_secret_value(value), "{value}");
        }
        for value in [
            "verbose-and-loud",
            "correcthorse",
            "gpt-4o-mini",
            "claude-sonnet-4-5",
            "qwen2.5-coder:32b",
            "us-east-1",
            "en_US.UTF-8",
            "true",
            "1234567890",
            "3.141592653",
            "/srv/app7/x9k2m4p1",
            "./x9k2m4p1",
            "http://127.0.0.1:8080/v1",
            "127.0.0.1:8080",
            "2026-03-01",
            "a1b2c3",
            "x86_64-unknown-linux-gnu",
        ] {
            assert!(!Secrets::is_secret_value(value), "{value}");
        }
    }
}
