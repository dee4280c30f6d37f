//! One SIMD pass for what no keyword list can find: long unbroken runs, and rare signs.
//!
//! Nearly every token that a service issues is a run of twenty or more letters and digits, and
//! hardly anything else is.

use wide::u8x16;

/// Shortest run that is reported, in bytes.
pub(crate) const MIN_RUN_LEN: usize = 20;
const BLOCK_BYTES: usize = 64;

/// A result of the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunMatch {
    /// An unbroken run of `[A-Za-z0-9_-]`: start and end.
    Run(usize, usize),
    /// A sign: `@`, `~`, an escape, or a non-ASCII byte that may be invisible.
    Sign(usize),
}

pub(crate) fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'-'
}

/// Reports all runs and signs, in no particular order.
pub(crate) fn each(b: &[u8], mut emit: impl FnMut(RunMatch)) {
    // The start of a run that continues after the block.
    let mut open: Option<usize> = None;
    let mut block = [0u8; BLOCK_BYTES];
    for (i, chunk) in b.chunks(BLOCK_BYTES).enumerate() {
        let at = i * BLOCK_BYTES;
        let (mut words, mut signs) = if let Ok(full) = <&[u8; BLOCK_BYTES]>::try_from(chunk) {
            classify(full)
        } else {
            block[..chunk.len()].copy_from_slice(chunk);
            block[chunk.len()..].fill(0);
            classify(&block)
        };
        while signs != 0 {
            let i = signs.trailing_zeros() as usize;
            signs &= signs - 1;
            if chunk[i] < 0x80 || matches!(chunk[i], 0xC2 | 0xE2 | 0xEF | 0xF3) {
                emit(RunMatch::Sign(at + i));
            }
        }
        if let Some(from) = open.take() {
            let len = words.trailing_ones();
            if len == 64 {
                open = Some(from);
                continue;
            }
            let to = at + len as usize;
            if to - from >= MIN_RUN_LEN {
                emit(RunMatch::Run(from, to));
            }
            words &= !low(len);
        }
        let last = words.leading_ones();
        if last > 0 {
            open = Some(at + 64 - last as usize);
            words &= !(!0 << (64 - last));
        }
        // A bit that is left after these five steps has nineteen more after it.
        let mut long = words & (words >> 1);
        long &= long >> 2;
        long &= long >> 4;
        long &= long >> 8;
        long &= long >> 4;
        while long != 0 {
            let from = long.trailing_zeros();
            let len = (words >> from).trailing_ones();
            emit(RunMatch::Run(at + from as usize, at + (from + len) as usize));
            long &= !(low(len) << from);
        }
    }
    if let Some(from) = open.filter(|from| b.len() - from >= MIN_RUN_LEN) {
        emit(RunMatch::Run(from, b.len()));
    }
}

/// The lowest `bits` bits.
fn low(bits: u32) -> u64 {
    if bits >= 64 { !0 } else { (1 << bits) - 1 }
}

/// The bytes of a block that belong to a run, and those that are signs, one bit each.
fn classify(block: &[u8; BLOCK_BYTES]) -> (u64, u64) {
    let (mut words, mut signs) = (0, 0);
    for i in 0..4 {
        let mut part = [0u8; 16];
        part.copy_from_slice(&block[i * 16..i * 16 + 16]);
        let v = u8x16::from(part);
        let folded = (v | u8x16::splat(0x20)) - u8x16::splat(b'a');
        let letter = folded.min(u8x16::splat(25)).simd_eq(folded);
        let number = v - u8x16::splat(b'0');
        let digit = number.min(u8x16::splat(9)).simd_eq(number);
        let joint = v.simd_eq(u8x16::splat(b'_')) | v.simd_eq(u8x16::splat(b'-'));
        let sign = v.simd_eq(u8x16::splat(b'@'))
            | v.simd_eq(u8x16::splat(b'~'))
            | v.simd_eq(u8x16::splat(0x1b));
        words |= u64::from((letter | digit | joint).to_bitmask() as u16) << (i * 16);
        // The highest bit is set in non-ASCII bytes.
        signs |= u64::from((sign | v).to_bitmask() as u16) << (i * 16);
    }
    (words, signs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference_runs(b: &[u8]) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < b.len() {
            let len = b[at..].iter().take_while(|c| is_word(**c)).count();
            if len >= MIN_RUN_LEN {
                out.push((at, at + len));
            }
            at += len + 1;
        }
        out
    }

    #[test]
    fn token_runs_match_the_bytewise_reference() {
        let mut seed = 9u64;
        for round in 0..3000 {
            let mut text = Vec::new();
            for _ in 0..round % 12 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let len = (seed >> 33) as usize % 90;
                text.extend(std::iter::repeat_n(b"aZ9_-"[(seed >> 20) as usize % 5], len));
                text.extend_from_slice(&b" .@"[..=(seed >> 25) as usize % 3]);
            }
            let mut got = Vec::new();
            each(&text, |found| {
                if let RunMatch::Run(from, to) = found {
                    got.push((from, to));
                }
            });
            got.sort_unstable();
            assert_eq!(got, reference_runs(&text), "{:?}", String::from_utf8_lossy(&text));
        }
    }
}
