//! Client services of ACP: files and terminals within the session's workspace.

use super::RunOptions;
use super::agents::AgentSpec;
use super::terminal::{Terminal, Terminals};
use serde_json::{Value, json};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Longest file that is read for an agent, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The files and terminals that one session may use.
#[derive(Debug, Clone)]
pub(super) struct ClientServices {
    root: PathBuf,
    /// Additional directories of the agent.
    directories: Vec<PathBuf>,
    terminals: Terminals,
    spec: Arc<AgentSpec>,
    options: Arc<RunOptions>,
}

impl ClientServices {
    pub(super) fn new(
        root: PathBuf,
        directories: Vec<PathBuf>,
        spec: Arc<AgentSpec>,
        options: Arc<RunOptions>,
    ) -> Self {
        ClientServices { root, directories, terminals: Terminals::default(), spec, options }
    }

    /// Executes a client request.
    pub(super) async fn serve(&self, method: &str, params: &Value) -> Result<Value, String> {
        match method {
            "fs/read_text_file" => self.read(params).await,
            "fs/write_text_file" => self.write(params).await,
            "terminal/create" => self.create(params),
            _ => {
                let id = params["terminalId"].as_str().unwrap_or_default();
                let terminal = self.terminals.find(id).ok_or("no such terminal")?;
                match method {
                    "terminal/output" => Ok(terminal.output()),
                    "terminal/wait_for_exit" => Ok(terminal.exited().await),
                    "terminal/kill" => {
                        terminal.kill();
                        Ok(json!({}))
                    }
                    "terminal/release" => {
                        terminal.kill();
                        self.terminals.remove(id);
                        Ok(json!({}))
                    }
                    _ => Err("method not found".to_owned()),
                }
            }
        }
    }

    /// Kills all terminals.
    pub(super) fn close(&self) {
        self.terminals.clear();
    }

    async fn read(&self, params: &Value) -> Result<Value, String> {
        let path = self.resolve(params["path"].as_str())?;
        let (first, limit) = (params["line"].as_u64(), params["limit"].as_u64());
        let read = move || -> Result<String, String> {
            let io_error = |e: io::Error| format!("it cannot be read: {}", e.kind());
            let found = path.metadata().map_err(io_error)?;
            if !found.is_file() {
                return Err("not a regular file".to_owned());
            }
            if found.len() > MAX_FILE_BYTES {
                return Err(format!("it has more than {} MiB", MAX_FILE_BYTES >> 20));
            }
            let bytes = std::fs::read(&path).map_err(io_error)?;
            String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
        };
        let text = tokio::task::spawn_blocking(read).await.map_err(|e| e.to_string())??;
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let content: String = if first.is_none() && limit.is_none() {
            text
        } else {
            let skip = count(first.unwrap_or(1).max(1) - 1);
            text.split_inclusive('\n').skip(skip).take(limit.map_or(usize::MAX, count)).collect()
        };
        Ok(json!({"content": content}))
    }

    async fn write(&self, params: &Value) -> Result<Value, String> {
        let path = self.resolve(params["path"].as_str())?;
        let text = params["content"].as_str().ok_or("`content` is missing")?.to_owned();
        let services = self.clone();
        let write = move || -> Result<(), String> {
            let io_error = |e: io::Error| format!("it cannot be written: {}", e.kind());
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(io_error)?;
                // A link may have been created since the path was resolved.
                if !services.contains(&folder.canonicalize().map_err(io_error)?) {
                    return Err(OUTSIDE_WORKSPACE.to_owned());
                }
            }
            std::fs::write(&path, text).map_err(io_error)
        };
        tokio::task::spawn_blocking(write).await.map_err(|e| e.to_string())??;
        Ok(json!({}))
    }

    fn create(&self, params: &Value) -> Result<Value, String> {
        let command =
            params["command"].as_str().filter(|c| !c.is_empty()).ok_or("`command` is missing")?;
        let args = params["args"].as_array().into_iter().flatten();
        let args: Vec<String> = args.filter_map(Value::as_str).map(str::to_owned).collect();
        let cwd = match params["cwd"].as_str() {
            None => self.root.clone(),
            Some(_) => self.resolve(params["cwd"].as_str())?,
        };
        let env = params["env"].as_array().into_iter().flatten();
        let env = env.filter_map(|v| Some((v["name"].as_str()?, v["value"].as_str()?)));
        let env: Vec<(String, String)> = env.map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        let limit = params["outputByteLimit"].as_u64();
        let terminal =
            Terminal::start(command, &args, &cwd, &env, limit, &self.spec, &self.options)?;
        Ok(json!({"terminalId": self.terminals.add(terminal)?}))
    }

    /// Resolves a path with its links; an error if it is outside of the workspace.
    fn resolve(&self, path: Option<&str>) -> Result<PathBuf, String> {
        let path = Path::new(path.unwrap_or_default());
        if !path.is_absolute() || path.components().any(|c| c == Component::ParentDir) {
            return Err("the path must be absolute, without `..`".to_owned());
        }
        // Only the existing part can be resolved.
        let existing = path.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
        let real = existing.canonicalize().map_err(|e| e.kind().to_string())?;
        let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
        let whole = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        if self.contains(&whole) { Ok(whole) } else { Err(OUTSIDE_WORKSPACE.to_owned()) }
    }

    fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.root) || self.directories.iter().any(|one| path.starts_with(one))
    }
}

const OUTSIDE_WORKSPACE: &str = "the path is outside of the session's directories";
