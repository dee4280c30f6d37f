//! The text of the systemd user unit.
//!
//! It has no `ProtectSystem` and no `PrivateTmp`: in a user unit they need a user namespace, and the
//! service would not start on systems that refuse one. A user cannot write `/usr` anyway.

use super::UNIT_FILE_MARKER;
use super::spec::ServiceSpec;
use std::fmt::Write;

pub(super) fn render(spec: &ServiceSpec) -> String {
    let mut environment = String::new();
    for (name, value) in &spec.environment {
        let _ = writeln!(environment, "Environment={}", quoted(&format!("{name}={value}")));
    }
    format!(
        "\
# {UNIT_FILE_MARKER}: `narrows service install` rewrites this file, `narrows service remove` deletes it.
[Unit]
Description=narrows session server

[Service]
Type=exec
ExecStart={}
{environment}Restart=on-failure
RestartSec=10
# Standard output has the login URL, which the journal must not keep. Logs go to standard error.
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
        command(spec)
    )
}

fn command(spec: &ServiceSpec) -> String {
    let mut words = Vec::new();
    for (at, word) in spec.argv().into_iter().enumerate() {
        if at > 0 {
            words.push(quoted(&word.replace('$', "$$")));
        } else if word.contains(['"', '\'', '\\']) {
            // systemd refuses these characters in a program name, but not in an argument.
            words.push(r#"/bin/sh -c "exec \"$$0\" \"$$@\"""#.to_owned());
            words.push(quoted(&word.replace('$', "$$")));
        } else {
            // systemd does not expand variables in the program name, so `$` needs no escape.
            words.push(quoted(word));
        }
    }
    words.join(" ")
}

/// Quotes one word. `%` starts a specifier anywhere.
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
    fn render_plain_unit() {
        let spec = ServiceSpec {
            exe: "/home/ada/.local/bin/narrows".into(),
            data: None,
            environment: vec![],
            log_file: String::new(),
        };
        assert_eq!(render(&spec), include_str!("../../../tests/service/plain.service"));
    }

    #[test]
    fn render_quotes_special_characters() {
        let spec = ServiceSpec {
            exe: "/home/ada/100% $HOME tools/narrows".into(),
            data: Some(r#"/srv/ada's "data" \ $x ${y} 5%/narrows"#.into()),
            environment: vec![(
                "XDG_CONFIG_HOME".into(),
                r#"/home/ada/con fig %h $x "q" \"#.into(),
            )],
            log_file: String::new(),
        };
        assert_eq!(render(&spec), include_str!("../../../tests/service/nasty.service"));
    }

    #[test]
    fn command_runs_through_a_shell_if_systemd_refuses_the_program_name() {
        let spec = ServiceSpec {
            exe: r#"/home/ada/the "$best" 'tools' \/narrows"#.into(),
            data: None,
            environment: vec![],
            log_file: String::new(),
        };
        let expected = r#"/bin/sh -c "exec \"$$0\" \"$$@\"" "/home/ada/the \"$$best\" 'tools' \\/narrows" serve"#;
        assert_eq!(command(&spec), expected);
    }
}
