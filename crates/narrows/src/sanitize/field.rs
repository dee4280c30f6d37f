//! A field that holds one path.

use super::paths::{Mode, Paths};
use super::scan::{is_long_id, is_name, mask_ids};

/// The parts of a path, whatever its separators; scheme and drive letter are not parts.
pub(super) fn parts(path: &str) -> Vec<&str> {
    let path = without_scheme(path);
    let windows = is_windows(path);
    let path = if has_drive(path) { path.get(2..).unwrap_or_default() } else { path };
    path.split(move |c| c == '/' || (windows && c == '\\')).filter(|p| !p.is_empty()).collect()
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

pub(super) fn clean(paths: &Paths, path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    if path.contains(['\n', '\r']) {
        return paths.text(path, Mode::Text).into_owned();
    }
    let shown = show(paths, path);
    mask_ids(paths, &shown).unwrap_or(shown)
}

fn show(paths: &Paths, path: &str) -> String {
    let parts = parts(path);
    let scheme = without_scheme(path).len() != path.len();
    if path.contains("://") && !scheme {
        return paths.text(path, Mode::Text).into_owned();
    }
    if let Some(rest) = inside(paths, &parts) {
        return normal(rest);
    }
    let absolute = scheme || path.starts_with(['/', '\\']) || has_drive(path);
    if !absolute {
        return path.to_owned();
    }
    if let Some(rest) = after_home(paths, &parts) {
        return std::iter::once("~").chain(rest.iter().copied()).collect::<Vec<_>>().join("/");
    }
    parts.get(parts.len().saturating_sub(3)..).unwrap_or_default().join("/")
}

/// The parts below the session root.
fn inside<'p, 'a>(paths: &Paths, parts: &'p [&'a str]) -> Option<&'p [&'a str]> {
    for root in &paths.roots {
        let n = root.parts.len();
        let at = parts.windows(n).position(|w| w.iter().zip(&root.parts).all(|(a, b)| a == b));
        // A short root is looked for only where a path begins.
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
    let n = paths.home.len();
    if n > 0 && parts.len() >= n && paths.home.iter().zip(parts).all(|(a, b)| a == b) {
        return parts.get(n..);
    }
    if parts.first() == Some(&"root") {
        return parts.get(1..);
    }
    // Also below a mount: `/mnt/c/Users/name`.
    let home = |w: &[&str]| matches!(w[0], "Users" | "users" | "home") && !w[1].is_empty();
    parts.windows(2).take(4).position(home).and_then(|at| parts.get(at + 2..))
}

/// Joins the parts below the root, resolving `.` and `..`; what leaves the root is only named.
pub(super) fn normal(parts: &[&str]) -> String {
    let mut kept: Vec<&str> = Vec::with_capacity(parts.len());
    for part in parts {
        match *part {
            "." => {}
            ".." => {
                if kept.pop().is_none() {
                    return outside(parts);
                }
            }
            _ => kept.push(part),
        }
    }
    if kept.is_empty() { ".".to_owned() } else { kept.join("/") }
}

/// What is shown of a path that leaves the session: its last name.
pub(super) fn outside(parts: &[&str]) -> String {
    let shown = |p: &&&str| **p != ".." && **p != "." && !is_long_id(p.as_bytes());
    match parts.iter().rev().find(shown) {
        Some(name) if name.bytes().any(is_name) => format!("<outside>/{name}"),
        _ => "<outside>".to_owned(),
    }
}
