//! The folders of sessions.

use super::Refusal;
use narrows_store::Error;
use std::path::Path;

/// Folders beside that of a session.
const MAX_DIRECTORIES: usize = 16;

/// The folder in which somebody wants an agent to work.
pub(super) fn named_root(cwd: &str) -> Result<String, Refusal> {
    named_folder("cwd", cwd)
}

/// Folders beside it that somebody named, each once.
pub(super) fn named_directories(list: &[String]) -> Result<Vec<String>, Refusal> {
    if list.len() > MAX_DIRECTORIES {
        let what = format!("`additionalDirectories` has more than {MAX_DIRECTORIES} folders");
        return Err(Refusal::Store(Error::Invalid(what)));
    }
    let mut named = Vec::new();
    for path in list {
        let folder = named_folder("additionalDirectories", path)?;
        if !named.contains(&folder) {
            named.push(folder);
        }
    }
    Ok(named)
}

/// A folder that somebody named in the field `name`.
fn named_folder(name: &str, path: &str) -> Result<String, Refusal> {
    let told = |what: String| Refusal::Store(Error::Invalid(format!("`{name}`{what}")));
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(told(" is a whole path".to_owned()));
    }
    let real = path.canonicalize().map_err(|e| told(format!(": {}", e.kind())))?;
    if !real.is_dir() {
        return Err(told(" is no folder".to_owned()));
    }
    real.into_os_string().into_string().map_err(|_| told(" is no text".to_owned()))
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
