//! Items as JSON: one document, or one item a line.

use super::order::Source;
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
    let mut first = true;
    source.items(&mut |item| {
        let before = if std::mem::take(&mut first) { "\n" } else { ",\n" };
        let text = printed(&item)?;
        write!(out, "{before}{text}")
    })?;
    out.write_all(b"\n]}\n")
}

/// An item a line.
pub(crate) fn lines(out: &mut dyn Write, source: &dyn Source) -> io::Result<()> {
    source.items(&mut |item| {
        let text = printed(&item)?;
        writeln!(out, "{text}")
    })
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
