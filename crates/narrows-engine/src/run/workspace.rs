//! Working directories of sessions.

use super::RunError;
use narrows_store::Error;
use std::path::Path;

/// Additional directories of a session.
const MAX_DIRECTORIES: usize = 16;

/// Validates the working directory of a request.
pub(super) fn validate_root(cwd: &str) -> Result<String, RunError> {
    validate_dir("cwd", cwd)
}

/// Validates additional directories and removes duplicates.
pub(super) fn validate_directories(list: &[String]) -> Result<Vec<String>, RunError> {
    if list.len() > MAX_DIRECTORIES {
        let what = format!("`additionalDirectories` has more than {MAX_DIRECTORIES} folders");
        return Err(RunError::Store(Error::Invalid(what)));
    }
    let mut validated = Vec::new();
    for path in list {
        let folder = validate_dir("additionalDirectories", path)?;
        if !validated.contains(&folder) {
            validated.push(folder);
        }
    }
    Ok(validated)
}

/// Validates a directory in the field `name`.
fn validate_dir(name: &str, path: &str) -> Result<String, RunError> {
    let invalid = |what: String| RunError::Store(Error::Invalid(format!("`{name}`{what}")));
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(invalid(" must be an absolute path".to_owned()));
    }
    let real = path.canonicalize().map_err(|e| invalid(format!(": {}", e.kind())))?;
    if !real.is_dir() {
        return Err(invalid(" is not a directory".to_owned()));
    }
    real.into_os_string().into_string().map_err(|_| invalid(" is not UTF-8".to_owned()))
}

/// Creates a private working directory for a session, with `outputs` and `files`.
pub(super) fn create_root(roots: &Path, id: &str) -> Result<String, RunError> {
    let invalid = |e: std::io::Error| RunError::Store(Error::Io(e.to_string()));
    let root = roots.join(id);
    for folder in ["outputs", "files"] {
        std::fs::create_dir_all(root.join(folder)).map_err(invalid)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&root, private).map_err(invalid)?;
    }
    let root = root.canonicalize().map_err(invalid)?;
    root.into_os_string().into_string().map_err(|_| {
        RunError::Store(Error::Invalid("the path of the data directory is not UTF-8".to_owned()))
    })
}
