//! Pictures in packets: decoded and named by their content.

use crate::json::Json;
use crate::tool::Image;
use base64::Engine;
use sha2::{Digest, Sha256};

/// The bytes of a picture.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    /// The SHA-256 of the bytes, in hexadecimal.
    pub hash: String,
    /// `image/png` and the like.
    pub mime_type: String,
    /// The picture.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blob({}, {} bytes)", self.mime_type, self.bytes.len())
    }
}

/// The picture of an ACP content block `{type: image, data, mimeType}`.
pub(super) fn image(block: Json<'_>, blobs: &mut Vec<Blob>) -> Option<Image> {
    let data = block.text("data")?;
    let mime = block.any(&["mimeType", "mime_type"]).and_then(Json::str)?;
    decode(&data, &mime, blobs)
}

/// The picture of a block `{type: image, source}`; words to stand for it where it is not there.
pub(super) fn claude_image(block: Json<'_>, blobs: &mut Vec<Blob>) -> Result<Image, String> {
    let source = block.get("source");
    let get = |name: &str| source.and_then(|s| s.text(name));
    if let Some(url) = get("url") {
        return Err(format!("[image]({url})"));
    }
    let found = get("data").zip(get("media_type"));
    let image = found.and_then(|(data, mime)| decode(&data, &mime, blobs));
    image.ok_or_else(|| "[image that could not be read]".to_owned())
}

/// The picture of a `data:` address.
pub(super) fn data_url(url: &str, blobs: &mut Vec<Blob>) -> Option<Image> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    decode(data, mime, blobs)
}

fn decode(data: &str, mime: &str, blobs: &mut Vec<Blob>) -> Option<Image> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.trim()).ok()?;
    let mime = if is_image(mime) { mime } else { "application/octet-stream" };
    let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let image = Image { blob: hash.clone(), mime_type: mime.to_owned(), size: bytes.len() as u64 };
    blobs.push(Blob { hash, mime_type: mime.to_owned(), bytes });
    Some(image)
}

fn is_image(mime: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'+' | b'-');
    mime.strip_prefix("image/").is_some_and(|rest| rest.len() <= 32 && rest.bytes().all(plain))
}
