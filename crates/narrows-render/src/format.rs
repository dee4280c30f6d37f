//! Numbers, sizes and times in human-readable form.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Formats milliseconds: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0 => "0 s".to_owned(),
        1..=99 => "0.1 s".to_owned(),
        100..=9_999 => format!("{seconds}.{} s", ms / 100 % 10),
        10_000..=59_999 => format!("{seconds} s"),
        60_000..=3_599_999 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        60_000..=3_599_999 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if (seconds / 60).is_multiple_of(60) => format!("{} h", seconds / 3600),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Abbreviates a number: `812`, `4.5k`, `120k`, `1.2M`.
pub fn amount(n: u64) -> String {
    let short = |n: u64, unit: u64, sign: &str| {
        let tenths = n / (unit / 10);
        if tenths < 100 {
            format!("{}.{}{sign}", tenths / 10, tenths % 10)
        } else {
            format!("{}{sign}", tenths / 10)
        }
    };
    match n {
        0..=999 => n.to_string(),
        1000..=999_999 => short(n, 1000, "k"),
        1_000_000..=999_999_999 => short(n, 1_000_000, "M"),
        _ => short(n, 1_000_000_000, "G"),
    }
}

/// Formats a size: `79 bytes`, `12 kB`, `1.5 MB`.
pub fn bytes(n: u64) -> String {
    match n {
        1 => "1 byte".to_owned(),
        0..=999 => format!("{n} bytes"),
        _ => {
            let short = amount(n);
            let (number, unit) = short.split_at(short.len() - 1);
            format!("{number} {unit}B")
        }
    }
}

/// Formats a number with its noun: `1 line`, `12 lines`.
pub fn count(n: usize, singular: &str) -> String {
    if n == 1 { format!("1 {singular}") } else { format!("{n} {singular}s") }
}

/// Formats US dollars: `$0.42`; below ten cents with four decimals.
pub fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.1 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

fn zoned(millis: i64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(millis).ok()?.to_zoned(zone.clone()))
}

/// Formats a time of day: `20:13`.
pub fn clock(millis: i64, zone: &TimeZone) -> Option<String> {
    zoned(millis, zone).map(|t| t.strftime("%H:%M").to_string())
}

/// Formats a period: `2026-01-22 20:13 – 20:41 (28 min)`.
pub fn period(from: i64, to: i64, zone: &TimeZone) -> Option<String> {
    let (first, last) = (zoned(from, zone)?, zoned(to, zone)?);
    let begin = first.strftime("%Y-%m-%d %H:%M").to_string();
    let ms = u64::try_from(to - from).unwrap_or(0);
    if ms < 60_000 {
        return Some(begin);
    }
    let shape = if first.date() == last.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    let long = duration(ms - ms % 60_000);
    Some(format!("{begin} – {} ({long})", last.strftime(shape)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_uses_two_largest_units() {
        let formatted =
            [0, 49, 72, 400, 1_240, 9_999, 10_000, 12_000, 59_999, 60_000, 200_000, 7_500_000];
        let formatted: Vec<String> = formatted.into_iter().map(duration).collect();
        let expected = [
            "0 s",
            "0.1 s",
            "0.1 s",
            "0.4 s",
            "1.2 s",
            "9.9 s",
            "10 s",
            "12 s",
            "59 s",
            "1 min",
            "3 min 20 s",
            "2 h 5 min",
        ];
        assert_eq!(formatted, expected);
    }

    #[test]
    fn amounts_sizes_and_dollars_are_abbreviated() {
        let formatted = [0, 999, 1000, 4_560, 120_400, 999_999, 1_234_567, 5_000_000_000];
        let formatted: Vec<String> = formatted.into_iter().map(amount).collect();
        assert_eq!(formatted, ["0", "999", "1.0k", "4.5k", "120k", "999k", "1.2M", "5.0G"]);
        assert_eq!(bytes(79), "79 bytes");
        assert_eq!(bytes(12_345), "12 kB");
        assert_eq!(bytes(1_500_000), "1.5 MB");
        assert_eq!(dollars(0.0), "$0.00");
        assert_eq!(dollars(0.0123), "$0.0123");
        assert_eq!(dollars(12.3), "$12.30");
    }

    #[test]
    fn period_omits_the_date_of_a_same_day_end() {
        let utc = TimeZone::UTC;
        let at = 1_769_112_810_917;
        assert_eq!(clock(at, &utc).unwrap(), "20:13");
        assert_eq!(period(at, at + 1000, &utc).unwrap(), "2026-01-22 20:13");
        let later = at + 28 * 60_000 + 5_000;
        assert_eq!(period(at, later, &utc).unwrap(), "2026-01-22 20:13 – 20:41 (28 min)");
        let next = at + 86_400_000;
        assert_eq!(period(at, next, &utc).unwrap(), "2026-01-22 20:13 – 2026-01-23 20:13 (24 h)");
    }
}
