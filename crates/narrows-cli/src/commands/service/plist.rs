//! The text of the launchd agent.

use super::spec::ServiceSpec;
use super::{UNIT_FILE_MARKER, launchd};
use std::fmt::Write;

/// A plist has numbers in decimal only.
const UMASK: u32 = 0o077;

pub(super) fn render(spec: &ServiceSpec) -> String {
    let mut arguments = String::new();
    for word in spec.argv() {
        let _ = writeln!(arguments, "\t\t<string>{}</string>", escaped(word));
    }
    let mut environment = String::new();
    for (name, value) in &spec.environment {
        let _ =
            writeln!(environment, "\t\t<key>{name}</key>\n\t\t<string>{}</string>", escaped(value));
    }
    if !environment.is_empty() {
        environment =
            format!("\t<key>EnvironmentVariables</key>\n\t<dict>\n{environment}\t</dict>\n");
    }
    // ProcessType `Background` lowers its priority.
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- {UNIT_FILE_MARKER}: `narrows service install` rewrites this file, `narrows service remove` deletes it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>{}</string>
	<key>ProgramArguments</key>
	<array>
{arguments}	</array>
{environment}	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ThrottleInterval</key>
	<integer>10</integer>
	<key>ProcessType</key>
	<string>Background</string>
	<key>Umask</key>
	<integer>{UMASK}</integer>
	<key>StandardErrorPath</key>
	<string>{}</string>
</dict>
</plist>
"#,
        launchd::LABEL,
        escaped(&spec.log_file)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_plain_agent() {
        let spec = ServiceSpec {
            exe: "/usr/local/bin/narrows".into(),
            data: None,
            environment: vec![],
            log_file: "/Users/ada/Library/Logs/narrows.log".into(),
        };
        assert_eq!(render(&spec), include_str!("../../../tests/service/plain.plist"));
    }

    #[test]
    fn render_escapes_special_characters() {
        let spec = ServiceSpec {
            exe: "/Users/ada/R&D <tools>/narrows".into(),
            data: Some(r#"/Volumes/ada's "data" ]]> $x %h/narrows"#.into()),
            environment: vec![("CLAUDE_CONFIG_DIR".into(), "/Users/ada/a & b".into())],
            log_file: "/Users/ada/Library/Logs/narrows.log".into(),
        };
        assert_eq!(render(&spec), include_str!("../../../tests/service/nasty.plist"));
    }
}
