//! One pass for what no list of words can find: long unbroken runs, and rare signs.
//!
//! Nearly every token that a service gives out is a run of twenty or more letters and digits,
//! and hardly anything else is.

use wide::u8x16;

/// Shortest run that is told.
pub(super) const RUN: usize = 20;
const BLOCK: usize = 64;

/// What the pass tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// An unbroken run of `[A-Za-z0-9_-]`, from and to.
    Run(usize, usize),
    /// A sign to look at: `@`, `~`, an escape, or the first of several bytes beyond ASCII.
    Sign(usize),
}

pub(super) fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'-'
}

/// Tells all runs and signs, in no particular order.
pub(super) fn each(b: &[u8], mut tell: impl FnMut(Found)) {
    let mut before = 0u64;
    let mut told = 0;
    let mut block = [0u8; BLOCK];
    for (i, chunk) in b.chunks(BLOCK).enumerate() {
        let at = i * BLOCK;
        let (words, signs) = if let Ok(full) = <&[u8; BLOCK]>::try_from(chunk) {
            classify(full)
        } else {
            block[..chunk.len()].copy_from_slice(chunk);
            block[chunk.len()..].fill(0);
            classify(&block)
        };
        let mut left = signs;
        while left != 0 {
            tell(Found::Sign(at + left.trailing_zeros() as usize));
            left &= left - 1;
        }
        // The last 32 bytes of the block before, then this block.
        let mut run = (u128::from(words) << 32) | u128::from(before >> 32);
        run &= run >> 1;
        run &= run >> 2;
        run &= run >> 4;
        run &= run >> 8;
        run &= run >> 4;
        while run != 0 {
            let start = (at + run.trailing_zeros() as usize).saturating_sub(32);
            if start >= told {
                let from = start - b[..start].iter().rev().take_while(|c| is_word(**c)).count();
                let to = start + b[start..].iter().take_while(|c| is_word(**c)).count();
                tell(Found::Run(from.max(told), to));
                told = to;
            }
            // On to what is not yet told.
            let skip = (told + 32).saturating_sub(at).min(127);
            run = run >> skip << skip;
            if told + 32 >= at + 96 {
                break;
            }
        }
        before = words;
    }
}

/// Which bytes of a block are of a run, and which are signs.
fn classify(block: &[u8; BLOCK]) -> (u64, u64) {
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
            | v.simd_eq(u8x16::splat(0x1b))
            // The leads of characters that may be invisible.
            | v.simd_eq(u8x16::splat(0xC2))
            | v.simd_eq(u8x16::splat(0xE2))
            | v.simd_eq(u8x16::splat(0xEF))
            | v.simd_eq(u8x16::splat(0xF3));
        words |= u64::from((letter | digit | joint).to_bitmask() as u16) << (i * 16);
        signs |= u64::from(sign.to_bitmask() as u16) << (i * 16);
    }
    (words, signs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(b: &[u8]) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < b.len() {
            let len = b[at..].iter().take_while(|c| is_word(**c)).count();
            if len >= RUN {
                out.push((at, at + len));
            }
            at += len + 1;
        }
        out
    }

    #[test]
    fn runs_are_those_of_the_slow_way() {
        let mut seed = 9u64;
        for round in 0..3000 {
            let mut text = Vec::new();
            for _ in 0..round % 12 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let len = (seed >> 33) as usize % 90;
                text.extend(std::iter::repeat_n(b"aZ9_-"[(seed >> 20) as usize % 5], len));
                text.extend_from_slice(b" .@"[..(seed >> 25) as usize % 3 + 1].as_ref());
            }
            let mut got = Vec::new();
            each(&text, |found| {
                if let Found::Run(from, to) = found {
                    got.push((from, to));
                }
            });
            got.sort_unstable();
            assert_eq!(got, slow(&text), "{:?}", String::from_utf8_lossy(&text));
        }
    }
}
