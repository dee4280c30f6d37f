//! Removes the wrappers that agents put around tool output.

/// The text of a file that was read, without its wrapper and line numbers; none if there is no
/// wrapper.
///
/// Agents use three wrappers: `<file>` with `00001| `, `<content>` with `1: `, and a fenced block
/// with `1⇥`. Numbers are removed only if they are consecutive, because a file may itself have
/// lines that start like this.
pub fn file_text(text: &str) -> Option<String> {
    if text.starts_with("<file>") {
        let body = text_between(text, "<file>\n", "</file>").unwrap_or_default();
        return Some(strip_line_numbers(body, "| "));
    }
    if text.starts_with("<path>") {
        let body = text_between(text, "<content>\n", "</content>")?;
        return Some(strip_line_numbers(body, ": "));
    }
    fence_content(text).and_then(|body| {
        strip_consecutive_numbers(body, "\t").or_else(|| strip_consecutive_numbers(body, "→"))
    })
}

/// The text of a file without the line numbers that Claude Code adds for the model.
pub fn without_line_numbers(text: &str) -> String {
    let arrow = || strip_consecutive_numbers(text, "→");
    strip_consecutive_numbers(text, "\t").or_else(arrow).unwrap_or_else(|| text.to_owned())
}

/// The body without its line numbers, or unchanged if they are not consecutive.
fn strip_line_numbers(body: &str, separator: &str) -> String {
    strip_consecutive_numbers(body, separator).unwrap_or_else(|| body.to_owned())
}

/// The text between `open` and the last `close`; truncated text may lack `close`.
fn text_between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let start = text.find(open)? + open.len();
    let rest = text.get(start..)?;
    Some(rest.rfind(close).and_then(|end| rest.get(..end)).unwrap_or(rest))
}

/// The content of a text that is one fenced block.
fn fence_content(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("```")?;
    let body = rest.get(rest.find('\n')? + 1..)?;
    body.trim_end().strip_suffix("```").map(|b| b.strip_suffix('\n').unwrap_or(b))
}

/// Removes consecutive line numbers; none if a line has no number or the wrong one.
fn strip_consecutive_numbers(body: &str, separator: &str) -> Option<String> {
    let mut out = String::with_capacity(body.len());
    let mut last: Option<u64> = None;
    let mut rest = body;
    loop {
        let end = memchr::memchr(b'\n', rest.as_bytes());
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        match split_number(line, separator).filter(|(n, _)| last.is_none_or(|last| *n == last + 1))
        {
            Some((n, text)) => {
                if last.is_some() {
                    out.push('\n');
                }
                out.push_str(text);
                last = Some(n);
            }
            // Only the agent's own note at the end may follow.
            None => return rest.lines().all(is_agent_note).then_some(out),
        }
        let Some(end) = end else { return Some(out) };
        rest = rest.get(end + 1..).unwrap_or_default();
    }
}

/// The number and the text of a numbered line.
fn split_number<'a>(line: &'a str, separator: &str) -> Option<(u64, &'a str)> {
    let b = line.as_bytes();
    let blank = b.iter().take_while(|c| **c == b' ').count();
    let digits = b[blank..].iter().take(18).take_while(|c| c.is_ascii_digit());
    let (mut number, mut at) = (0, blank);
    for c in digits {
        number = number * 10 + u64::from(c - b'0');
        at += 1;
    }
    let text = line.get(at..)?.strip_prefix(separator)?;
    (at > blank).then_some((number, text))
}

/// Whether a line is a note that an agent adds to a file.
fn is_agent_note(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line == "..." || (line.starts_with('(') && line.ends_with(')'))
}

/// The output of a command, without the fenced block that some agents put around it and without
/// Claude Code's words for empty output.
pub fn shell_text(text: &str) -> &str {
    if text == "(Bash completed with no output)" {
        return "";
    }
    match text.strip_prefix("```console\n") {
        Some(_) => fence_content(text).unwrap_or(text),
        None => text,
    }
}

/// The exit code that Claude Code puts before the output of a failed command.
pub fn exit_code(text: &str) -> Option<i64> {
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    text.strip_prefix("Exit code ")?.lines().next()?.trim().parse().ok()
}

/// The answer of a subagent without the notes that the agent adds; none if nothing is left.
pub fn task_text(text: &str) -> Option<String> {
    let mut text = text.trim();
    if text.starts_with("<task ") {
        text = text_between(text, "<task_result>", "</task_result>").unwrap_or(text);
    }
    // Notes are at the end; a mention in the middle of the answer belongs to the answer.
    if let Some(at) = text.rfind("<task_metadata>") {
        let tail = text.get(at..).unwrap_or_default();
        if !tail.contains("</task_metadata>") || tail.trim_end().ends_with("</task_metadata>") {
            text = text.get(..at).unwrap_or_default();
        }
    }
    let mut text = text.trim();
    if let Some(rest) = text.strip_prefix("<tools-used-before-summary>") {
        text =
            rest.split_once("</tools-used-before-summary>").map_or(text, |(_, rest)| rest.trim());
    }
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_text_removes_wrapper_and_line_numbers() {
        let old = "<file>\n00001| a\n00002| \n00003| b\n\n(End of file - total 3 lines)\n</file>";
        let file_text = |text: &str| super::file_text(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(file_text(old), "a\n\nb");
        let new = "<path>/x</path>\n<type>file</type>\n<content>\n1: a\n2: 1: b\n\n(End of file)\n</content>";
        assert_eq!(file_text(new), "a\n1: b");
        assert_eq!(file_text("```\n1\t# Notes\n2\t\n3\tend\n```"), "# Notes\n\nend");
        assert_eq!(file_text("<file>\n00001| {content}\n...\n</file>"), "{content}");
        assert_eq!(file_text("<file>\n00009| x\n00010| y"), "x\ny");
    }

    #[test]
    fn file_text_keeps_nonconsecutive_numbers() {
        let file_text = |text: &str| super::file_text(text).unwrap_or_else(|| text.to_owned());
        let doc = "# Doc\nUse:\n<file>\nname\n</file>\nand more";
        assert_eq!(file_text(doc), doc);
        assert_eq!(file_text("<file>\n00001| x\n00007| gap\n</file>"), "00001| x\n00007| gap\n");
        assert_eq!(file_text("<file>\n\n(End of file - total 0 lines)\n</file>"), "");
        assert_eq!(file_text("12| a\n15| b"), "12| a\n15| b");
        assert_eq!(file_text("1\tx\n2\ty"), "1\tx\n2\ty");
        assert_eq!(file_text("```\ncode\n```"), "```\ncode\n```");
        assert_eq!(file_text(""), "");
    }

    #[test]
    fn task_text_removes_only_notes() {
        assert_eq!(
            task_text("done\n<task_metadata>\nid\n</task_metadata>").as_deref(),
            Some("done")
        );
        assert_eq!(task_text("done\n<task_metadata>\nid").as_deref(), Some("done"));
        let prose = "the <task_metadata>x</task_metadata> tag is explained";
        assert_eq!(task_text(prose).as_deref(), Some(prose));
        let new = "<task id=\"s\" state=\"completed\">\n<task_result>\nok\n</task_result>\n</task>";
        assert_eq!(task_text(new).as_deref(), Some("ok"));
        assert_eq!(task_text(" \n"), None);
    }
}
