//! Bodies that were packed with gzip, unpacked as they arrive.

use crate::error::{ApiError, ApiResult};
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use http::{HeaderMap, StatusCode, header};
use std::io::Write;

/// Packed bytes that are unpacked at once: gzip makes at most a thousand times as many of them.
const CHUNK_BYTES: usize = 1 << 10;
/// A body may unpack to this much, however small it was packed,
const MAX_UNPACKED_BYTES: u64 = 64 << 20;
/// and beyond it to so many times what arrived.
const MAX_RATIO: u64 = 100;

/// Unpacks a body; no more of it is in memory than one piece.
pub(super) struct Gunzip {
    packed: Bytes,
    decoder: MultiGzDecoder<Vec<u8>>,
    arrived: u64,
    unpacked: u64,
}

impl Gunzip {
    /// What unpacks the body of a request, if it is packed. Other encodings are refused.
    pub(super) fn from_headers(headers: &HeaderMap) -> ApiResult<Option<Gunzip>> {
        let mut names = headers.get_all(header::CONTENT_ENCODING).iter();
        let (name, more) = (names.next(), names.next());
        let Some(name) = name else { return Ok(None) };
        match name.to_str().map(|n| n.trim().to_ascii_lowercase()).as_deref() {
            Ok("identity" | "") if more.is_none() => Ok(None),
            Ok("gzip" | "x-gzip") if more.is_none() => Ok(Some(Gunzip {
                packed: Bytes::new(),
                decoder: MultiGzDecoder::new(Vec::new()),
                arrived: 0,
                unpacked: 0,
            })),
            _ => Err(ApiError::encoding("packets are sent plain, or with Content-Encoding: gzip")),
        }
    }

    /// Takes what arrived. What came before must have been unpacked.
    pub(super) fn push(&mut self, packed: Bytes) {
        self.arrived += packed.len() as u64;
        self.packed = packed;
    }

    /// Whether all that arrived was unpacked and taken.
    pub(super) fn is_empty(&self) -> bool {
        self.packed.is_empty() && self.decoder.get_ref().is_empty()
    }

    /// The next part of what arrived; nothing when there is no more of it.
    pub(super) fn next(&mut self) -> ApiResult<Option<Bytes>> {
        loop {
            let out = std::mem::take(self.decoder.get_mut());
            if !out.is_empty() {
                self.unpacked += out.len() as u64;
                if self.unpacked > MAX_UNPACKED_BYTES && self.unpacked > self.arrived * MAX_RATIO {
                    let what = "the body unpacks to far more than was sent";
                    let status = StatusCode::PAYLOAD_TOO_LARGE;
                    return Err(ApiError::new(status, "TOO_LARGE", what));
                }
                return Ok(Some(out.into()));
            }
            if self.packed.is_empty() {
                return Ok(None);
            }
            let piece = self.packed.len().min(CHUNK_BYTES);
            self.decoder.write_all(&self.packed[..piece]).map_err(|_| invalid_gzip())?;
            self.packed.advance(piece);
        }
    }

    /// Nothing more arrives.
    pub(super) fn end(&mut self) -> ApiResult<()> {
        self.decoder.try_finish().map_err(|_| invalid_gzip())
    }
}

fn invalid_gzip() -> ApiError {
    ApiError::invalid("the body is not whole gzip")
}
