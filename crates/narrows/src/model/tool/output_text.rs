//! What a tool gave, out of the wrappings that agents put around it.

/// The text of a file that was read, without wrapper and line numbers.
///
/// Three agents wrap it three ways: `<file>` with `00001| `, `<content>` with `1: `, and a fenced
/// block with `1⇥`. Numbers are stripped only if they count up line by line: a file may itself
/// hold lines that begin so.
/// None when nothing is wrapped around the text.
pub fn file_text(text: &str) -> Option<String> {
    if text.starts_with("<file>") {
        let body = between(text, "<file>\n", "</file>").unwrap_or_default();
        return Some(without_numbers(body, "| "));
    }
    if text.starts_with("<path>") {
        let body = between(text, "<content>\n", "</content>")?;
        return Some(without_numbers(body, ": "));
    }
    fenced(text).and_then(|body| numbered(body, "\t").or_else(|| numbered(body, "→")))
}

/// The text of a file whose lines are numbered as Claude Code numbers them for the model.
pub fn unnumbered(text: &str) -> String {
    let arrow = || numbered(text, "→");
    numbered(text, "\t").or_else(arrow).unwrap_or_else(|| text.to_owned())
}

/// A body without its line numbers, or as it is when they do not count up.
fn without_numbers(body: &str, mark: &str) -> String {
    numbered(body, mark).unwrap_or_else(|| body.to_owned())
}

/// The text from behind `open` up to the last `close`, which may be missing in a cut text.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let start = text.find(open)? + open.len();
    let rest = text.get(start..)?;
    Some(rest.rfind(close).and_then(|end| rest.get(..end)).unwrap_or(rest))
}

/// The inside of a text that is one fenced block.
fn fenced(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("```")?;
    let body = rest.get(rest.find('\n')? + 1..)?;
    body.trim_end().strip_suffix("```").map(|b| b.strip_suffix('\n').unwrap_or(b))
}

/// Strips line numbers that count up by one; none when some line is not numbered so.
fn numbered(body: &str, mark: &str) -> Option<String> {
    let mut out = String::with_capacity(body.len());
    let mut last: Option<u64> = None;
    let mut rest = body;
    loop {
        let end = memchr::memchr(b'\n', rest.as_bytes());
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        match number(line, mark).filter(|(n, _)| last.is_none_or(|last| *n == last + 1)) {
            Some((n, text)) => {
                if last.is_some() {
                    out.push('\n');
                }
                out.push_str(text);
                last = Some(n);
            }
            // What follows may only be the agent's own note about the end.
            None => return rest.lines().all(is_note).then_some(out),
        }
        let Some(end) = end else { return Some(out) };
        rest = rest.get(end + 1..).unwrap_or_default();
    }
}

/// The number and the text of a numbered line.
fn number<'a>(line: &'a str, mark: &str) -> Option<(u64, &'a str)> {
    let b = line.as_bytes();
    let blank = b.iter().take_while(|c| **c == b' ').count();
    let digits = b[blank..].iter().take(18).take_while(|c| c.is_ascii_digit());
    let (mut number, mut at) = (0, blank);
    for c in digits {
        number = number * 10 + u64::from(c - b'0');
        at += 1;
    }
    let text = line.get(at..)?.strip_prefix(mark)?;
    (at > blank).then_some((number, text))
}

/// A line that an agent adds to what it read.
fn is_note(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line == "..." || (line.starts_with('(') && line.ends_with(')'))
}

/// A command's output, out of the fenced block some agents put it in, and without the words that
/// Claude Code has for none.
pub fn shell_text(text: &str) -> &str {
    if text == "(Bash completed with no output)" {
        return "";
    }
    match text.strip_prefix("```console\n") {
        Some(_) => fenced(text).unwrap_or(text),
        None => text,
    }
}

/// The exit code that Claude Code writes before a failed command's output.
pub fn exit_code(text: &str) -> Option<i64> {
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    text.strip_prefix("Exit code ")?.lines().next()?.trim().parse().ok()
}

/// What a subagent answered, without the notes its caller added. None when nothing is left.
pub fn task_text(text: &str) -> Option<String> {
    let mut text = text.trim();
    if text.starts_with("<task ") {
        text = between(text, "<task_result>", "</task_result>").unwrap_or(text);
    }
    // Notes stand at the end; a mention in the middle of the answer is the answer's own.
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
    fn reads_are_unwrapped() {
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
    fn text_that_only_looks_numbered_stays() {
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
    fn tasks_lose_only_their_notes() {
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
