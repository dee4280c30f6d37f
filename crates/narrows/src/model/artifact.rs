//! Artifacts: files below `outputs/` in the session root.

/// The artifact that a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactMatch {
    /// `file`, `image`, `web_app` or `nextjs_app`.
    pub kind: &'static str,
    /// Where its name starts in the path of the file.
    pub name: usize,
    /// Where its own path ends there: the path of an app is its folder.
    pub end: usize,
}

/// The artifact of a file, by the path of the file relative to the session root.
///
/// ```
/// let path = "outputs/web/next.config.ts";
/// let artifact = narrows::artifact::classify(path).unwrap();
/// assert_eq!((artifact.kind, &path[..artifact.end]), ("nextjs_app", "outputs/web"));
/// assert!(narrows::artifact::classify("src/main.rs").is_none());
/// ```
pub fn classify(path: &str) -> Option<ArtifactMatch> {
    let inside = path.strip_prefix("outputs/").filter(|path| !path.is_empty())?;
    let (folder, file) = path.rsplit_once('/')?;
    let app = match file {
        "index.html" => Some("web_app"),
        _ if file.starts_with("next.config.") => Some("nextjs_app"),
        _ => None,
    };
    if let Some(kind) = app.filter(|_| inside.contains('/')) {
        let name = folder.rfind('/').map_or(0, |at| at + 1);
        return Some(ArtifactMatch { kind, name, end: folder.len() });
    }
    let extension = file.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let kind = match extension.as_deref() {
        Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "svg" | "avif") => "image",
        _ => "file",
    };
    (!file.is_empty()).then_some(ArtifactMatch { kind, name: folder.len() + 1, end: path.len() })
}

#[cfg(test)]
mod tests {
    use super::classify;

    #[test]
    fn artifact_below_outputs_has_kind_name_and_path() {
        let describe = |path: &str| {
            classify(path)
                .map(|m| format!("{} {} {}", m.kind, &path[m.name..m.end], &path[..m.end]))
        };
        for (path, expected) in [
            ("outputs/report.md", Some("file report.md outputs/report.md")),
            ("outputs/a/chart.PNG", Some("image chart.PNG outputs/a/chart.PNG")),
            ("outputs/web/next.config.ts", Some("nextjs_app web outputs/web")),
            ("outputs/site/index.html", Some("web_app site outputs/site")),
            ("outputs/index.html", Some("file index.html outputs/index.html")),
            ("outputs/日本/図.svg", Some("image 図.svg outputs/日本/図.svg")),
            ("src/a.ts", None),
            ("outputs", None),
            ("outputs/", None),
            ("outputs/folder/", None),
        ] {
            assert_eq!(describe(path).as_deref(), expected, "{path}");
        }
    }
}
