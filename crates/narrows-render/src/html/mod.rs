//! Transcripts as one self-contained HTML page: no script, no request.
//!
//! Every text of an agent or a user goes through [`escape::text`]; the content security policy of
//! the page blocks what might slip through.

mod card;
mod escape;
mod item;
mod markdown;

use super::nesting::{ItemSource, for_each_tree};
use super::options::RenderOptions;
use super::session_header::SessionHeader;
use super::text_parts::JoinedParts;
use escape::text;
use narrows::tool::Image;
use std::io::{self, Write};

/// Allows inline styles and embedded images, nothing else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
     base-uri 'none'; form-action 'none'";
const CSS: &str = include_str!("page.css");

/// Supplies the bytes of images.
pub trait BlobSource {
    /// Returns the bytes of an image, unless they are missing.
    fn image_bytes(&self, image: &Image) -> Option<Vec<u8>>;
}

/// Writes a session.
pub(crate) fn write(
    out: &mut dyn Write,
    header: &SessionHeader,
    source: &dyn ItemSource,
    blobs: &dyn BlobSource,
    options: &RenderOptions,
) -> io::Result<()> {
    let title = text(&header.title());
    let mut head = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_SECURITY_POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n"
    );
    for (class, parts) in [
        ("who", header.agent_details()),
        ("facts", header.statistics(&options.zone)),
        ("id", header.identifiers()),
    ] {
        if !parts.is_empty() {
            let parts: Vec<String> = parts.iter().map(|part| text(part)).collect();
            append!(head, "<p class=\"{class}\">{}</p>\n", parts.join(" · "));
        }
    }
    head.push_str("</header>\n");
    out.write_all(head.as_bytes())?;
    let mut writer = item::ItemWriter { blobs, zone: &options.zone, open_text: None };
    for_each_tree(&JoinedParts(source), |node| {
        let mut html = String::new();
        writer.write_tree(&mut html, &node);
        out.write_all(html.as_bytes())
    })?;
    let mut end = String::new();
    writer.end_text(&mut end);
    out.write_all(end.as_bytes())?;
    out.write_all(b"</main>\n</body>\n</html>\n")
}
