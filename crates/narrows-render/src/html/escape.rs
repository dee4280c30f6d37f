//! Text as HTML: characters, and nothing that a browser acts on.

use crate::ansi_style::PLAIN;
use crate::escape as terminal;

/// Escapes a text for element content or a quoted attribute; terminal sequences are removed.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    push_escaped(&mut out, &terminal::plain(text));
    out
}

/// Appends a text that has passed the terminal `escape`.
pub(super) fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Old browser modes accept a backtick as a quote.
            '`' => out.push_str("&#96;"),
            '\0' => {}
            c => out.push(c),
        }
    }
}

/// Converts terminal output; its colors become classes.
pub(super) fn terminal_output(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for (i, spans) in terminal::styled_lines(text).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        for span in spans {
            let classes = if span.pen == PLAIN { String::new() } else { span.pen.css_classes() };
            if classes.is_empty() {
                push_escaped(&mut out, &span.text);
            } else {
                out.push_str("<span class=\"");
                out.push_str(&classes);
                out.push_str("\">");
                push_escaped(&mut out, &span.text);
                out.push_str("</span>");
            }
        }
    }
    out
}

/// Returns an escaped URL and its host if the URL is safe to follow.
pub(super) fn safe_url(url: &str) -> Option<(String, String)> {
    let url = terminal::plain(url);
    let lower = url.to_ascii_lowercase();
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return None;
    }
    let host = if let Some(rest) =
        lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"))
    {
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        // The part before an @ is a user name that may imitate a host.
        host.rsplit('@').next().unwrap_or_default().to_owned()
    } else {
        lower.strip_prefix("mailto:")?.split('?').next().unwrap_or_default().to_owned()
    };
    (!host.is_empty()).then(|| (text(&url), text(&host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_emits_no_tags() {
        assert_eq!(
            text("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;"
        );
        assert_eq!(text("a\u{0}\u{1b}[31mb\u{202e}c"), "ab&lt;U+202E&gt;c");
        assert_eq!(text("\" onclick=\"x"), "&quot; onclick=&quot;x");
    }

    #[test]
    fn terminal_colors_become_classes() {
        assert_eq!(
            terminal_output("\u{1b}[1;31mred <b>\u{1b}[0m x\n\u{1b}]0;t\u{7}y"),
            "<span class=\"b f1\">red &lt;b&gt;</span> x\ny"
        );
    }

    #[test]
    fn safe_url_accepts_only_web_and_mail() {
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
            assert_eq!(safe_url(bad), None, "{bad}");
        }
        let host = |url: &str| safe_url(url).unwrap().1;
        assert_eq!(host("https://x.example/a?b"), "x.example");
        assert_eq!(host("HTTP://X.example:80"), "x.example:80");
        assert_eq!(host("https://good.example@bad.example/"), "bad.example");
        assert_eq!(host("https://bad.example\\@good.example/"), "bad.example");
        assert_eq!(host("mailto:a@b.example?subject=x"), "a@b.example");
        assert_eq!(safe_url("https://x.example/\"<").unwrap().0, "https://x.example/&quot;&lt;");
    }
}
