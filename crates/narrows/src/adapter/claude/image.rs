//! Image blocks of the Anthropic API.

use crate::adapter::blob::{Blob, decode_image};
use crate::json::Json;
use crate::model::tool::Image;

/// Decodes a block `{type: image, source}`; the error is text that replaces the image.
pub(super) fn image_block(block: Json<'_>, blobs: &mut Vec<Blob>) -> Result<Image, String> {
    let source = block.get("source");
    let get = |name: &str| source.and_then(|s| s.text(name));
    if let Some(url) = get("url") {
        return Err(format!("[image]({url})"));
    }
    let data = get("data").zip(get("media_type"));
    let image = data.and_then(|(data, mime)| decode_image(&data, &mime, blobs));
    image.ok_or_else(|| "[image that could not be read]".to_owned())
}
