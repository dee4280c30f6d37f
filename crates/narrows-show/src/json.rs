//! Items as JSON: one document, or one item a line.

use super::order::Source;
use super::parts::{may_go_on, text_mut};
use narrows::item::ItemBody;
use narrows::sanitize::Clean;
use narrows::tool::Image;
use narrows_store::SessionRow;
use serde::Serialize;
use std::io::{self, Write};

/// `{"session": …, "items": […]}`, an item a line.
pub(crate) fn document(
    out: &mut dyn Write,
    session: &SessionRow,
    source: &dyn Source,
) -> io::Result<()> {
    let head = printed(session)?;
    write!(out, "{{\"session\":{head},\n\"items\":[")?;
    each(out, source, ("\n", ",\n"))?;
    out.write_all(b"\n]}\n")
}

/// An item a line.
pub(crate) fn lines(out: &mut dyn Write, source: &dyn Source) -> io::Result<()> {
    let any = each(out, source, ("", "\n"))?;
    out.write_all(if any { b"\n" } else { b"" })
}

/// A text in parts, of which some are written.
struct Open {
    /// The last part so far.
    last: Clean,
    images: Vec<Image>,
    /// What ends the item.
    end: String,
}

/// Writes each item with something before it; a text in parts is one item. Returns whether there are
/// any.
fn each(out: &mut dyn Write, source: &dyn Source, (first, next): (&str, &str)) -> io::Result<bool> {
    let mut any = false;
    let mut open: Option<Open> = None;
    source.items(&mut |mut item| {
        let begun = match open.take() {
            Some(begun) if item.continues.as_ref() == Some(&begun.last) => Some(begun),
            Some(other) => {
                out.write_all(other.end.as_bytes())?;
                None
            }
            None => None,
        };
        if begun.is_none() {
            let before = if std::mem::replace(&mut any, true) { next } else { first };
            out.write_all(before.as_bytes())?;
            if !may_go_on(&item) {
                return out.write_all(printed(&item)?.as_bytes());
            }
        }
        let text = text_mut(&mut item).map(std::mem::take).unwrap_or_default();
        let is_new = begun.is_none();
        let mut images = begun.map(|begun| begun.images).unwrap_or_default();
        if let ItemBody::Text { images: own, .. } | ItemBody::UserMessage { images: own, .. } =
            &mut item.body
        {
            images.append(own);
            own.clone_from(&images);
        }
        let whole = printed(&item)?;
        let (head, end) = around(&whole);
        if is_new {
            out.write_all(head.as_bytes())?;
        }
        let text = printed(&text)?;
        let inside = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
        out.write_all(inside.unwrap_or_default().as_bytes())?;
        open = Some(Open { last: item.id, images, end: end.to_owned() });
        Ok(())
    })?;
    if let Some(open) = open {
        out.write_all(open.end.as_bytes())?;
    }
    Ok(any)
}

/// What stands before and after the text of an item without any.
fn around(printed: &str) -> (&str, &str) {
    let found = ["\"content\":\"\"", "\"text\":\"\""]
        .into_iter()
        .find_map(|field| printed.find(field).map(|at| at + field.len() - 1));
    printed.split_at(found.unwrap_or(printed.len()))
}

/// JSON that does nothing to a terminal: controls that JSON lets stand, and characters that turn the
/// direction of writing, are written by their number. They can only be in strings.
fn printed(value: &impl Serialize) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(512);
    narrows::json::print(&mut bytes, value).map_err(io::Error::other)?;
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    if !text.contains(is_odd) {
        return Ok(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_odd(c) {
            put!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

fn is_odd(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::printed;

    #[test]
    fn odd_characters_are_numbers() {
        let text = "a\u{1b}[2J\u{9b}2J\u{7f}\u{202e}é";
        let json = printed(&text).unwrap();
        assert_eq!(json, r#""a\u001b[2J\u009b2J\u007f\u202eé""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
