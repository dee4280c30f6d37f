//! The exact action of a tool call that needs permission.

use crate::{call, diff, escape};
use narrows::tool::{ToolCall, ToolKind};

// Former names, until their uses in other crates are renamed.
pub use self::{describe_action as wants, exact_lines as lines};

/// Describes the action in a few words.
pub fn describe_action(call: &ToolCall) -> String {
    let name = call::non_blank(call.name.as_ref()).map(escape::line);
    let path = call::non_blank(call.file_path.as_ref()).map(escape::line);
    if call.plan.as_ref().is_some_and(|plan| !plan.trim().is_empty()) {
        return "leave plan mode and carry out this plan".to_owned();
    }
    match (call.kind, path) {
        (ToolKind::Execute, _) => "run this command".to_owned(),
        (ToolKind::Edit, Some(path)) => format!("change {path}"),
        (ToolKind::Read, Some(path)) => format!("read {path}"),
        (ToolKind::Delete, Some(path)) => format!("delete {path}"),
        (_, path) => {
            let tool = name.map_or_else(|| "a tool".to_owned(), |name| format!("the tool {name}"));
            format!("use {tool}{}", path.map(|p| format!(" on {p}")).unwrap_or_default())
        }
    }
}

/// Returns the escaped lines of the action: a command, a plan, a diff, or the arguments. Nothing is
/// truncated: a user must not approve half a command.
pub fn exact_lines(call: &ToolCall) -> Vec<String> {
    let text = |text: &str| escape::plain(text).lines().map(str::to_owned).collect();
    if let Some(command) = call::non_blank(call.command.as_ref()) {
        return text(command);
    }
    if let Some(plan) = call::non_blank(call.plan.as_ref()) {
        return text(plan.trim());
    }
    let diffs = call.diffs.as_deref().unwrap_or_default();
    if !diffs.is_empty() {
        let mut out = Vec::new();
        for change in diffs {
            let what = diff::action(call, change).map(|w| format!("  ({w})")).unwrap_or_default();
            out.push(format!("{}{what}", escape::line(&change.path)));
            out.extend(diff::unified_lines(change).into_iter().map(|line| line.text));
        }
        return out;
    }
    match call.input.as_ref().map(narrows::Tree::json) {
        Some(json) if !matches!(json, "{}" | "null" | "[]" | "\"\"") => text(&call::pretty(json)),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(json: &str) -> ToolCall {
        let item = format!(r#"{{"type":"tool_call","id":"a","order":1,"toolCall":{json}}}"#);
        let item = narrows::stored::item(&item).expect("item");
        match item.body {
            narrows::item::ItemBody::ToolCall { tool_call } => tool_call.call,
            _ => panic!("a call"),
        }
    }

    #[test]
    fn command_lines_are_complete_and_escaped() {
        let long = "x".repeat(5000);
        let json = format!(
            r#"{{"id":"a","toolName":"bash","kind":"execute","isTodo":false,"name":"Bash","title":"Running","description":"Just list the files","command":"rm -rf a\n\u001b[2Jecho {long}","filePath":""}}"#
        );
        let call = call(&json);
        assert_eq!(describe_action(&call), "run this command");
        let lines = exact_lines(&call);
        assert_eq!(lines[0], "rm -rf a");
        assert!(lines[1].ends_with(&long) && !lines[1].contains('\u{1b}'), "{lines:?}");
        assert!(!lines.concat().contains("Just list"));
    }

    #[test]
    fn edit_lines_are_the_diff() {
        let call = call(
            r#"{"id":"a","toolName":"edit","kind":"edit","isTodo":false,"name":"Edit","filePath":"notes.md","command":"","diffs":[{"path":"notes.md","oldText":"teh","newText":"the","scope":"hunk"}]}"#,
        );
        assert_eq!(describe_action(&call), "change notes.md");
        let lines = exact_lines(&call);
        assert!(
            lines.iter().any(|l| l == "-teh") && lines.iter().any(|l| l == "+the"),
            "{lines:?}"
        );
    }
}
