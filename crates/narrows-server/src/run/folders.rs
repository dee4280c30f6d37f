//! The folders of sessions.

use super::Refusal;
use narrows_store::Error;
use std::path::Path;

/// A folder that somebody named.
pub(super) fn named_root(cwd: &str) -> Result<String, Refusal> {
    let told = |what: String| Refusal::Store(Error::Invalid(what));
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(told("`cwd` is a whole path".to_owned()));
    }
    let real = path.canonicalize().map_err(|e| told(format!("`cwd`: {}", e.kind())))?;
    if !real.is_dir() {
        return Err(told("`cwd` is no folder".to_owned()));
    }
    real.into_os_string().into_string().map_err(|_| told("`cwd` is no text".to_owned()))
}

/// A folder of the session's own, for what it makes and for what it is given.
pub(super) fn made_root(roots: &Path, id: &str) -> Result<String, Refusal> {
    let told = |e: std::io::Error| Refusal::Store(Error::Io(e.to_string()));
    let root = roots.join(id);
    for folder in ["outputs", "files"] {
        std::fs::create_dir_all(root.join(folder)).map_err(told)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&root, private).map_err(told)?;
    }
    let root = root.canonicalize().map_err(told)?;
    root.into_os_string().into_string().map_err(|_| {
        Refusal::Store(Error::Invalid("the data directory's name is no text".to_owned()))
    })
}
