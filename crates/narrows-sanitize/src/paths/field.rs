//! Redacts a field that holds one path.

use super::Paths;
use crate::chars::{is_long_id, is_name_byte};
use crate::normalize::NormalizedText;
use std::borrow::Cow;

/// Splits a path at any separator. The scheme and the drive letter are not parts.
pub(crate) fn parts(path: &str) -> Vec<&str> {
    let path = without_scheme(path);
    // `\\\\?\\C:\\…`, and `/C:/…` of a URL.
    let path = path.strip_prefix("\\\\?\\").unwrap_or(path);
    let path = path.strip_prefix('/').filter(|p| has_drive(p)).unwrap_or(path);
    let windows = is_windows(path);
    let path = if has_drive(path) { path.get(2..).unwrap_or_default() } else { path };
    path.split(move |c| c == '/' || (windows && c == '\\')).filter(|p| !p.is_empty()).collect()
}

/// The parts of an absolute path with `.` and `..` resolved.
pub(crate) fn resolved(path: &str) -> Vec<String> {
    let mut resolved_parts: Vec<String> = Vec::new();
    for part in parts(path) {
        match part {
            "." => {}
            ".." => drop(resolved_parts.pop()),
            _ => resolved_parts.push(part.to_owned()),
        }
    }
    resolved_parts
}

fn without_scheme(path: &str) -> &str {
    let scheme = path.get(..7).is_some_and(|s| s.eq_ignore_ascii_case("file://"));
    if scheme { path.get(7..).unwrap_or_default() } else { path }
}

fn has_drive(path: &str) -> bool {
    let b = path.as_bytes();
    b.len() > 2 && b[0].is_ascii_alphabetic() && b[1] == b':' && (b[2] == b'/' || b[2] == b'\\')
}

fn is_windows(path: &str) -> bool {
    has_drive(path) || path.starts_with("\\\\") || (path.contains('\\') && !path.contains('/'))
}

/// Returns the redacted path; `None` when the field must be redacted as text.
pub(crate) fn show(paths: &Paths, path: &str) -> Option<String> {
    let path = plain(path);
    let scheme = without_scheme(&path).len() != path.len();
    if path.contains(['\n', '\r']) || (path.contains("://") && !scheme) {
        return None;
    }
    let parts = parts(&path);
    if let Some(rest) = inside(paths, &parts) {
        return Some(normal(rest));
    }
    let absolute = scheme || path.starts_with(['/', '\\']) || has_drive(&path);
    if !absolute {
        return Some(path.into_owned());
    }
    if let Some(rest) = after_home(paths, &parts) {
        let visible = std::iter::once("~").chain(rest.iter().copied());
        return Some(visible.collect::<Vec<_>>().join("/"));
    }
    Some(parts.get(parts.len().saturating_sub(3)..).unwrap_or_default().join("/"))
}

/// Undoes the encoding of a URL, JSON or a terminal.
fn plain(path: &str) -> Cow<'_, str> {
    let is_encoded = path.contains(['%', '\u{1b}']) || path.contains("\\/") || !path.is_ascii();
    if !is_encoded {
        return Cow::Borrowed(path);
    }
    match String::from_utf8(NormalizedText::new(path).b.into_owned()) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(path),
    }
}

/// The parts below the session root.
fn inside<'p, 'a>(paths: &Paths, parts: &'p [&'a str]) -> Option<&'p [&'a str]> {
    for root in paths.roots.iter().filter(|r| !r.is_home) {
        let n = root.parts.len();
        let same = |(a, b): (&&str, &String)| a.eq_ignore_ascii_case(b);
        let at = parts.windows(n).position(|w| w.iter().zip(&root.parts).all(same));
        // A root of one part matches only at the start of a path.
        if let Some(at) = at.filter(|at| n >= 2 || *at == 0) {
            return parts.get(at + n..);
        }
    }
    let sandbox =
        |w: &[&str]| w[0] == "sandboxes" && is_id(w[1]) && w[2] == "sessions" && is_id(w[3]);
    if let Some(at) = parts.windows(4).position(sandbox) {
        return parts.get(at + 4..);
    }
    let workspace = |w: &[&str]| w[0] == "workspace" && w[1] == "sessions" && is_id(w[2]);
    if parts.windows(3).position(workspace) == Some(0) {
        return parts.get(3..);
    }
    let hex = |id: &str| id.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f' | b'-'));
    let session = |w: &[&str]| w[0] == "sessions" && (is_long_id(w[1].as_bytes()) || hex(w[1]));
    parts.windows(2).position(session).and_then(|at| parts.get(at + 2..))
}

fn is_id(part: &str) -> bool {
    part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-')
}

fn after_home<'p, 'a>(paths: &Paths, parts: &'p [&'a str]) -> Option<&'p [&'a str]> {
    for home in paths.roots.iter().filter(|r| r.is_home) {
        let n = home.parts.len();
        let same = |(a, b): (&String, &&str)| a.eq_ignore_ascii_case(b);
        if parts.len() >= n && home.parts.iter().zip(parts).all(same) {
            return parts.get(n..);
        }
    }
    if parts.first() == Some(&"root") {
        return parts.get(1..);
    }
    // Also below a mount: `/mnt/c/Users/name`.
    let home = |w: &[&str]| matches!(w[0], "Users" | "users" | "home") && !w[1].is_empty();
    parts.windows(2).take(4).position(home).and_then(|at| parts.get(at + 2..))
}

/// Joins the parts below the root and resolves `.` and `..`. A path that leaves the root keeps only
/// its name.
pub(crate) fn normal(parts: &[&str]) -> String {
    let mut resolved_parts: Vec<&str> = Vec::with_capacity(parts.len());
    for part in parts {
        match *part {
            "." => {}
            ".." => {
                if resolved_parts.pop().is_none() {
                    return outside(parts);
                }
            }
            _ => resolved_parts.push(part),
        }
    }
    if resolved_parts.is_empty() { ".".to_owned() } else { resolved_parts.join("/") }
}

/// The redacted form of a path that leaves the session: its last name.
pub(crate) fn outside(parts: &[&str]) -> String {
    let visible = |p: &&&str| **p != ".." && **p != "." && !is_long_id(p.as_bytes());
    match parts.iter().rev().find(visible) {
        Some(name) if name.bytes().any(is_name_byte) => format!("<outside>/{name}"),
        _ => "<outside>".to_owned(),
    }
}
