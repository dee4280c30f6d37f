//! The text of a launchd agent.

use super::job::Job;
use super::{MARK, launchd};
use std::fmt::Write;

/// 0077, which a plist must say in decimal.
const UMASK: u32 = 0o077;

pub(super) fn text(job: &Job) -> String {
    let mut words = String::new();
    for word in job.words() {
        let _ = writeln!(words, "\t\t<string>{}</string>", escaped(word));
    }
    let mut places = String::new();
    for (name, place) in &job.places {
        let _ = writeln!(places, "\t\t<key>{name}</key>\n\t\t<string>{}</string>", escaped(place));
    }
    if !places.is_empty() {
        places = format!("\t<key>EnvironmentVariables</key>\n\t<dict>\n{places}\t</dict>\n");
    }
    // The usual priority of `Background` keeps it out of the way of other work.
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- {MARK}: `narrows service install` writes it anew, `narrows service remove` deletes it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>{}</string>
	<key>ProgramArguments</key>
	<array>
{words}	</array>
{places}	<key>RunAtLoad</key>
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
        escaped(&job.log)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_agent() {
        let job = Job {
            exe: "/usr/local/bin/narrows".into(),
            data: None,
            places: vec![],
            log: "/Users/ada/Library/Logs/narrows.log".into(),
        };
        assert_eq!(text(&job), include_str!("../../tests/service/plain.plist"));
    }

    #[test]
    fn an_agent_with_nasty_paths() {
        let job = Job {
            exe: "/Users/ada/R&D <tools>/narrows".into(),
            data: Some(r#"/Volumes/ada's "data" ]]> $x %h/narrows"#.into()),
            places: vec![("CLAUDE_CONFIG_DIR".into(), "/Users/ada/a & b".into())],
            log: "/Users/ada/Library/Logs/narrows.log".into(),
        };
        assert_eq!(text(&job), include_str!("../../tests/service/nasty.plist"));
    }
}
