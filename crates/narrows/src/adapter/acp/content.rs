//! Content blocks: text, images, links.

use crate::adapter::blob::{Blob, decode_data_url, decode_image};
use crate::adapter::output::AdapterOutput;
use crate::json::{Json, Kind};
use crate::model::tool::Image;
use ecow::{EcoString, eco_format};

/// The text and images of content: a string, a block or a list of blocks.
#[derive(Debug, Default)]
pub(super) struct ContentParts<'a> {
    pub(super) text: EcoString,
    pub(super) images: Vec<Image>,
    /// The last string, as it is written in the packet.
    pub(super) last_string: Option<Json<'a>>,
}

pub(super) fn content_parts<'a>(
    content: Option<Json<'a>>,
    out: &mut AdapterOutput,
) -> ContentParts<'a> {
    let mut parts = ContentParts::default();
    if let Some(content) = content {
        if content.kind() == Kind::Array {
            for block in content.items() {
                parts.add_block(block, out);
            }
        } else {
            parts.add_block(content, out);
        }
    }
    parts
}

/// Decodes an image block `{type: image, data, mimeType}`.
pub(super) fn image_block(block: Json<'_>, blobs: &mut Vec<Blob>) -> Option<Image> {
    let data = block.text("data")?;
    let mime = block.any(&["mimeType", "mime_type"]).and_then(Json::str)?;
    decode_image(&data, &mime, blobs)
}

impl<'a> ContentParts<'a> {
    fn add_block(&mut self, block: Json<'a>, out: &mut AdapterOutput) {
        if block.kind() == Kind::String {
            self.add_text(block, out);
            return;
        }
        let (mut kind, mut text) = (None, None);
        for (key, value) in block.fields() {
            match key {
                "type" => kind = value.str(),
                "text" => text = Some(value),
                _ => {}
            }
        }
        match kind.as_deref() {
            Some("image") => match image_block(block, &mut out.blobs) {
                Some(image) => self.images.push(image),
                None => self.text.push_str("[image that could not be read]"),
            },
            Some("resource_link") => {
                let uri = block.text("uri").unwrap_or_default();
                let name = block.any(&["title", "name"]).and_then(Json::str);
                self.add_link(name.as_deref(), &uri);
            }
            Some("resource") => {
                let resource = block.get("resource");
                if let Some(uri) = resource.and_then(|r| r.text("uri")) {
                    self.add_link(None, &uri);
                }
                if let Some(text) = resource.and_then(|r| r.text("text")) {
                    self.text.push_str(&eco_format!("\n```\n{text}\n```\n"));
                }
            }
            Some("audio") => self.text.push_str("[audio]"),
            // Tool calls wrap a block as `{type: content, content: {…}}`.
            Some("content") => {
                let inner = block.get("content").filter(|c| c.kind() == Kind::Object);
                if let Some(inner) = inner.filter(|i| i.text("type").as_deref() != Some("content"))
                {
                    self.add_block(inner, out);
                }
            }
            _ => {
                if let Some(text) = text.filter(|t| t.kind() == Kind::String) {
                    self.add_text(text, out);
                }
            }
        }
    }

    fn add_link(&mut self, name: Option<&str>, uri: &str) {
        let name = name.unwrap_or_else(|| uri.rsplit('/').next().unwrap_or("link"));
        self.text.push_str(&eco_format!("[{name}]({uri})"));
    }

    fn add_text(&mut self, json: Json<'a>, out: &mut AdapterOutput) {
        let Some(text) = json.str() else { return };
        // Codex echoes an image of the prompt as a link to a data URL.
        let url = text.strip_prefix("[@image](").and_then(|t| t.trim_end().strip_suffix(')'));
        if let Some(image) = url.and_then(|url| decode_data_url(url, &mut out.blobs)) {
            self.images.push(image);
            return;
        }
        self.last_string = Some(json);
        if self.text.is_empty() {
            self.text = text.into();
        } else {
            self.text.push_str(&text);
        }
    }
}
