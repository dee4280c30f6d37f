//! Content blocks: text, pictures, links.

use crate::adapter::Yield;
use crate::adapter::blob;
use crate::json::{Json, Kind};
use crate::tool::Image;

/// The words and pictures of content given as a string, a block or a list of blocks.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
}

pub(super) fn words(content: Option<Json<'_>>, out: &mut Yield) -> Words {
    let mut words = Words::default();
    if let Some(content) = content {
        if content.kind() == Kind::Array {
            for block in content.items() {
                add(block, &mut words, out);
            }
        } else {
            add(content, &mut words, out);
        }
    }
    words
}

fn add(block: Json<'_>, words: &mut Words, out: &mut Yield) {
    if let Some(text) = block.str() {
        words.text.push_str(&text);
        return;
    }
    let kind = block.text("type");
    match kind.as_deref() {
        Some("image") => match blob::image(block, &mut out.blobs) {
            Some(image) => words.images.push(image),
            None => words.text.push_str("[image that could not be read]"),
        },
        Some("resource_link") => {
            let uri = block.text("uri").unwrap_or_default();
            let name = block.any(&["title", "name"]).and_then(Json::str);
            words.text.push_str(&format!("[{}]({uri})", name.as_deref().unwrap_or("link")));
        }
        Some("resource") => {
            let resource = block.get("resource");
            let text = resource.and_then(|r| r.text("text"));
            let uri = resource.and_then(|r| r.text("uri"));
            words.text.push_str(&text.or(uri).unwrap_or_default());
        }
        Some("audio") => words.text.push_str("[audio]"),
        // `{type: content, content: {…}}` is how calls wrap a block.
        Some("content") => {
            if let Some(inner) = block.get("content").filter(|c| c.kind() == Kind::Object) {
                if inner.text("type").as_deref() != Some("content") {
                    add(inner, words, out);
                }
            }
        }
        _ => {
            // Codex sends a picture of the prompt back as a link to its data.
            let text = block.text("text").unwrap_or_default();
            let url = text.strip_prefix("[@image](").and_then(|t| t.trim_end().strip_suffix(')'));
            match url.and_then(|url| blob::data_url(url, &mut out.blobs)) {
                Some(image) => words.images.push(image),
                None => words.text.push_str(&text),
            }
        }
    }
}
