//! Content blocks: text, pictures, links.

use crate::adapter::Yield;
use crate::adapter::blob;
use crate::json::{Json, Kind};
use crate::tool::Image;
use ecow::{EcoString, eco_format};

/// The words and pictures of content given as a string, a block or a list of blocks.
#[derive(Debug, Default)]
pub(super) struct Words<'a> {
    pub(super) text: EcoString,
    pub(super) images: Vec<Image>,
    /// The last string among them, as it stands in the packet.
    pub(super) last: Option<Json<'a>>,
}

pub(super) fn words<'a>(content: Option<Json<'a>>, out: &mut Yield) -> Words<'a> {
    let mut words = Words::default();
    if let Some(content) = content {
        if content.kind() == Kind::Array {
            for block in content.items() {
                words.add_block(block, out);
            }
        } else {
            words.add_block(content, out);
        }
    }
    words
}

impl<'a> Words<'a> {
    fn add_block(&mut self, block: Json<'a>, out: &mut Yield) {
        if block.kind() == Kind::String {
            self.add(block, out);
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
            Some("image") => match blob::image(block, &mut out.blobs) {
                Some(image) => self.images.push(image),
                None => self.text.push_str("[image that could not be read]"),
            },
            Some("resource_link") => {
                let uri = block.text("uri").unwrap_or_default();
                let name = block.any(&["title", "name"]).and_then(Json::str);
                self.link(name.as_deref(), &uri);
            }
            Some("resource") => {
                let resource = block.get("resource");
                if let Some(uri) = resource.and_then(|r| r.text("uri")) {
                    self.link(None, &uri);
                }
                if let Some(text) = resource.and_then(|r| r.text("text")) {
                    self.text.push_str(&eco_format!("\n```\n{text}\n```\n"));
                }
            }
            Some("audio") => self.text.push_str("[audio]"),
            // `{type: content, content: {…}}` is how calls wrap a block.
            Some("content") => {
                let inner = block.get("content").filter(|c| c.kind() == Kind::Object);
                if let Some(inner) = inner.filter(|i| i.text("type").as_deref() != Some("content"))
                {
                    self.add_block(inner, out);
                }
            }
            _ => {
                if let Some(text) = text.filter(|t| t.kind() == Kind::String) {
                    self.add(text, out);
                }
            }
        }
    }

    fn link(&mut self, name: Option<&str>, uri: &str) {
        let name = name.unwrap_or_else(|| uri.rsplit('/').next().unwrap_or("link"));
        self.text.push_str(&eco_format!("[{name}]({uri})"));
    }

    fn add(&mut self, json: Json<'a>, out: &mut Yield) {
        let Some(text) = json.str() else { return };
        // Codex sends a picture of the prompt back as a link to its data.
        let url = text.strip_prefix("[@image](").and_then(|t| t.trim_end().strip_suffix(')'));
        if let Some(image) = url.and_then(|url| blob::data_url(url, &mut out.blobs)) {
            self.images.push(image);
            return;
        }
        self.last = Some(json);
        if self.text.is_empty() {
            self.text = text.into();
        } else {
            self.text.push_str(&text);
        }
    }
}
