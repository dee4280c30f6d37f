//! Times, durations and numbers, as people write and read them: in the time zone of this machine.

use crate::args::WhichArgs;
use crate::{Fault, misused};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// A time zone, and what time it is there. One for a whole output, so that all of it is of one
/// moment.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    now: Zoned,
}

impl Clock {
    /// The time zone of this machine, now.
    pub(crate) fn here() -> Clock {
        Clock { now: Zoned::now() }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.now.timestamp().as_millisecond()
    }

    /// What `--since` and `--until` say, in milliseconds since 1970.
    pub(crate) fn range(&self, which: &WhichArgs) -> Result<(Option<i64>, Option<i64>), Fault> {
        let read = |name: &str, text: &Option<String>| {
            let text = text.as_deref().map(|t| self.read(t));
            text.transpose().map_err(|e| misused(format!("--{name}: {e}")))
        };
        let range = (read("since", &which.since)?, read("until", &which.until)?);
        if let (Some(since), Some(until)) = range
            && since >= until
        {
            return Err(misused("--since is not before --until: nothing can be between them"));
        }
        Ok(range)
    }

    /// A time as people write it, in milliseconds since 1970: a day begins in this time zone.
    fn read(&self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        let found = match text {
            "today" => self.begin(self.now.date()),
            "yesterday" => self.now.date().yesterday().ok().and_then(|d| self.begin(d)),
            _ => self.ago(text).or_else(|| self.exact(text)).or_else(|| self.day(text)),
        };
        found.map(Timestamp::as_millisecond).ok_or_else(|| {
            format!(
                "`{text}` is no time: write 2026-11-01, 2026-11-01T10:00, today, yesterday, 7d or 12h"
            )
        })
    }

    fn begin(&self, day: Date) -> Option<Timestamp> {
        Some(day.to_zoned(self.zone()).ok()?.timestamp())
    }

    fn zone(&self) -> TimeZone {
        self.now.time_zone().clone()
    }

    fn day(&self, text: &str) -> Option<Timestamp> {
        self.begin(text.parse().ok()?)
    }

    /// `2026-11-01T10:00`, also with seconds, with a blank for the `T`, or with a zone of its own.
    fn exact(&self, text: &str) -> Option<Timestamp> {
        if !text.contains(':') {
            return None;
        }
        let here = |t: DateTime| t.to_zoned(self.zone()).ok().map(|z| z.timestamp());
        text.parse().ok().or_else(|| here(text.parse().ok()?))
    }

    /// `30m`, `12h`, `7d`, `2w`: so long ago. A day ago is the same time of the day before.
    fn ago(&self, text: &str) -> Option<Timestamp> {
        let (at, unit) = text.char_indices().next_back()?;
        let number = &text[..at];
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let n: i64 = number.parse().ok()?;
        let span = match unit {
            'm' => Span::new().try_minutes(n),
            'h' => Span::new().try_hours(n),
            'd' => Span::new().try_days(n),
            'w' => Span::new().try_weeks(n),
            _ => return None,
        };
        Some(self.now.checked_sub(span.ok()?).ok()?.timestamp())
    }

    fn local(&self, millis: i64) -> Option<Zoned> {
        Some(Timestamp::from_millisecond(millis).ok()?.to_zoned(self.zone()))
    }

    /// A time, as short as it can be told: `14:05`, `Nov 12 14:05`, `2025-11-12`.
    pub(crate) fn short(&self, millis: i64) -> String {
        let Some(at) = self.local(millis) else { return "-".to_owned() };
        let form = if at.date() == self.now.date() {
            "%H:%M"
        } else if at.year() == self.now.year() {
            "%b %-d %H:%M"
        } else {
            "%Y-%m-%d"
        };
        at.strftime(form).to_string()
    }

    /// The same of a time as JSON has it.
    pub(crate) fn short_of(&self, timestamp: &str) -> Option<String> {
        let at: Timestamp = timestamp.parse().ok()?;
        Some(self.short(at.as_millisecond()))
    }

    /// A day: `Nov 12`, `2025-11-12`.
    pub(crate) fn day_of(&self, millis: i64) -> String {
        let Some(at) = self.local(millis) else { return "-".to_owned() };
        let form = if at.year() == self.now.year() { "%b %-d" } else { "%Y-%m-%d" };
        at.strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 November 2026, 14:05, where the clocks were changed three weeks before.
    fn clock() -> Clock {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("zone");
        let now: DateTime = "2026-11-16T14:05".parse().expect("time");
        Clock { now: now.to_zoned(zone).expect("zoned") }
    }

    fn read(text: &str) -> Result<String, String> {
        clock().read(text).map(|t| Timestamp::from_millisecond(t).expect("time").to_string())
    }

    #[test]
    fn times_are_read_in_the_zone_of_this_machine() {
        for (text, is) in [
            ("2026-11-01", "2026-10-31T23:00:00Z"),
            ("2026-10-01", "2026-09-30T22:00:00Z"),
            ("2026-11-01T10:00", "2026-11-01T09:00:00Z"),
            ("2026-11-01 10:00:30", "2026-11-01T09:00:30Z"),
            ("2026-11-01T10:00Z", "2026-11-01T10:00:00Z"),
            ("2026-11-01T10:00-05:00", "2026-11-01T15:00:00Z"),
            ("today", "2026-11-15T23:00:00Z"),
            (" yesterday ", "2026-11-14T23:00:00Z"),
            ("30m", "2026-11-16T12:35:00Z"),
            ("12h", "2026-11-16T01:05:00Z"),
            ("7d", "2026-11-09T13:05:00Z"),
            // Over the change of the clocks: the same time of the day.
            ("4w", "2026-10-19T12:05:00Z"),
            ("0d", "2026-11-16T13:05:00Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(is), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_told_so() {
        for text in [
            "",
            "soon",
            "d",
            "7",
            "7x",
            "-7d",
            "7.5d",
            "2026-13-01",
            "2026-02-30",
            "2026-11",
            "10:00",
            "2026-11-01T25:00",
            "99999999999999999999d",
            "9999999999d",
            "７d",
            "日",
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains("is no time: write 2026-11-01"), "{told}");
        }
    }

    #[test]
    fn a_range_has_something_in_it() {
        let which = |since: &str, until: &str| WhichArgs {
            since: Some(since.to_owned()),
            until: Some(until.to_owned()),
            ..WhichArgs::default()
        };
        assert!(clock().range(&which("yesterday", "today")).is_ok());
        assert!(clock().range(&which("today", "yesterday")).is_err());
        let told = clock().range(&which("today", "never")).expect_err("never").error.to_string();
        assert!(told.starts_with("--until: `never` is no time"), "{told}");
    }

    #[test]
    fn times_are_as_short_as_they_can_be() {
        let short = |text: &str| clock().short(clock().read(text).expect("time"));
        assert_eq!(short("2026-11-16T00:00"), "00:00");
        assert_eq!(short("2026-11-15T23:59"), "Nov 15 23:59");
        assert_eq!(short("2026-01-02T03:04"), "Jan 2 03:04");
        assert_eq!(short("2025-12-31T23:59"), "2025-12-31");
        assert_eq!(short("2027-01-01"), "2027-01-01");
        assert_eq!(clock().short(i64::MAX), "-");
        assert_eq!(clock().day_of(0), "1970-01-01");
        assert_eq!(clock().day_of(clock().now()), "Nov 16");
        assert_eq!(clock().short_of("2026-11-16T07:00:00.123Z").as_deref(), Some("08:00"));
        assert_eq!(clock().short_of("then"), None);
    }
}
