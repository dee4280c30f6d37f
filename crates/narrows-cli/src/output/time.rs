//! Times as people write and read them, in the time zone of this machine.

use crate::args::{SessionFilterArgs, TimeSpan, TimeUnit};
use crate::error::CliError;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// A time zone and the current time there. One output uses one clock, so that all of its times are
/// relative to the same moment.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    now: Zoned,
}

impl Clock {
    /// The current time in the time zone of this machine.
    pub(crate) fn local() -> Clock {
        Clock { now: Zoned::now() }
    }

    /// Milliseconds since the Unix epoch.
    pub(crate) fn now(&self) -> i64 {
        self.now.timestamp().as_millisecond()
    }

    /// The values of `--since` and `--until`, in milliseconds since the Unix epoch.
    pub(crate) fn time_range(
        &self,
        filter: &SessionFilterArgs,
    ) -> Result<(Option<i64>, Option<i64>), CliError> {
        let parse = |name: &str, text: &Option<String>| {
            let time = text.as_deref().map(|t| self.parse(t)).transpose();
            time.map_err(|e| CliError::usage(format!("invalid value for --{name}: {e}")))
        };
        let range = (parse("since", &filter.since)?, parse("until", &filter.until)?);
        if let (Some(since), Some(until)) = range
            && since >= until
        {
            return Err(CliError::usage("invalid time range: --since must be before --until"));
        }
        Ok(range)
    }

    /// Parses a time, in milliseconds since the Unix epoch. Dates start at midnight in this time zone.
    fn parse(&self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        let time = match text {
            "today" => self.start_of_day(self.now.date()),
            "yesterday" => self.now.date().yesterday().ok().and_then(|d| self.start_of_day(d)),
            _ => self
                .parse_ago(text)
                .or_else(|| self.parse_datetime(text))
                .or_else(|| self.start_of_day(text.parse().ok()?)),
        };
        time.map(Timestamp::as_millisecond).ok_or_else(|| {
            format!(
                "`{text}` is not a time (expected 2026-11-01, 2026-11-01T10:00, today, yesterday, 7d or 12h)"
            )
        })
    }

    fn start_of_day(&self, day: Date) -> Option<Timestamp> {
        Some(day.to_zoned(self.zone()).ok()?.timestamp())
    }

    fn zone(&self) -> TimeZone {
        self.now.time_zone().clone()
    }

    /// Parses `2026-11-01T10:00`, with optional seconds and time zone, and with `T` or a blank.
    fn parse_datetime(&self, text: &str) -> Option<Timestamp> {
        if !text.contains(':') {
            return None;
        }
        let local = |t: DateTime| t.to_zoned(self.zone()).ok().map(|z| z.timestamp());
        text.parse().ok().or_else(|| local(text.parse().ok()?))
    }

    /// Parses `30m`, `12h`, `7d`: a time before now. One day ago is the same local time yesterday.
    fn parse_ago(&self, text: &str) -> Option<Timestamp> {
        let TimeSpan { count, unit } = text.parse().ok()?;
        let span = match unit {
            TimeUnit::Second => Span::new().try_seconds(count),
            TimeUnit::Minute => Span::new().try_minutes(count),
            TimeUnit::Hour => Span::new().try_hours(count),
            TimeUnit::Day => Span::new().try_days(count),
            TimeUnit::Week => Span::new().try_weeks(count),
        };
        Some(self.now.checked_sub(span.ok()?).ok()?.timestamp())
    }

    fn to_zoned(&self, millis: i64) -> Option<Zoned> {
        Some(Timestamp::from_millisecond(millis).ok()?.to_zoned(self.zone()))
    }

    /// Formats a time as short as possible: `14:05`, `Nov 12 14:05`, `2025-11-12`.
    pub(crate) fn format_short(&self, millis: i64) -> String {
        let Some(at) = self.to_zoned(millis) else { return "-".to_owned() };
        let form = if at.date() == self.now.date() {
            "%H:%M"
        } else if at.year() == self.now.year() {
            "%b %-d %H:%M"
        } else {
            "%Y-%m-%d"
        };
        at.strftime(form).to_string()
    }

    /// Formats an RFC 3339 timestamp in the same way.
    pub(crate) fn format_timestamp(&self, timestamp: &str) -> Option<String> {
        let at: Timestamp = timestamp.parse().ok()?;
        Some(self.format_short(at.as_millisecond()))
    }

    /// Formats a day: `Nov 12`, `2025-11-12`.
    pub(crate) fn format_day(&self, millis: i64) -> String {
        let Some(at) = self.to_zoned(millis) else { return "-".to_owned() };
        let form = if at.year() == self.now.year() { "%b %-d" } else { "%Y-%m-%d" };
        at.strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 November 2026, 14:05, three weeks after the end of daylight saving time.
    fn clock() -> Clock {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("zone");
        let now: DateTime = "2026-11-16T14:05".parse().expect("time");
        Clock { now: now.to_zoned(zone).expect("zoned") }
    }

    fn parse(text: &str) -> Result<String, String> {
        clock().parse(text).map(|t| Timestamp::from_millisecond(t).expect("time").to_string())
    }

    #[test]
    fn parse_uses_the_local_time_zone() {
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
            // Across the end of daylight saving time: the same local time.
            ("4w", "2026-10-19T12:05:00Z"),
            ("0d", "2026-11-16T13:05:00Z"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(is), "{text}");
        }
    }

    #[test]
    fn parse_rejects_invalid_times() {
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
            let error = parse(text).expect_err(text);
            assert!(error.contains("is not a time (expected 2026-11-01"), "{error}");
        }
    }

    #[test]
    fn time_range_must_not_be_empty() {
        let filter = |since: &str, until: &str| SessionFilterArgs {
            since: Some(since.to_owned()),
            until: Some(until.to_owned()),
            ..SessionFilterArgs::default()
        };
        assert!(clock().time_range(&filter("yesterday", "today")).is_ok());
        assert!(clock().time_range(&filter("today", "yesterday")).is_err());
        let error = clock().time_range(&filter("today", "never")).expect_err("never").to_string();
        assert!(error.contains("--until: `never` is not a time"), "{error}");
    }

    #[test]
    fn format_short_omits_known_parts() {
        let short = |text: &str| clock().format_short(clock().parse(text).expect("time"));
        assert_eq!(short("2026-11-16T00:00"), "00:00");
        assert_eq!(short("2026-11-15T23:59"), "Nov 15 23:59");
        assert_eq!(short("2026-01-02T03:04"), "Jan 2 03:04");
        assert_eq!(short("2025-12-31T23:59"), "2025-12-31");
        assert_eq!(short("2027-01-01"), "2027-01-01");
        assert_eq!(clock().format_short(i64::MAX), "-");
        assert_eq!(clock().format_day(0), "1970-01-01");
        assert_eq!(clock().format_day(clock().now()), "Nov 16");
        assert_eq!(clock().format_timestamp("2026-11-16T07:00:00.123Z").as_deref(), Some("08:00"));
        assert_eq!(clock().format_timestamp("then"), None);
    }
}
