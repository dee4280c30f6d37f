//! Identifies the tool of a call by its name or by the shape of its input.

use super::{ToolKind, ToolName, TriState};
use crate::json::{Json, Kind};

/// The tool with this name of an agent; `kind` distinguishes tools that share a name.
pub fn tool_by_name(name: &str, kind: Option<ToolKind>) -> Option<ToolName> {
    let mut word = [0u8; 32];
    let letters = name.bytes().filter(|c| !matches!(c, b'_' | b'-' | b' '));
    let mut len = 0;
    for c in letters {
        if let Some(slot) = word.get_mut(len) {
            *slot = c.to_ascii_lowercase();
        }
        len += 1;
    }
    if len > word.len() {
        return name.starts_with("mcp_").then_some(ToolName::Mcp);
    }
    Some(match word.get(..len)? {
        b"glob" | b"findfiles" => ToolName::Glob,
        b"grep" | b"grepsearch" | b"searchfilecontent" | b"searchtext" => ToolName::Grep,
        b"read" | b"readfile" | b"readmanyfiles" | b"viewimage" => ToolName::Read,
        b"write" | b"writefile" => ToolName::Write,
        b"edit" | b"multiedit" | b"replace" => ToolName::Edit,
        b"bash" | b"shell" | b"runshellcommand" | b"localshell" => ToolName::Bash,
        // Codex runs everything through one tool and states the purpose by the kind.
        b"execcommand" => match kind {
            Some(ToolKind::Read) => ToolName::Read,
            Some(ToolKind::Search) => ToolName::Grep,
            _ => ToolName::Bash,
        },
        b"task" | b"agent" | b"invokeagent" | b"spawnagent" => ToolName::Task,
        b"todowrite" | b"writetodos" | b"updateplan" => ToolName::TodoWrite,
        b"taskcreate" | b"taskupdate" | b"tasklist" | b"taskget" => ToolName::TodoWrite,
        b"webfetch" => ToolName::WebFetch,
        b"websearch" | b"googlewebsearch" => ToolName::WebSearch,
        b"applypatch" => ToolName::ApplyPatch,
        b"skill" | b"activateskill" => ToolName::Skill,
        b"list" | b"ls" | b"listdirectory" | b"listdir" => ToolName::List,
        b"lsp" => ToolName::Lsp,
        b"question" | b"askuserquestion" | b"askuser" => ToolName::Question,
        b"notebook" | b"notebookedit" => ToolName::Notebook,
        b"exitplanmode" | b"enterplanmode" => ToolName::PlanMode,
        w if w.starts_with(b"mcp") && name.starts_with("mcp_") => ToolName::Mcp,
        _ => return None,
    })
}

/// The tool of a call without a name, by its input and by the metadata of its output.
pub fn tool_by_input(input: Option<Json<'_>>, metadata: Option<Json<'_>>) -> Option<ToolName> {
    let input = input?;
    let (mut file, mut old, mut content, mut pattern, mut url, mut query) =
        (false, false, false, false, false, false);
    if input.get("server").is_some() && input.get("tool").is_some() {
        return Some(ToolName::Mcp);
    }
    for (key, value) in input.fields() {
        if value.is_null() {
            continue;
        }
        let text = value.kind() == Kind::String;
        match key {
            "todos" if value.kind() == Kind::Array => return Some(ToolName::TodoWrite),
            "subagent_type" | "subagentType" => return Some(ToolName::Task),
            "patchText" | "patch_text" => return Some(ToolName::ApplyPatch),
            "command" | "cmd" if text || value.kind() == Kind::Array => {
                return Some(ToolName::Bash);
            }
            "notebook_path" | "notebookPath" => return Some(ToolName::Notebook),
            "questions" if value.kind() == Kind::Array => return Some(ToolName::Question),
            "filePath" | "file_path" => file |= text,
            "oldString" | "old_string" => old |= text,
            "content" => content |= text,
            "pattern" => pattern |= text,
            "url" => url |= text,
            "query" => query |= text,
            _ => {}
        }
    }
    match () {
        () if file && old => Some(ToolName::Edit),
        () if file && content => Some(ToolName::Write),
        () if file => Some(ToolName::Read),
        () if pattern => search_tool_by_metadata(metadata),
        () if url => Some(ToolName::WebFetch),
        () if query => Some(ToolName::WebSearch),
        () => None,
    }
}

/// The search tool, by the metadata of its output.
pub fn search_tool_by_metadata(metadata: Option<Json<'_>>) -> Option<ToolName> {
    let metadata = metadata?;
    if metadata.get("matches").is_some() {
        return Some(ToolName::Grep);
    }
    metadata.get("count").map(|_| ToolName::Glob)
}

impl ToolName {
    /// The kind that the tool implies; none for tools with several uses.
    pub fn kind(self) -> Option<ToolKind> {
        Some(match self {
            ToolName::Glob | ToolName::Grep | ToolName::WebSearch => ToolKind::Search,
            ToolName::Read => ToolKind::Read,
            ToolName::Write | ToolName::Edit | ToolName::ApplyPatch | ToolName::Notebook => {
                ToolKind::Edit
            }
            ToolName::Bash => ToolKind::Execute,
            ToolName::Task => ToolKind::Task,
            ToolName::TodoWrite => ToolKind::Other,
            ToolName::WebFetch => ToolKind::Fetch,
            ToolName::PlanMode => ToolKind::SwitchMode,
            ToolName::Skill | ToolName::List | ToolName::Lsp | ToolName::Question => return None,
            ToolName::Mcp | ToolName::Unknown => return None,
        })
    }
}

/// Whether an agent that means `tool` would send `kind`. A title counts as a tool name only if so.
pub fn kind_agrees(tool: ToolName, kind: Option<ToolKind>) -> bool {
    let Some(kind) = kind else { return true };
    if tool.kind() == Some(kind) {
        return true;
    }
    let is_generic = matches!(kind, ToolKind::Other | ToolKind::Think);
    match tool {
        ToolName::Task | ToolName::TodoWrite => is_generic,
        ToolName::WebFetch | ToolName::ApplyPatch => kind == ToolKind::Other,
        ToolName::WebSearch => matches!(kind, ToolKind::Other | ToolKind::Fetch),
        ToolName::List => matches!(kind, ToolKind::Other | ToolKind::Read | ToolKind::Search),
        ToolName::Skill | ToolName::Lsp | ToolName::Question | ToolName::PlanMode => is_generic,
        _ => false,
    }
}

/// The title of a call.
pub fn display_title(tool: ToolName, kind: ToolKind, is_new: TriState) -> &'static str {
    if kind == ToolKind::Edit {
        return match (is_new, tool) {
            (TriState::Yes, _) | (TriState::Unknown, ToolName::Write) => "Writing",
            _ => "Editing",
        };
    }
    match tool {
        ToolName::Glob => "Searching files",
        ToolName::Grep => "Searching content",
        ToolName::Read => "Reading",
        ToolName::Write => "Writing",
        ToolName::Edit | ToolName::ApplyPatch | ToolName::Notebook => "Editing",
        ToolName::Bash => "Running command",
        ToolName::Task => "Running task",
        ToolName::TodoWrite => "Updating todos",
        ToolName::WebFetch => "Fetching web content",
        ToolName::WebSearch => "Searching web",
        ToolName::Skill => "Using a skill",
        ToolName::List => "Listing files",
        ToolName::Lsp => "Asking the language server",
        ToolName::Question => "Asking a question",
        ToolName::PlanMode => "Presenting the plan",
        ToolName::Mcp => "Running tool",
        ToolName::Unknown => match kind {
            ToolKind::Search => "Searching",
            ToolKind::Read => "Reading",
            ToolKind::Execute => "Running command",
            ToolKind::Edit => "Editing",
            ToolKind::Task => "Running task",
            ToolKind::Delete => "Deleting",
            ToolKind::Move => "Moving",
            ToolKind::Think => "Thinking",
            ToolKind::Fetch => "Fetching",
            ToolKind::SwitchMode => "Switching mode",
            ToolKind::Other => "Running tool",
        },
    }
}
