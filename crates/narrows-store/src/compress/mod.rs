//! Compression of long texts with zstd and a dictionary: a log repeats much of its content.

use crate::db::{Param, Value};
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};

/// Texts of at least this size are compressed.
const FROM: usize = 1024;
/// The maximum size of decompressed data.
const MAX: usize = 1 << 30;
/// Format tags of compressed data: without a dictionary, as older versions wrote it, and with the
/// dictionary. `examples/dictionary.rs` trains one.
const ALONE: u8 = 1;
const BY_WORDS: u8 = 2;
const WORDS: &[u8] = include_bytes!("zstd-v1.dict");
/// The fastest level that still uses entropy coding.
const LEVEL: i32 = 1;
const NONE: u32 = u32::MAX;

static PACKING: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(WORDS, LEVEL));
static UNPACKING: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(WORDS));

/// A compressor that omits the dictionary id and size: the format tag and the lengths contain both.
fn packer() -> Option<Compressor<'static>> {
    let mut packer = Compressor::with_prepared_dictionary(&PACKING).ok()?;
    packer.include_dictid(false).ok()?;
    packer.include_contentsize(false).ok()?;
    Some(packer)
}

/// A text in its stored form.
#[derive(Debug)]
pub(crate) enum Kept {
    Text(String),
    Packed(Vec<u8>),
}

impl Kept {
    /// Compresses a text, if that makes it smaller.
    pub(crate) fn new(text: String) -> Kept {
        match pack(&[Some(text.as_bytes())]) {
            Some(packed) => Kept::Packed(packed),
            None => Kept::Text(text),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Kept::Text(text) => text.as_bytes(),
            Kept::Packed(packed) => packed,
        }
    }
}

impl Param for Kept {
    fn value(&self) -> Value<'_> {
        match self {
            Kept::Text(text) => Value::Text(text),
            Kept::Packed(packed) => Value::Bytes(packed),
        }
    }
}

/// Compresses texts together, if that makes them smaller: they share much of their content.
pub(crate) fn pack(parts: &[Option<&[u8]>]) -> Option<Vec<u8>> {
    let size: usize = parts.iter().flatten().map(|p| p.len()).sum();
    if !(FROM..MAX).contains(&size) {
        return None;
    }
    let all = match parts {
        [Some(one)] => Cow::Borrowed(*one),
        parts => {
            let mut all = Vec::with_capacity(size);
            parts.iter().flatten().for_each(|part| all.extend_from_slice(part));
            Cow::Owned(all)
        }
    };
    let packed = squeeze(&all)?;
    let mut kept = Vec::with_capacity(2 + 4 * parts.len() + packed.len());
    kept.extend([BY_WORDS, parts.len() as u8]);
    for part in parts {
        let length = part.map_or(NONE, |p| u32::try_from(p.len()).unwrap_or(0));
        kept.extend(length.to_le_bytes());
    }
    kept.extend(packed);
    (kept.len() < size).then_some(kept)
}

/// Compresses bytes with the dictionary.
pub(crate) fn squeeze(bytes: &[u8]) -> Option<Vec<u8>> {
    thread_local! {
        static PACKER: RefCell<Option<Compressor<'static>>> = RefCell::new(packer());
    }
    PACKER.with_borrow_mut(|packer| packer.as_mut()?.compress(bytes).ok())
}

/// Decompresses data to exactly `size` bytes.
fn loosen(form: u8, packed: &[u8], size: usize) -> Option<Vec<u8>> {
    thread_local! {
        static BY: RefCell<[Option<Decompressor<'static>>; 2]> = RefCell::new([
            Decompressor::new().ok(),
            Decompressor::with_prepared_dictionary(&UNPACKING).ok(),
        ]);
    }
    if size > MAX {
        return None;
    }
    let all = BY.with_borrow_mut(|[alone, by_words]| {
        let unpacker = match form {
            ALONE => alone,
            BY_WORDS => by_words,
            _ => return None,
        };
        unpacker.as_mut()?.decompress(packed, size).ok()
    });
    all.filter(|all| all.len() == size)
}

/// Decompresses data that was compressed with the dictionary, to exactly `size` bytes.
pub(crate) fn unsqueeze(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    loosen(BY_WORDS, packed, size)
}

/// Splits texts that were compressed together.
pub(crate) fn unpack(kept: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
    let bad = || Error::Damaged("a packed text cannot be read".to_owned());
    let (&[form, count], rest) = kept.split_first_chunk().ok_or_else(bad)?;
    let (lengths, packed) = rest.split_at_checked(4 * usize::from(count)).ok_or_else(bad)?;
    let lengths = lengths.chunks_exact(4).filter_map(|n| n.try_into().ok().map(u32::from_le_bytes));
    let lengths: Vec<u32> = lengths.collect();
    let size: usize = lengths.iter().filter(|n| **n != NONE).map(|n| *n as usize).sum();
    let all = loosen(form, packed, size).ok_or_else(bad)?;
    let mut rest = all.as_slice();
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        if length == NONE {
            parts.push(None);
            continue;
        }
        let (part, after) = rest.split_at_checked(length as usize).ok_or_else(bad)?;
        parts.push(Some(part.to_vec()));
        rest = after;
    }
    Ok(parts)
}

/// Whether data is compressed: no JSON begins with these bytes.
pub(crate) fn is_packed(kept: &[u8]) -> bool {
    matches!(kept.first(), Some(&(ALONE | BY_WORDS)))
}

/// A text that may be compressed.
pub(crate) fn text(kept: &[u8]) -> Result<Cow<'_, str>> {
    let bad = || Error::Damaged("a text cannot be read".to_owned());
    if is_packed(kept) {
        let one = unpack(kept)?.into_iter().next().flatten().ok_or_else(bad)?;
        return Ok(Cow::Owned(String::from_utf8(one).map_err(|_| bad())?));
    }
    Ok(Cow::Borrowed(std::str::from_utf8(kept).map_err(|_| bad())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_versions_packed_is_read() {
        let long = "words of another time ".repeat(90);
        let length = u32::try_from(long.len()).expect("short");
        let mut kept = vec![ALONE, 1];
        kept.extend(length.to_le_bytes());
        kept.extend(zstd::bulk::compress(long.as_bytes(), 1).expect("packed"));
        assert_eq!(text(&kept).expect("text"), long);
        kept[0] = 3;
        assert!(unpack(&kept).is_err());
    }

    /// The dictionary must never change: existing data could not be decompressed.
    #[test]
    fn the_dictionary_is_the_one_that_was_used() {
        use sha2::{Digest, Sha256};
        let hash: String = Sha256::digest(WORDS).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hash, "214333cebf1cd8871c21ed7e22867e5e941551e860d9c488a5dfbf71be23d83a");
    }

    #[test]
    fn what_was_packed_comes_out_again() {
        let long = "a line of words that are said again and again\n".repeat(100);
        let parts = [Some(long.as_bytes()), None, Some(&b"x"[..])];
        let kept = pack(&parts).expect("packed");
        assert!(kept.len() * 10 < long.len());
        let back = unpack(&kept).expect("unpacked");
        assert_eq!(back, [Some(long.clone().into_bytes()), None, Some(b"x".to_vec())]);
        assert!(pack(&[Some(b"short")]).is_none());
        for cut in 0..kept.len() {
            assert!(unpack(&kept[..cut]).is_err(), "{cut}");
        }
        for (given, packed) in [(long.as_str(), true), ("{}", false), ("", false)] {
            let kept = Kept::new(given.to_owned());
            assert_eq!(is_packed(kept.bytes()), packed);
            assert_eq!(text(kept.bytes()).expect("text"), given);
        }
    }
}
