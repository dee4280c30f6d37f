//! Compression of long texts with zstd and a dictionary: a log repeats much of its content.

use crate::db::{Param, Value};
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};

/// Texts of at least this size are compressed.
const MIN_BYTES: usize = 1024;
/// The maximum size of decompressed data.
const MAX_BYTES: usize = 1 << 30;
/// Format tags of compressed data: without a dictionary, as older versions wrote it, and with the
/// dictionary. `examples/dictionary.rs` trains one.
const FORMAT_PLAIN: u8 = 1;
const FORMAT_DICT: u8 = 2;
const DICTIONARY: &[u8] = include_bytes!("zstd-v1.dict");
/// The fastest level that still uses entropy coding.
const ZSTD_LEVEL: i32 = 1;
const NO_PART: u32 = u32::MAX;

static ENCODER_DICT: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, ZSTD_LEVEL));
static DECODER_DICT: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

/// A compressor that omits the dictionary id and size: the format tag and the lengths contain both.
fn new_compressor() -> Option<Compressor<'static>> {
    let mut compressor = Compressor::with_prepared_dictionary(&ENCODER_DICT).ok()?;
    compressor.include_dictid(false).ok()?;
    compressor.include_contentsize(false).ok()?;
    Some(compressor)
}

/// A text in its stored form.
#[derive(Debug)]
pub(crate) enum MaybeCompressed {
    Text(String),
    Compressed(Vec<u8>),
}

impl MaybeCompressed {
    /// Compresses a text, if that makes it smaller.
    pub(crate) fn new(text: String) -> MaybeCompressed {
        match compress(&[Some(text.as_bytes())]) {
            Some(compressed) => MaybeCompressed::Compressed(compressed),
            None => MaybeCompressed::Text(text),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            MaybeCompressed::Text(text) => text.as_bytes(),
            MaybeCompressed::Compressed(compressed) => compressed,
        }
    }
}

impl Param for MaybeCompressed {
    fn value(&self) -> Value<'_> {
        match self {
            MaybeCompressed::Text(text) => Value::Text(text),
            MaybeCompressed::Compressed(compressed) => Value::Bytes(compressed),
        }
    }
}

/// Compresses texts together, if that makes them smaller: they share much of their content.
pub(crate) fn compress(parts: &[Option<&[u8]>]) -> Option<Vec<u8>> {
    let size: usize = parts.iter().flatten().map(|p| p.len()).sum();
    if !(MIN_BYTES..MAX_BYTES).contains(&size) {
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
    let compressed = compress_raw(&all)?;
    let mut stored = Vec::with_capacity(2 + 4 * parts.len() + compressed.len());
    stored.extend([FORMAT_DICT, parts.len() as u8]);
    for part in parts {
        let length = part.map_or(NO_PART, |p| u32::try_from(p.len()).unwrap_or(0));
        stored.extend(length.to_le_bytes());
    }
    stored.extend(compressed);
    (stored.len() < size).then_some(stored)
}

/// Compresses bytes with the dictionary.
pub(crate) fn compress_raw(bytes: &[u8]) -> Option<Vec<u8>> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(new_compressor());
    }
    COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(bytes).ok())
}

/// Decompresses data to exactly `size` bytes.
fn decompress_as(format: u8, compressed: &[u8], size: usize) -> Option<Vec<u8>> {
    thread_local! {
        static DECOMPRESSORS: RefCell<[Option<Decompressor<'static>>; 2]> = RefCell::new([
            Decompressor::new().ok(),
            Decompressor::with_prepared_dictionary(&DECODER_DICT).ok(),
        ]);
    }
    if size > MAX_BYTES {
        return None;
    }
    let all = DECOMPRESSORS.with_borrow_mut(|[without_dict, with_dict]| {
        let decompressor = match format {
            FORMAT_PLAIN => without_dict,
            FORMAT_DICT => with_dict,
            _ => return None,
        };
        decompressor.as_mut()?.decompress(compressed, size).ok()
    });
    all.filter(|all| all.len() == size)
}

/// Decompresses data that was compressed with the dictionary, to exactly `size` bytes.
pub(crate) fn decompress_raw(compressed: &[u8], size: usize) -> Option<Vec<u8>> {
    decompress_as(FORMAT_DICT, compressed, size)
}

/// Splits texts that were compressed together.
pub(crate) fn decompress_parts(stored: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
    let damaged = || Error::Damaged("a compressed text cannot be read".to_owned());
    let (&[format, count], rest) = stored.split_first_chunk().ok_or_else(damaged)?;
    let (lengths, compressed) =
        rest.split_at_checked(4 * usize::from(count)).ok_or_else(damaged)?;
    let lengths = lengths.chunks_exact(4).filter_map(|n| n.try_into().ok().map(u32::from_le_bytes));
    let lengths: Vec<u32> = lengths.collect();
    let size: usize = lengths.iter().filter(|n| **n != NO_PART).map(|n| *n as usize).sum();
    let all = decompress_as(format, compressed, size).ok_or_else(damaged)?;
    let mut rest = all.as_slice();
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        if length == NO_PART {
            parts.push(None);
            continue;
        }
        let (part, after) = rest.split_at_checked(length as usize).ok_or_else(damaged)?;
        parts.push(Some(part.to_vec()));
        rest = after;
    }
    Ok(parts)
}

/// Whether data is compressed: no JSON begins with these bytes.
pub(crate) fn is_compressed(stored: &[u8]) -> bool {
    matches!(stored.first(), Some(&(FORMAT_PLAIN | FORMAT_DICT)))
}

/// A text that may be compressed.
pub(crate) fn decode_text(stored: &[u8]) -> Result<Cow<'_, str>> {
    let damaged = || Error::Damaged("a text cannot be read".to_owned());
    if is_compressed(stored) {
        let one = decompress_parts(stored)?.into_iter().next().flatten().ok_or_else(damaged)?;
        return Ok(Cow::Owned(String::from_utf8(one).map_err(|_| damaged())?));
    }
    Ok(Cow::Borrowed(std::str::from_utf8(stored).map_err(|_| damaged())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_zstd_of_older_versions_is_read() {
        let long = "words of another time ".repeat(90);
        let length = u32::try_from(long.len()).expect("short");
        let mut stored = vec![FORMAT_PLAIN, 1];
        stored.extend(length.to_le_bytes());
        stored.extend(zstd::bulk::compress(long.as_bytes(), 1).expect("packed"));
        assert_eq!(decode_text(&stored).expect("text"), long);
        stored[0] = 3;
        assert!(decompress_parts(&stored).is_err());
    }

    /// The dictionary must never change: existing data could not be decompressed.
    #[test]
    fn dictionary_is_unchanged() {
        use sha2::{Digest, Sha256};
        let hash: String = Sha256::digest(DICTIONARY).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hash, "214333cebf1cd8871c21ed7e22867e5e941551e860d9c488a5dfbf71be23d83a");
    }

    #[test]
    fn compressed_texts_round_trip() {
        let long = "a line of words that are said again and again\n".repeat(100);
        let parts = [Some(long.as_bytes()), None, Some(&b"x"[..])];
        let stored = compress(&parts).expect("packed");
        assert!(stored.len() * 10 < long.len());
        let back = decompress_parts(&stored).expect("unpacked");
        assert_eq!(back, [Some(long.clone().into_bytes()), None, Some(b"x".to_vec())]);
        assert!(compress(&[Some(b"short")]).is_none());
        for cut in 0..stored.len() {
            assert!(decompress_parts(&stored[..cut]).is_err(), "{cut}");
        }
        for (given, compressed) in [(long.as_str(), true), ("{}", false), ("", false)] {
            let stored = MaybeCompressed::new(given.to_owned());
            assert_eq!(is_compressed(stored.bytes()), compressed);
            assert_eq!(decode_text(stored.bytes()).expect("text"), given);
        }
    }
}
