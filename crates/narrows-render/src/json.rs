//! Items as JSON: one document, or one item per line.

use super::nesting::ItemSource;
use super::text_parts::{may_continue, text_mut};
use narrows::item::ItemBody;
use narrows::sanitize::Clean;
use narrows::tool::Image;
use serde::Serialize;
use std::io::{self, Write};

/// Writes `{"session": …, "items": […]}`, one item per line.
pub(crate) fn write_document(
    out: &mut dyn Write,
    record: &impl Serialize,
    source: &dyn ItemSource,
) -> io::Result<()> {
    let head = terminal_safe_json(record)?;
    write!(out, "{{\"session\":{head},\n\"items\":[")?;
    write_items(out, source, ("\n", ",\n"))?;
    out.write_all(b"\n]}\n")
}

/// Writes one item per line.
pub(crate) fn write_lines(out: &mut dyn Write, source: &dyn ItemSource) -> io::Result<()> {
    let any = write_items(out, source, ("", "\n"))?;
    out.write_all(if any { b"\n" } else { b"" })
}

/// A text in parts, some of which are written.
struct PartialTextItem {
    /// The id of the last part.
    last: Clean,
    images: Vec<Image>,
    /// The JSON after the text.
    suffix: String,
}

/// Writes each item behind a separator, and a text in parts as one item. Returns whether there are
/// any items.
fn write_items(
    out: &mut dyn Write,
    source: &dyn ItemSource,
    (first, next): (&str, &str),
) -> io::Result<bool> {
    let mut any = false;
    let mut open: Option<PartialTextItem> = None;
    source.items(&mut |mut item| {
        let continued = match open.take() {
            Some(continued) if item.continues.as_ref() == Some(&continued.last) => Some(continued),
            Some(other) => {
                out.write_all(other.suffix.as_bytes())?;
                None
            }
            None => None,
        };
        if continued.is_none() {
            let before = if std::mem::replace(&mut any, true) { next } else { first };
            out.write_all(before.as_bytes())?;
            if !may_continue(&item) {
                return out.write_all(terminal_safe_json(&item)?.as_bytes());
            }
        }
        let text = text_mut(&mut item).map(std::mem::take).unwrap_or_default();
        let is_new = continued.is_none();
        let mut images = continued.map(|continued| continued.images).unwrap_or_default();
        if let ItemBody::Text { images: own, .. } | ItemBody::UserMessage { images: own, .. } =
            &mut item.body
        {
            images.append(own);
            own.clone_from(&images);
        }
        let whole = terminal_safe_json(&item)?;
        let (prefix, suffix) = split_at_text(&whole);
        if is_new {
            out.write_all(prefix.as_bytes())?;
        }
        let text = terminal_safe_json(&text)?;
        let inside = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
        out.write_all(inside.unwrap_or_default().as_bytes())?;
        open = Some(PartialTextItem { last: item.id, images, suffix: suffix.to_owned() });
        Ok(())
    })?;
    if let Some(open) = open {
        out.write_all(open.suffix.as_bytes())?;
    }
    Ok(any)
}

/// Splits the JSON of an item with an empty text where the text belongs.
fn split_at_text(json: &str) -> (&str, &str) {
    let text_start = ["\"content\":\"\"", "\"text\":\"\""]
        .into_iter()
        .find_map(|field| json.find(field).map(|at| at + field.len() - 1));
    json.split_at(text_start.unwrap_or(json.len()))
}

/// Serializes a value to JSON that is safe to print: control characters that JSON permits and
/// bidirectional controls are escaped. They occur only inside strings.
fn terminal_safe_json(value: &impl Serialize) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(512);
    narrows::json::print(&mut bytes, value).map_err(io::Error::other)?;
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    if !text.contains(is_control_or_bidi) {
        return Ok(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_control_or_bidi(c) {
            append!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

fn is_control_or_bidi(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::terminal_safe_json;

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        let text = "a\u{1b}[2J\u{9b}2J\u{7f}\u{202e}é";
        let json = terminal_safe_json(&text).unwrap();
        assert_eq!(json, r#""a\u001b[2J\u009b2J\u007f\u202eé""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
