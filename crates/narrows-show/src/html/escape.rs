//! Text as HTML: letters, and nothing that a browser acts on.

use crate::escape as terminal;
use crate::pen::PLAIN;

/// A text without escapes of terminals, for a place between tags or in quotes.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    push(&mut out, &terminal::plain(text));
    out
}

/// Adds a text that has passed `show::escape`.
pub(super) fn push(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Browsers take a backtick for a quote in old modes.
            '`' => out.push_str("&#96;"),
            '\0' => {}
            c => out.push(c),
        }
    }
}

/// What a terminal printed, with its colours as classes.
pub(super) fn printed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for (i, runs) in terminal::lines(text).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        for run in runs {
            let classes = if run.pen == PLAIN { String::new() } else { run.pen.classes() };
            if classes.is_empty() {
                push(&mut out, &run.text);
            } else {
                out.push_str("<span class=\"");
                out.push_str(&classes);
                out.push_str("\">");
                push(&mut out, &run.text);
                out.push_str("</span>");
            }
        }
    }
    out
}

/// An address that may be followed, and whose it is; none for all others.
pub(super) fn address(url: &str) -> Option<(String, String)> {
    let url = terminal::plain(url);
    let lower = url.to_ascii_lowercase();
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return None;
    }
    let host = if let Some(rest) =
        lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"))
    {
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        // What stands before an @ is a name that may look like a host.
        host.rsplit('@').next().unwrap_or_default().to_owned()
    } else {
        lower.strip_prefix("mailto:")?.split('?').next().unwrap_or_default().to_owned()
    };
    (!host.is_empty()).then(|| (text(&url), text(&host)))
}

/// Bytes as base64.
pub(super) fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |i: usize| u32::from(part.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= part.len() { char::from(sign) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_a_tag() {
        assert_eq!(
            text("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;"
        );
        assert_eq!(text("a\u{0}\u{1b}[31mb\u{202e}c"), "ab&lt;U+202E&gt;c");
        assert_eq!(text("\" onclick=\"x"), "&quot; onclick=&quot;x");
    }

    #[test]
    fn colours_are_classes() {
        assert_eq!(
            printed("\u{1b}[1;31mred <b>\u{1b}[0m x\n\u{1b}]0;t\u{7}y"),
            "<span class=\"b f1\">red &lt;b&gt;</span> x\ny"
        );
    }

    #[test]
    fn only_harmless_addresses_are_followed() {
        for bad in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "//x.example",
            "https://",
            "java\nscript:x",
            "https://a b",
            "vbscript:x",
            "",
            "#a",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
        let host = |url: &str| address(url).unwrap().1;
        assert_eq!(host("https://x.example/a?b"), "x.example");
        assert_eq!(host("HTTP://X.example:80"), "x.example:80");
        assert_eq!(host("https://good.example@bad.example/"), "bad.example");
        assert_eq!(host("https://bad.example\\@good.example/"), "bad.example");
        assert_eq!(host("mailto:a@b.example?subject=x"), "a@b.example");
        assert_eq!(address("https://x.example/\"<").unwrap().0, "https://x.example/&quot;&lt;");
    }

    #[test]
    fn base64_is_base64() {
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd, 0xfb]), "//79+w==");
    }
}
