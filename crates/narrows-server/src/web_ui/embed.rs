//! Files of a built page, as they are kept. The build script uses it too.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// One file, ready to be served.
#[derive(Debug)]
pub(crate) struct Packed {
    /// `index.html`, or its name in the folder `page`.
    pub(crate) name: String,
    /// Its content type.
    pub(crate) kind: &'static str,
    /// Tells its content.
    pub(crate) tag: String,
    /// Whether the bytes are packed with gzip.
    pub(crate) gzip: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The files of a folder that a server shows: `index.html` and what is in `page`. Nothing if there
/// is no `index.html`. Names of other files are told: nobody can ask for them.
pub(crate) fn folder(dir: &Path) -> io::Result<(Vec<Packed>, Vec<String>)> {
    let (mut files, mut stray) = (Vec::new(), Vec::new());
    if !dir.join("index.html").is_file() {
        return Ok((files, stray));
    }
    for (under, path) in [("", dir.to_owned()), ("page/", dir.join("page"))] {
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("?").to_owned();
            match (under, path.is_dir()) {
                ("", true) if name == "page" => {}
                ("page/", false) => files.push(pack(name, fs::read(&path)?)?),
                ("", false) if name == "index.html" => files.push(pack(name, fs::read(&path)?)?),
                _ => stray.push(format!("{under}{name}")),
            }
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    stray.sort();
    Ok((files, stray))
}

fn pack(name: String, plain: Vec<u8>) -> io::Result<Packed> {
    let kind = kind(&name);
    let mut tag = String::new();
    for byte in &Sha256::digest(&plain)[..16] {
        let _ = write!(tag, "{byte:02x}");
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&plain)?;
    let packed = packed.finish()?;
    // Pictures and fonts are packed already.
    let gzip = packed.len() < plain.len() / 10 * 9;
    Ok(Packed { name, kind, tag, gzip, bytes: if gzip { packed } else { plain } })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "ico" => "image/x-icon",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
