//! Timestamps as sources write them.

use ecow::EcoString;
use serde::{Serialize, Serializer};

/// A timestamp as the source wrote it, checked to be a plain date and time.
#[derive(Debug, Clone)]
pub struct Time {
    text: EcoString,
    millis: i64,
    /// Arrival of its packet by the local clock, in milliseconds since 1970. Never printed.
    arrived: Option<i64>,
}

/// Timestamps are equal if their texts are, whenever their packets arrived.
impl PartialEq for Time {
    fn eq(&self, other: &Time) -> bool {
        self.millis == other.millis && self.text == other.text
    }
}

impl Eq for Time {}

impl Time {
    /// Parses `2026-01-22T19:13:30.917345+00:00` and similar; none if it is no timestamp.
    pub fn parse(text: &str) -> Option<Time> {
        let millis = parse_millis(text.as_bytes())?;
        Some(Time { text: text.into(), millis, arrived: None })
    }

    /// The arrival of a packet, as the time of a message that has none.
    pub fn arrival(millis: i64) -> Time {
        Time { arrived: Some(millis), ..Time::from_millis(millis) }
    }

    /// Adds the arrival of the packet to the time of its message.
    #[must_use]
    pub fn arrived_with(self, packet: Option<&Time>) -> Time {
        Time { arrived: packet.and_then(|p| p.arrived), ..self }
    }

    /// A timestamp from milliseconds since 1970, written as `2026-01-22T19:13:30.917Z`.
    pub fn from_millis(millis: i64) -> Time {
        let (days, rest) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
        let (year, month, day) = civil_from_days(days);
        let (hour, minute, second, ms) =
            (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
        let text = ecow::eco_format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        );
        Time { text, millis, arrived: None }
    }

    /// The text in the source.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Milliseconds since 1970.
    pub fn millis(&self) -> i64 {
        self.millis
    }

    /// Milliseconds since `earlier`; none if the clock stepped back. If only one of the two is from
    /// the source, both are measured by their arrival, as far as it is known.
    pub fn since(&self, earlier: &Time) -> Option<u64> {
        let (end, start) = self.on_same_clock(earlier).unwrap_or((self.millis, earlier.millis));
        u64::try_from(end - start).ok()
    }

    /// Like [`Time::since`], but none if the two are from different clocks.
    pub fn since_on_same_clock(&self, earlier: &Time) -> Option<u64> {
        let (end, start) = self.on_same_clock(earlier)?;
        u64::try_from(end - start).ok()
    }

    /// Both times by the same clock, if there is one.
    fn on_same_clock(&self, earlier: &Time) -> Option<(i64, i64)> {
        if self.is_arrival() || earlier.is_arrival() {
            return self.arrived.zip(earlier.arrived);
        }
        Some((self.millis, earlier.millis))
    }

    /// Whether this is the arrival of a packet, not a time of the source.
    fn is_arrival(&self) -> bool {
        self.arrived == Some(self.millis)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

#[cfg(feature = "stored")]
impl<'de> serde::Deserialize<'de> for Time {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(d)?;
        Time::parse(&text).ok_or_else(|| serde::de::Error::custom("invalid timestamp"))
    }
}

/// Year, month and day from days since 1970. The years of the algorithm start in March, so that the
/// leap day is their last day.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let day_of_cycle = days.rem_euclid(146_097);
    let year =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + cycle * 400 + i64::from(month <= 2), month, day)
}

fn parse_millis(b: &[u8]) -> Option<i64> {
    let num = |from: usize, len: usize| -> Option<i64> {
        let part = b.get(from..from + len)?;
        part.iter().all(u8::is_ascii_digit).then_some(())?;
        std::str::from_utf8(part).ok()?.parse().ok()
    };
    let is = |at: usize, set: &[u8]| b.get(at).is_some_and(|c| set.contains(c));
    let (year, month, day) = (num(0, 4)?, num(5, 2)?, num(8, 2)?);
    let (hour, minute, second) = (num(11, 2)?, num(14, 2)?, num(17, 2)?);
    let shape = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    let range = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !shape || !range || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let mut at = 19;
    let mut ms = 0;
    if is(at, b".") {
        let digits = b[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
        for i in 0..3 {
            ms = ms * 10 + if i < digits { num(at + 1 + i, 1)? } else { 0 };
        }
        at += 1 + digits;
    }
    let offset = match b.get(at) {
        None => 0,
        Some(b'Z' | b'z') if b.len() == at + 1 => 0,
        Some(&sign @ (b'+' | b'-')) => {
            let colon = usize::from(is(at + 3, b":"));
            let minutes = num(at + 1, 2)? * 60 + num(at + 3 + colon, 2)?;
            if b.len() != at + 5 + colon {
                return None;
            }
            if sign == b'-' { -minutes } else { minutes }
        }
        Some(_) => return None,
    };
    let seconds =
        (days_from_civil(year, month, day) * 24 + hour) * 3600 + (minute - offset) * 60 + second;
    Some(seconds * 1000 + ms)
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let cycle = y.div_euclid(400);
    let day_of_cycle = y - cycle * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    cycle * 146_097 + day_of_cycle * 365 + day_of_cycle / 4 - day_of_cycle / 100 + day_of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn parse_accepts_agent_formats() {
        let ms = |t: &str| Time::parse(t).map(|t| t.millis());
        assert_eq!(ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(ms("2026-01-22T00:11:51.712150+00:00"), Some(1_769_040_711_712));
        assert_eq!(ms("2026-01-22T01:11:51.7+01:00"), Some(1_769_040_711_700));
        assert_eq!(ms("2024-02-29 12:00:00"), Some(1_709_208_000_000));
    }

    #[test]
    fn since_on_same_clock_is_none_across_clocks() {
        let timed = |t: &str, arrived: i64| {
            Time::parse(t).expect("a time").arrived_with(Some(&Time::arrival(arrived)))
        };
        let (start, end) =
            (timed("2001-01-01T00:00:00Z", 5_000), timed("2001-01-01T00:00:09Z", 6_000));
        let arrived = Time::arrival(7_000);
        assert_eq!(end.since(&start), Some(9_000));
        assert_eq!(arrived.since(&start), Some(2_000));
        assert_eq!(end.since(&Time::arrival(5_500)), Some(500));
        let stored = Time::parse("1970-01-01T00:00:01Z").expect("a time");
        assert_eq!(arrived.since(&stored), Some(6_000));
        assert_eq!(arrived.since_on_same_clock(&stored), None);
        assert_eq!(end.since_on_same_clock(&start), Some(9_000));
    }

    #[test]
    fn parse_rejects_other_text() {
        for t in [
            "",
            "now",
            "2026-13-01T00:00:00Z",
            "2026-01-22T00:00:00Z /home/me",
            "2026-01-22T00:00:00é",
        ] {
            assert_eq!(Time::parse(t), None, "{t}");
        }
    }
}
