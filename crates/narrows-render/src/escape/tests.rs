use super::super::ansi_style::{BOLD, PLAIN, RED, TextStyle};
use super::*;

fn shown(text: &str) -> Vec<String> {
    styled_lines(text).map(|spans| spans.into_iter().map(|r| r.text).collect()).collect()
}

/// Returns whether a terminal acts on nothing in the text.
fn is_harmless(text: &str) -> bool {
    text.chars().all(|c| !is_control_or_bidi(c) || c == '\n')
}

#[test]
fn plain_keeps_ordinary_text() {
    for text in ["", "a", "naïve 日本 🚀\n\tb", "\n\n", "ends\n"] {
        assert_eq!(plain(text), text);
    }
}

#[test]
fn plain_removes_terminal_commands() {
    for (text, left) in [
        // Titles, links, the clipboard.
        ("\u{1b}]0;title\u{7}a", "a"),
        ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ("\u{1b}]52;c;aGk=\u{7}a", "a"),
        ("\u{9d}0;t\u{9c}a", "a"),
        ("\u{9d}0;t\u{1b}\\a", "a"),
        // Cursor, screen, modes, keys.
        ("a\u{1b}[2J\u{1b}[1;1Hb\u{1b}[Kc", "abc"),
        ("\u{1b}[?1049h\u{1b}[?25lx", "x"),
        ("\u{1b}[>4;2mx", "x"),
        ("\u{1b}[?1mx", "x"),
        ("\u{1b}[1 qx\u{1b}[!px", "xx"),
        ("\u{1b}[1$mx", "x"),
        ("\u{9b}2Jx\u{9b}31mx", "xx"),
        // Device control strings and the like.
        ("\u{1b}P+q544e\u{1b}\\a", "a"),
        ("\u{1b}_Gf=100;AAAA\u{1b}\\a\u{1b}^pm\u{1b}\\\u{1b}Xsos\u{1b}\\", "a"),
        ("\u{90}1;2|x\u{9c}a", "a"),
        // Character sets, resets, keypads.
        ("\u{1b}(0a\u{1b}c\u{1b}7\u{1b}8\u{1b}=\u{1b}#8b", "ab"),
        // Controls.
        ("a\u{8}\u{8}b\u{7}\u{0}\u{b}\u{c}\u{e}\u{f}\u{7f}c", "abc"),
        ("a\u{80}\u{8d}\u{99}\u{9a}b", "ab"),
        // Colors.
        ("\u{1b}[1;31mred\u{1b}[0m\u{1b}[m", "red"),
    ] {
        assert_eq!(plain(text), left, "{text:?}");
        assert_eq!(shown(text).concat(), left, "{text:?}");
    }
}

#[test]
fn unterminated_sequences_become_harmless_text() {
    for (text, left) in [
        ("a\u{1b}", "a"),
        ("a\u{1b}[", "a"),
        ("a\u{1b}[31", "a"),
        ("a\u{1b}[31\nb", "a\nb"),
        ("a\u{1b}[3\u{e9}b", "aéb"),
        ("a\u{1b}]0;title", "a0;title"),
        ("a\u{1b}]0;t\u{1b}[2Jb", "a0;tb"),
        ("a\u{1b}]\u{1b}]0;t\u{7}b", "ab"),
        ("a\u{1b}\u{1b}[2Jb", "ab"),
        ("a\u{1b}Pq\u{18}b", "aqb"),
        ("a\u{1b}(", "a"),
        ("a\u{1b}\u{e9}", "aé"),
        ("\u{1b}\n\u{1b}\tb", "\n\tb"),
        ("\u{1b}]8;;\u{1b}", "8;;"),
        // Removing a sequence must not join its neighbors into another one.
        ("\u{1b}\u{1b}[0m[2J", "[2J"),
        ("\u{1b}\u{0}[2J", "[2J"),
        ("\u{1b}[\u{1b}[2J2J", "2J"),
    ] {
        assert_eq!(plain(text), left, "{text:?}");
        assert!(is_harmless(&plain(text)));
    }
    let long = format!("\u{1b}]0;{}\u{7}b", "x".repeat(MAX_STRING_CHARS));
    assert!(plain(&long).starts_with("0;xxx"));
}

/// Tries every sequence of four of these pieces.
#[test]
fn every_combination_of_pieces_is_harmless() {
    let pieces = [
        "\u{1b}", "[", "]", "0;", "m", "\u{7}", "\\", "\u{9b}", "\u{9c}", "\r", "\n", "P",
        "\u{202e}", "é", "\u{9d}", "?",
    ];
    let n = pieces.len();
    for number in 0..n.pow(4) {
        let text: String = (0..4).map(|i| pieces[number / n.pow(i) % n]).collect();
        let once = plain(&text);
        assert!(is_harmless(&once), "{text:?}");
        assert_eq!(plain(&once), once, "{text:?}");
        assert!(shown(&text).iter().all(|l| is_harmless(l) && !l.contains('\n')), "{text:?}");
        assert!(!line(&text).contains('\n'), "{text:?}");
    }
}

#[test]
fn many_unterminated_sequences_take_linear_time() {
    let text = "\u{1b}]\u{9d}\u{1b}P".repeat(200_000);
    assert_eq!(plain(&text), "");
    assert_eq!(plain(&"\u{1b}]a".repeat(200_000)).len(), 200_000);
}

#[test]
fn line_ends_are_normalized() {
    assert_eq!(plain("a\r\nb\rc\u{2028}d"), "a\nb\nc\nd");
    assert_eq!(shown("a\r\nb\n"), ["a", "b"]);
    assert_eq!(shown("a\n\nb"), ["a", "", "b"]);
    assert_eq!(shown("\n"), [""]);
    assert_eq!(shown("10%\r50%\r100%\nnext\r\n"), ["100%", "next"]);
    assert_eq!(shown("\rprogress\r\u{1b}[K"), ["progress"]);
    assert_eq!(shown("a\r\r\nb"), ["a", "b"]);
    assert_eq!(shown(""), Vec::<String>::new());
    assert_eq!(line(" a\r\n b\t c\u{1b}[31m "), "a b c");
}

#[test]
fn colors_continue_over_line_ends() {
    let spans: Vec<Vec<StyledSpan>> = styled_lines("\u{1b}[31ma\nb\u{1b}[0mc\u{1b}[1m").collect();
    let styled = |pen: TextStyle, text: &str| StyledSpan { pen, text: text.to_owned() };
    assert_eq!(spans, [vec![styled(RED, "a")], vec![styled(RED, "b"), styled(PLAIN, "c")]]);
    let spans: Vec<Vec<StyledSpan>> = styled_lines("\u{1b}[1mx\u{1b}[1my").collect();
    assert_eq!(spans, [vec![styled(BOLD, "xy")]]);
}

#[test]
fn bidi_controls_are_shown_as_code_points() {
    assert_eq!(plain("a\u{202e}b\u{2066}c"), "a<U+202E>b<U+2066>c");
    assert_eq!(shown("a\u{202e}b"), ["a<U+202E>b"]);
    assert_eq!(line("a\u{202d}"), "a<U+202D>");
}
