//! Sessions as one page that needs nothing else: no script, no request.
//!
//! Everything that is not ours goes through [`escape::text`]; the page's own policy forbids what
//! might slip through.

mod card;
mod escape;
mod item;
mod prose;

use super::header::Header;
use super::order::{Source, nodes};
use super::parts::Joined;
use super::style::Style;
use escape::text;
use narrows::tool::Image;
use std::io::{self, Write};

/// The page may show what is in it, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
     base-uri 'none'; form-action 'none'";
const CSS: &str = include_str!("html/page.css");

/// The bytes of pictures.
pub(crate) trait Pictures {
    fn picture(&self, image: &Image) -> Option<Vec<u8>>;
}

/// Writes a session.
pub(crate) fn write(
    out: &mut dyn Write,
    header: &Header,
    source: &dyn Source,
    pictures: &dyn Pictures,
    style: &Style,
) -> io::Result<()> {
    let title = text(&header.title());
    let mut head = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n"
    );
    for (class, parts) in
        [("who", header.who()), ("facts", header.facts(&style.zone)), ("id", header.names())]
    {
        if !parts.is_empty() {
            let parts: Vec<String> = parts.iter().map(|part| text(part)).collect();
            put!(head, "<p class=\"{class}\">{}</p>\n", parts.join(" · "));
        }
    }
    head.push_str("</header>\n");
    out.write_all(head.as_bytes())?;
    let mut page = item::Page { pictures, zone: &style.zone, begun: None };
    nodes(&Joined(source), |node| {
        let mut html = String::new();
        page.node(&mut html, &node);
        out.write_all(html.as_bytes())
    })?;
    let mut end = String::new();
    page.end(&mut end);
    out.write_all(end.as_bytes())?;
    out.write_all(b"</main>\n</body>\n</html>\n")
}
