use super::*;

fn shown(text: &str, columns: usize) -> String {
    let lines = render(text, columns, false);
    let line = |l: &StyledLine| l.iter().map(|s| s.text.as_str()).collect::<String>();
    lines.iter().map(|l| line(l).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn wrapped_lists_and_quotes_keep_their_margins() {
    let text = "A long paragraph that is broken.\n\n- a list whose item is broken too\n  - inner\n10. ten is the first here, and broken\n\n> a quote that is broken over lines";
    assert_eq!(
        shown(text, 22),
        "A long paragraph that\nis broken.\n\n• a list whose item is\n  broken too\n  • inner\n\n10. ten is the first\n    here, and broken\n\n│ a quote that is\n│ broken over lines"
    );
}

#[test]
fn code_lines_are_not_wrapped() {
    let text = "See:\n\n```sh\nsome very long command that does not fit --at --all\n\n\tindented\n```\n\nDone.";
    assert_eq!(
        shown(text, 20),
        "See:\n\n    some very long command that does not fit --at --all\n\n        indented\n\nDone."
    );
}

#[test]
fn markers_stay_without_color() {
    assert_eq!(
        shown("## Head\nwith **bold**, *it* and `code`", 60),
        "## Head\n\nwith **bold**, *it* and `code`"
    );
    assert_eq!(shown("`` a`b ``", 60), "``a`b``");
    let bold = &render("# Head", 60, true)[0][0];
    assert_eq!((bold.text.as_str(), bold.pen.bold), ("Head", true));
}

#[test]
fn html_is_text_and_links_show_their_url() {
    assert_eq!(shown("a <b onclick=x>c</b>", 60), "a <b onclick=x>c</b>");
    assert_eq!(shown("<script>\nx\n</script>", 60), "<script>\nx\n</script>");
    assert_eq!(
        shown("[here](https://x.example/a) <https://y.example>", 80),
        "here (https://x.example/a) https://y.example"
    );
    assert_eq!(
        shown("![alt](https://x.example/a.png)", 80),
        "[image: alt] (https://x.example/a.png)"
    );
}

#[test]
fn tables_become_lists_when_too_wide() {
    let text = "| Name | What |\n|---|---|\n| a | 漢字 |\n| bcd | `x` |";
    assert_eq!(shown(text, 40), "Name │ What\n─────┼─────\na    │ 漢字\nbcd  │ `x`");
    let text = "| Name | What it is for |\n|---|---|\n| a | something that is long |";
    assert_eq!(shown(text, 24), "• Name: a\n  What it is for:\n  something that is long");
}

#[test]
fn task_lists_and_line_breaks_are_kept() {
    assert_eq!(shown("- [x] done\n- [ ] open", 40), "• ☑ done\n• ☐ open");
    assert_eq!(shown("one\ntwo", 40), "one\ntwo");
    assert_eq!(shown("- a\n\n  more\n\n- b", 40), "• a\n\n  more\n\n• b");
    assert_eq!(shown("-\n- b", 40), "•\n• b");
}

#[test]
fn deep_nesting_terminates() {
    assert!(!render(&format!("{}x", "> ".repeat(3000)), 40, false).is_empty());
}
