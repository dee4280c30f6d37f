//! Parsers of option values: sizes, durations, formats.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use narrows::Format;
use std::str::FromStr;

/// Parses the name of an input format; `--help` lists all of them.
pub(super) fn format_parser() -> impl TypedValueParser<Value = Format> {
    let values = Format::ALL.map(|f| PossibleValue::new(f.name()).help(f.description()));
    PossibleValuesParser::new(values).try_map(|name| Format::from_str(&name))
}

/// Parses a number of bytes with a binary unit: `500`, `20M`, `1.5G`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || format!("invalid size `{text}` (expected for example 500M or 20G)");
    let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let upper = text.trim().trim_end_matches(['B', 'b', 'i']).to_uppercase();
    let unit = units.into_iter().find(|(unit, _)| upper.ends_with(unit));
    let (number, shift) =
        unit.map_or((upper.as_str(), 0), |(unit, shift)| (upper.trim_end_matches(unit), shift));
    let number: f64 = number.trim().parse().map_err(|_| bad())?;
    if number < 0.0 || shift > 0 && !(0.0..1e9).contains(&number) {
        return Err(bad());
    }
    #[expect(clippy::cast_sign_loss, reason = "checked above")]
    #[expect(clippy::cast_precision_loss, reason = "a power of two up to 2^40 is exact")]
    Ok((number * (1_u64 << shift) as f64) as u64)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
}

/// A count and a unit: `90s`, `30m`, `12h`, `7d`, `2w`. The unit is kept, because a calendar day is
/// not always 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    pub(crate) count: u32,
    pub(crate) unit: TimeUnit,
}

impl TimeSpan {
    fn seconds(self) -> u64 {
        let unit = match self.unit {
            TimeUnit::Second => 1,
            TimeUnit::Minute => 60,
            TimeUnit::Hour => 3600,
            TimeUnit::Day => 86400,
            TimeUnit::Week => 7 * 86400,
        };
        u64::from(self.count) * unit
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeSpan, String> {
        let bad = || format!("invalid duration `{text}` (expected for example 30m, 12h or 7d)");
        let (at, unit) = text.char_indices().next_back().ok_or_else(bad)?;
        let unit = match unit {
            's' => TimeUnit::Second,
            'm' => TimeUnit::Minute,
            'h' => TimeUnit::Hour,
            'd' => TimeUnit::Day,
            'w' => TimeUnit::Week,
            _ => return Err(bad()),
        };
        let digits = &text[..at];
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        Ok(TimeSpan { count: digits.parse().map_err(|_| bad())?, unit })
    }
}

/// Parses a duration longer than zero, in seconds.
pub(super) fn parse_seconds(text: &str) -> Result<u64, String> {
    match text.parse::<TimeSpan>()?.seconds() {
        0 => Err(format!("invalid duration `{text}` (must be longer than zero)")),
        seconds => Ok(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_size_accepts_binary_units_and_rejects_the_rest() {
        assert_eq!(parse_size("500"), Ok(500));
        assert_eq!(parse_size("20M"), Ok(20 << 20));
        assert_eq!(parse_size("1.5G"), Ok(3 << 29));
        assert_eq!(parse_size(" 2 KiB"), Ok(2048));
        assert_eq!(parse_size("1T"), Ok(1 << 40));
        for text in ["", "G", "-1", "-1M", "1e9G", "20X", "twenty"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parse_seconds_multiplies_by_the_unit() {
        assert_eq!(parse_seconds("90s"), Ok(90));
        assert_eq!(parse_seconds("30m"), Ok(1800));
        assert_eq!(parse_seconds("12h"), Ok(43200));
        assert_eq!(parse_seconds("2w"), Ok(14 * 86400));
        for text in ["", "d", "7", "0d", "-7d", "+7d", "7.5d", "7x", "日", "99999999999d"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }
}
