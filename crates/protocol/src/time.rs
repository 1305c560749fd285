//! Moments: RFC 3339 in UTC on the wire, nanoseconds inside (§4).

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

use crate::error::{ErrorCode, Refusal};

const NANOS_PER_MILLI: i128 = 1_000_000;
/// 0000-01-01T00:00:00Z, the first moment that RFC 3339 can write.
const MIN_NANOS: i128 = -62_167_219_200 * 1_000_000_000;
/// The last nanosecond of the year 9999.
const MAX_NANOS: i128 = 253_402_300_800 * 1_000_000_000 - 1;

/// A moment in UTC, kept as nanoseconds since 1970 and always within the years 0000 to 9999.
///
/// `Display` and serde write `2026-11-29T20:15:30.123Z`: three fraction digits, rounded down.
/// Arithmetic stops at the two ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i128);

/// The text is no RFC 3339 time in UTC with upper-case `T` and `Z` and 0 to 9 fraction digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("not an RFC 3339 time in UTC, such as 2026-11-29T20:15:30.123Z")]
pub struct TimeError;

impl From<TimeError> for Refusal {
    fn from(error: TimeError) -> Self {
        Refusal::new(ErrorCode::MemberInvalid, error.to_string())
    }
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Self = Self(0);
    /// The latest moment there is, the end of the year 9999.
    pub const MAX: Self = Self(MAX_NANOS);

    /// Reads the form of §4. A leap second `23:59:60` is read as `23:59:59.999`.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let (date, clock) = text.split_once('T').ok_or(TimeError)?;
        let clock = clock.strip_suffix('Z').ok_or(TimeError)?;
        let (clock, fraction) = match clock.split_once('.') {
            Some((clock, digits)) => (clock, fraction_nanos(digits)?),
            None => (clock, 0),
        };
        let [year, month, day] = fields(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = fields(clock, ':', [2, 2, 2])?;
        let (second, fraction) = match (hour, minute, second) {
            (23, 59, 60) => (59, 999_000_000),
            _ => (second, fraction),
        };
        calendar(year, [month, day, hour, minute, second], fraction).ok_or(TimeError)
    }

    /// From milliseconds since 1970.
    pub fn from_unix_millis(millis: i64) -> Self {
        Self::from_unix_nanos(i128::from(millis) * NANOS_PER_MILLI)
    }

    /// From nanoseconds since 1970.
    pub fn from_unix_nanos(nanos: i128) -> Self {
        Self(nanos.clamp(MIN_NANOS, MAX_NANOS))
    }

    /// From whole seconds since 1970, as RFC 9421 counts.
    pub fn from_unix_secs(secs: i64) -> Self {
        Self::from_unix_nanos(i128::from(secs) * 1_000 * NANOS_PER_MILLI)
    }

    /// Milliseconds since 1970, rounded down.
    pub fn unix_millis(self) -> i64 {
        // The range of the type makes every value fit.
        i64::try_from(self.0.div_euclid(NANOS_PER_MILLI)).unwrap_or(i64::MAX)
    }

    /// Nanoseconds since 1970.
    pub fn unix_nanos(self) -> i128 {
        self.0
    }

    /// Milliseconds from `earlier` to `self`, rounded down; negative when `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> i64 {
        i64::try_from((self.0 - earlier.0).div_euclid(NANOS_PER_MILLI)).unwrap_or(i64::MAX)
    }
}

fn calendar(year: u32, fields: [u32; 5], nanos: u32) -> Option<Timestamp> {
    let [month, day, hour, minute, second] = fields.map(u8::try_from);
    let month = Month::try_from(month.ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, day.ok()?).ok()?;
    let clock = Time::from_hms_nano(hour.ok()?, minute.ok()?, second.ok()?, nanos).ok()?;
    let moment = PrimitiveDateTime::new(date, clock).assume_utc();
    Some(Timestamp::from_unix_nanos(moment.unix_timestamp_nanos()))
}

/// Digits of the given widths between separators, nothing else.
fn fields(text: &str, separator: char, widths: [usize; 3]) -> Result<[u32; 3], TimeError> {
    let mut parts = text.split(separator);
    let mut values = [0; 3];
    for (value, width) in values.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width).ok_or(TimeError)?;
        *value = digits(part)?;
    }
    if parts.next().is_some() {
        Err(TimeError)
    } else {
        Ok(values)
    }
}

/// At most nine digits, so that the value fits.
fn digits(text: &str) -> Result<u32, TimeError> {
    text.bytes().try_fold(0, |value: u32, byte| match byte {
        b'0'..=b'9' => Ok(value * 10 + u32::from(byte - b'0')),
        _ => Err(TimeError),
    })
}

fn fraction_nanos(text: &str) -> Result<u32, TimeError> {
    let places = u32::try_from(text.len())
        .ok()
        .filter(|places| (1..=9).contains(places));
    let places = places.ok_or(TimeError)?;
    Ok(digits(text)? * 10_u32.pow(9 - places))
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cannot fall back: the range of the type is inside that of the calendar.
        let moment = OffsetDateTime::from_unix_timestamp_nanos(self.0).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (date, clock) = (moment.date(), moment.time());
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            date.year(),
            u8::from(date.month()),
            date.day(),
            clock.hour(),
            clock.minute(),
            clock.second(),
            clock.millisecond()
        )
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Self::parse(text)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        let nanos = i128::try_from(by.as_nanos()).unwrap_or(i128::MAX);
        Self::from_unix_nanos(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        let nanos = i128::try_from(by.as_nanos()).unwrap_or(i128::MAX);
        Self::from_unix_nanos(self.0.saturating_sub(nanos))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_second_is_the_end_of_its_minute() {
        let leap = Timestamp::parse("2016-12-31T23:59:60.5Z").unwrap();
        assert_eq!(leap.to_string(), "2016-12-31T23:59:59.999Z");
        assert!(Timestamp::parse("2016-12-31T22:59:60Z").is_err());
    }

    #[test]
    fn fractions_are_exact_and_print_rounded_down() {
        let exact = Timestamp::parse("2026-11-29T20:15:30.123999999Z").unwrap();
        assert_eq!(exact.unix_nanos() % 1_000_000_000, 123_999_999);
        assert_eq!(exact.to_string(), "2026-11-29T20:15:30.123Z");
        let before_epoch = Timestamp::from_unix_nanos(-1);
        assert_eq!(before_epoch.unix_millis(), -1);
        assert_eq!(before_epoch.to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn arithmetic_stops_at_both_ends() {
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        let first = Timestamp::UNIX_EPOCH - Duration::MAX;
        assert_eq!(first.to_string(), "0000-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::parse("0000-01-01T00:00:00Z").unwrap(), first);
    }

    #[test]
    fn differences_round_down() {
        let now = Timestamp::from_unix_millis(10);
        assert_eq!(now.millis_since(Timestamp::from_unix_millis(15)), -5);
        assert_eq!(now.millis_since(Timestamp::from_unix_nanos(9_000_001)), 0);
    }

    #[test]
    fn serde_is_the_wire_text() {
        let moment = Timestamp::from_unix_millis(1_795_983_330_123);
        let text = serde_json::to_string(&moment).unwrap();
        assert_eq!(text, "\"2026-11-29T20:15:30.123Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), moment);
        assert!(serde_json::from_str::<Timestamp>("1795983330").is_err());
    }
}
