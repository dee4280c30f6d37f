//! The text of a systemd user unit.
//!
//! There is no `ProtectSystem` or `PrivateTmp`: in a user unit they need a user namespace, which
//! some systems refuse, and the service would not start there; nor may a user write `/usr` anyway.

use super::MARK;
use super::job::Job;
use std::fmt::Write;

pub(super) fn text(job: &Job) -> String {
    let mut places = String::new();
    for (name, place) in &job.places {
        let _ = writeln!(places, "Environment={}", quoted(&format!("{name}={place}")));
    }
    format!(
        "\
# {MARK}: `narrows service install` writes it anew, `narrows service remove` deletes it.
[Unit]
Description=narrows keeps the sessions of coding agents

[Service]
Type=exec
ExecStart={}
{places}Restart=on-failure
RestartSec=10
# What it prints lets a browser in, and a journal has other readers; logs are on standard error.
StandardOutput=null
UMask=0077
Nice=10
CPUWeight=20
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
",
        command(job)
    )
}

fn command(job: &Job) -> String {
    let mut words = Vec::new();
    for (at, word) in job.words().into_iter().enumerate() {
        if at > 0 {
            words.push(quoted(&word.replace('$', "$$")));
        } else if word.contains(['"', '\'', '\\']) {
            // Such a name is refused for a program, but not as an argument.
            words.push(r#"/bin/sh -c "exec \"$$0\" \"$$@\"""#.to_owned());
            words.push(quoted(&word.replace('$', "$$")));
        } else {
            // Variables are not looked for in the program's own name, so `$` is itself there.
            words.push(quoted(word));
        }
    }
    words.join(" ")
}

/// One word; `%` begins a specifier in any place.
fn quoted(word: &str) -> String {
    let word = word.replace('%', "%%");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%$".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("\"{}\"", word.replace('\\', r"\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_unit() {
        let job = Job {
            exe: "/home/ada/.local/bin/narrows".into(),
            data: None,
            places: vec![],
            log: String::new(),
        };
        assert_eq!(text(&job), include_str!("../../tests/service/plain.service"));
    }

    #[test]
    fn a_unit_with_nasty_paths() {
        let job = Job {
            exe: "/home/ada/100% $HOME tools/narrows".into(),
            data: Some(r#"/srv/ada's "data" \ $x ${y} 5%/narrows"#.into()),
            places: vec![("XDG_CONFIG_HOME".into(), r#"/home/ada/con fig %h $x "q" \"#.into())],
            log: String::new(),
        };
        assert_eq!(text(&job), include_str!("../../tests/service/nasty.service"));
    }

    #[test]
    fn a_program_that_systemd_refuses_by_name_is_run_by_a_shell() {
        let job = Job {
            exe: r#"/home/ada/the "$best" 'tools' \/narrows"#.into(),
            data: None,
            places: vec![],
            log: String::new(),
        };
        let expected = r#"/bin/sh -c "exec \"$$0\" \"$$@\"" "/home/ada/the \"$$best\" 'tools' \\/narrows" serve"#;
        assert_eq!(command(&job), expected);
    }
}
