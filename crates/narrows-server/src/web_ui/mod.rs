//! The page: the files of `web/dist`, embedded in the binary.

mod embed;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

/// Shown where the binary was built without the page.
const NO_PAGE: &str = include_str!("not_built.html");

/// What the build script writes for each file.
struct Embedded {
    name: &'static str,
    kind: &'static str,
    tag: &'static str,
    gzip: bool,
    bytes: &'static [u8],
}

/// What `web/dist` held when this was built.
const EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/web_ui.rs"));

#[derive(Debug)]
struct File {
    kind: &'static str,
    tag: Cow<'static, str>,
    gzip: bool,
    bytes: Bytes,
}

/// The files of a page, by name. Clones share them.
#[derive(Debug, Clone)]
pub struct WebAssets {
    files: Arc<BTreeMap<Cow<'static, str>, File>>,
}

impl WebAssets {
    /// The page that was built into the binary; without files if there was none.
    pub fn embedded() -> WebAssets {
        let files = EMBEDDED.iter().map(|f| {
            let (tag, bytes) = (Cow::Borrowed(f.tag), Bytes::from_static(f.bytes));
            (Cow::Borrowed(f.name), File { kind: f.kind, tag, gzip: f.gzip, bytes })
        });
        WebAssets { files: Arc::new(files.collect()) }
    }

    /// A page as the build script would embed it, from the folder that `vite build` makes.
    pub fn read(dir: &std::path::Path) -> io::Result<WebAssets> {
        let files = embed::folder(dir)?.0.into_iter().map(|f| {
            let (tag, bytes) = (Cow::Owned(f.tag), Bytes::from(f.bytes));
            (Cow::Owned(f.name), File { kind: f.kind, tag, gzip: f.gzip, bytes })
        });
        Ok(WebAssets { files: Arc::new(files.collect()) })
    }

    /// The names of its files; empty where the binary was built without a page.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(AsRef::as_ref)
    }

    pub(crate) fn respond(&self, name: &str, headers: &HeaderMap) -> Response {
        match self.files.get(name) {
            Some(file) => file.respond(is_hashed(name), headers),
            None if name == "index.html" => {
                ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], NO_PAGE).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

impl File {
    fn respond(&self, forever: bool, asked: &HeaderMap) -> Response {
        let packed = self.gzip && takes_gzip(asked);
        // The two forms have different bytes, and a strong tag tells bytes.
        let tag = format!("\"{}{}\"", self.tag, if packed { "-gzip" } else { "" });
        let mut response = if is_known(asked, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if packed || !self.gzip {
            self.bytes.clone().into_response()
        } else {
            let mut plain = Vec::with_capacity(self.bytes.len() * 4);
            match GzDecoder::new(&*self.bytes).read_to_end(&mut plain) {
                Ok(_) => plain.into_response(),
                Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        };
        let cache = if forever { "public, max-age=31536000, immutable" } else { "no-cache" };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        if self.gzip {
            headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// Whether a name changes with the content, as `app-Bx3k_9aZ.js` does. A name that only looks so
/// would be kept for a year: eight letters that are a word do not count.
fn is_hashed(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let Some((before, hash)) = stem.split_at_checked(stem.len().saturating_sub(8)) else {
        return false;
    };
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
    before.len() > 1
        && before.ends_with('-')
        && hash.bytes().all(plain)
        && hash.bytes().any(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
}

/// The values of a header that is a list.
pub(crate) fn header_list(
    headers: &HeaderMap,
    name: header::HeaderName,
) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|v| v.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let (mut named, mut any) = (None, None);
    for coding in header_list(headers, header::ACCEPT_ENCODING) {
        let (name, more) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = more.trim().strip_prefix("q=").map(|q| q.trim().parse::<f32>());
        let wanted = quality.is_none_or(|q| q.is_ok_and(|q| q > 0.0));
        match name.trim() {
            "*" => any = Some(wanted),
            name if name.eq_ignore_ascii_case("gzip") => named = Some(wanted),
            _ => {}
        }
    }
    named.or(any).unwrap_or(false)
}

/// Whether the client has this version.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let mut known = header_list(headers, header::IF_NONE_MATCH);
    known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_hash_are_kept() {
        for name in ["index-Bx3k_9aZ.js", "a-12345678.css", "x-AbCdEf-H.js", "a-b-DEADBEEF.js.map"]
        {
            assert!(is_hashed(name), "{name}");
        }
        for name in
            ["icon.svg", "app.js", "dark-favicons.svg", "-12345678.js", "12345678.js", "é.js"]
        {
            assert!(!is_hashed(name), "{name}");
        }
    }

    #[test]
    fn encodings_are_read() {
        let takes = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(text));
            takes_gzip(&headers)
        };
        for good in ["gzip", "br, gzip;q=0.5", "GZIP", "*", "identity;q=0, *;q=0.1", "gzip ; q=1"] {
            assert!(takes(good), "{good}");
        }
        for bad in ["", "br", "gzip;q=0", "gzip;q=0.0, *", "gzip;q=x", "*;q=0"] {
            assert!(!takes(bad), "{bad}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
