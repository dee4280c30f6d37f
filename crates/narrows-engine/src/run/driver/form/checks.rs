//! Checks of form values: length, pattern, format and bounds.

use super::pattern;
use serde_json::Value;

/// Checks a text against its field's schema.
pub(super) fn text(schema: &Value, text: &str) -> Result<(), String> {
    let length = text.chars().count() as u64;
    let (least, most) = (&schema["minLength"], &schema["maxLength"]);
    if least.as_u64().is_some_and(|least| length < least) {
        return Err(format!("it has at least {least} characters"));
    }
    if most.as_u64().is_some_and(|most| length > most) {
        return Err(format!("it has at most {most} characters"));
    }
    if let Some(wanted) = schema["pattern"].as_str()
        && pattern::is_match(wanted, text) == Some(false)
    {
        return Err(format!("it does not fit the pattern {wanted}"));
    }
    match schema["format"].as_str() {
        Some("email") if !is_email(text) => Err("it is an address like ada@example.com".to_owned()),
        Some("uri") if !is_uri(text) => {
            Err("it is an address like https://example.com/path".to_owned())
        }
        Some("date") if !is_date(text) => Err("it is a date like 2026-11-18".to_owned()),
        Some("date-time") if !is_date_time(text) => {
            Err("it is a time like 2026-11-18T09:30:00Z".to_owned())
        }
        // Unknown formats are left to the agent.
        _ => Ok(()),
    }
}

/// Checks a number against its field's schema.
pub(super) fn number(schema: &Value, number: f64) -> Result<(), String> {
    let wrong = |name: &str, is_wrong: fn(f64, f64) -> bool, words: &str| {
        let bound = &schema[name];
        let is_wrong = bound.as_f64().is_some_and(|bound| is_wrong(number, bound));
        if is_wrong { Err(format!("it is {words} {bound}")) } else { Ok(()) }
    };
    wrong("minimum", |n, bound| n < bound, "at least")?;
    wrong("maximum", |n, bound| n > bound, "at most")?;
    wrong("exclusiveMinimum", |n, bound| n <= bound, "more than")?;
    wrong("exclusiveMaximum", |n, bound| n >= bound, "less than")
}

fn is_email(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control();
    let Some((who, host)) = text.rsplit_once('@') else { return false };
    let quoted = who.len() > 2 && who.starts_with('"') && who.ends_with('"');
    let is_who = !who.is_empty() && (quoted || !who.contains(odd) && !who.contains('@'));
    is_who && !host.is_empty() && !host.contains(odd)
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn is_date(text: &str) -> bool {
    let Some((year, month, day)) = numbers(text, '-') else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    text.len() == 10 && text.find('-') == Some(4) && (1..=days).contains(&day)
}

/// ISO 8601; zone and seconds are optional.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let time = match time.strip_suffix(['Z', 'z']) {
        Some(time) => time,
        None => match time.rfind(['+', '-']) {
            Some(at) => {
                let zone = &time[at + 1..];
                let digits = zone.replacen(':', "", 1);
                let is_zone = matches!(digits.len(), 2 | 4)
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && digits[..2] < *"24";
                if !is_zone {
                    return false;
                }
                &time[..at]
            }
            None => time,
        },
    };
    let (time, part) = time.split_once('.').unwrap_or((time, "0"));
    let seconds = if time.len() == 5 { format!("{time}:00") } else { time.to_owned() };
    let Some((hour, minute, second)) = numbers(&seconds, ':') else { return false };
    let is_time = seconds.len() == 8 && hour < 24 && minute < 60 && second <= 60;
    is_date(date) && is_time && !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// Three numbers with a separator.
fn numbers(text: &str, between: char) -> Option<(u32, u32, u32)> {
    let mut parts = text.split(between).map(|part| {
        let plain = part.len() >= 2 && part.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| part.parse().ok()).flatten()
    });
    let found = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_formats_are_validated() {
        let good = [
            ("email", vec!["a@b", "ada.l+x@example.co.uk", "ünï@exämple.de", "\"a b\"@x.org"]),
            ("uri", vec!["https://example.com/a?b=c#d", "mailto:a@b", "urn:isbn:1", "file:///x"]),
            ("date", vec!["2026-11-18", "2024-02-29", "2000-02-29", "0001-01-01"]),
            (
                "date-time",
                vec![
                    "2026-11-18T09:30:00Z",
                    "2026-11-18t09:30:00.123456z",
                    "2026-11-18 09:30:00+02:00",
                    "2026-11-18T09:30-0530",
                    "2026-11-18T09:30",
                    "2026-06-30T23:59:60Z",
                ],
            ),
            ("of-tomorrow", vec!["anything"]),
        ];
        let bad = [
            ("email", vec!["ada", "@b", "a@", "a b@c", "a@b c", "a@b@c"]),
            ("uri", vec!["example.com", "://x", "https:", "http://a b", "1x:y"]),
            (
                "date",
                vec![
                    "2026-13-01",
                    "2026-02-29",
                    "1900-02-29",
                    "18.11.2026",
                    "2026-1-8",
                    "26-11-018",
                ],
            ),
            (
                "date-time",
                vec![
                    "2026-11-18",
                    "2026-11-18T25:00:00Z",
                    "2026-11-18T09:61:00Z",
                    "2026-11-18T09:30:00.Z",
                    "2026-11-18T09:30:00+25:00",
                    "2026-11-18T9:30:00Z",
                    "tomorrow",
                ],
            ),
        ];
        for (list, is_good) in [(&good[..], true), (&bad[..], false)] {
            for (format, texts) in list {
                for one in texts {
                    let result = text(&json!({"type": "string", "format": format}), one);
                    assert_eq!(result.is_ok(), is_good, "{format}: {one}: {result:?}");
                }
            }
        }
    }
}
