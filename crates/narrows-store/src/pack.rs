//! Long texts are kept packed: a log tells much of what it tells three times.

use crate::error::{Error, Result};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::borrow::Cow;
use std::cell::RefCell;

/// Texts from this size on are packed.
const FROM: usize = 1024;
/// Nothing that was packed is larger.
const MAX: usize = 1 << 30;
/// The form of what is packed.
const FORM: u8 = 1;
const NONE: u32 = u32::MAX;

/// A text as it is kept.
#[derive(Debug)]
pub(crate) enum Kept {
    Text(String),
    Packed(Vec<u8>),
}

impl Kept {
    /// Packs a text, if that is worth it.
    pub(crate) fn new(text: String) -> Kept {
        match pack(&[Some(text.as_bytes())]) {
            Some(packed) => Kept::Packed(packed),
            None => Kept::Text(text),
        }
    }

    pub(crate) fn value(&self) -> ValueRef<'_> {
        match self {
            Kept::Text(text) => ValueRef::Text(text.as_bytes()),
            Kept::Packed(packed) => ValueRef::Blob(packed),
        }
    }
}

impl ToSql for Kept {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.value()))
    }
}

/// Packs texts together, if that is worth it: what one says the others need not say again.
pub(crate) fn pack(parts: &[Option<&[u8]>]) -> Option<Vec<u8>> {
    thread_local! {
        static PACKER: RefCell<Option<zstd::bulk::Compressor<'static>>> =
            RefCell::new(zstd::bulk::Compressor::new(1).ok());
    }
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
    let packed = PACKER.with_borrow_mut(|packer| packer.as_mut()?.compress(&all).ok())?;
    let mut kept = Vec::with_capacity(2 + 4 * parts.len() + packed.len());
    kept.extend([FORM, parts.len() as u8]);
    for part in parts {
        let length = part.map_or(NONE, |p| u32::try_from(p.len()).unwrap_or(0));
        kept.extend(length.to_le_bytes());
    }
    kept.extend(packed);
    (kept.len() < size).then_some(kept)
}

/// The texts that were packed together.
pub(crate) fn unpack(kept: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
    let bad = || Error::Damaged("a packed text cannot be read".to_owned());
    let (&[form, count], rest) = kept.split_first_chunk().ok_or_else(bad)?;
    let (lengths, packed) = rest.split_at_checked(4 * usize::from(count)).ok_or_else(bad)?;
    let lengths = lengths.chunks_exact(4).filter_map(|n| n.try_into().ok().map(u32::from_le_bytes));
    let lengths: Vec<u32> = lengths.collect();
    let size: usize = lengths.iter().filter(|n| **n != NONE).map(|n| *n as usize).sum();
    if form != FORM || size > MAX {
        return Err(bad());
    }
    thread_local! {
        static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
            RefCell::new(zstd::bulk::Decompressor::new().ok());
    }
    let all = UNPACKER.with_borrow_mut(|u| u.as_mut()?.decompress(packed, size).ok());
    let all = all.ok_or_else(bad)?;
    if all.len() != size {
        return Err(bad());
    }
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

/// A text that may be packed.
pub(crate) fn text(value: ValueRef<'_>) -> Result<Cow<'_, str>> {
    let bad = || Error::Damaged("a text cannot be read".to_owned());
    match value {
        ValueRef::Text(text) => Ok(Cow::Borrowed(std::str::from_utf8(text).map_err(|_| bad())?)),
        ValueRef::Blob(kept) => {
            let one = unpack(kept)?.into_iter().next().flatten().ok_or_else(bad)?;
            Ok(Cow::Owned(String::from_utf8(one).map_err(|_| bad())?))
        }
        _ => Err(bad()),
    }
}

/// What a column of the database holds, unpacked: for whoever looks through all of it.
pub fn plain(kept: &[u8]) -> Vec<u8> {
    let parts = unpack(kept).map(|parts| parts.into_iter().flatten().flatten().collect());
    parts.unwrap_or_else(|_| kept.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
