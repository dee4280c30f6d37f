//! Decodes the images in packets and names them by their content.

use crate::model::tool::Image;
use base64::Engine;
use sha2::{Digest, Sha256};

/// The bytes of an image.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    /// The SHA-256 of the bytes, in hexadecimal.
    pub hash: String,
    /// `image/png` and the like.
    pub mime_type: String,
    /// The image.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blob({}, {} bytes)", self.mime_type, self.bytes.len())
    }
}

/// Decodes the image of a `data:` URL.
pub(super) fn decode_data_url(url: &str, blobs: &mut Vec<Blob>) -> Option<Image> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    decode_image(data, mime, blobs)
}

/// Decodes a base64 image, adds its blob and returns the reference to it.
pub(super) fn decode_image(data: &str, mime: &str, blobs: &mut Vec<Blob>) -> Option<Image> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.trim()).ok()?;
    let mime = if is_image_type(mime) { mime } else { "application/octet-stream" };
    let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let image = Image { blob: hash.clone(), mime_type: mime.to_owned(), size: bytes.len() as u64 };
    blobs.push(Blob { hash, mime_type: mime.to_owned(), bytes });
    Some(image)
}

fn is_image_type(mime: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'+' | b'-');
    mime.strip_prefix("image/").is_some_and(|rest| rest.len() <= 32 && rest.bytes().all(is_plain))
}
