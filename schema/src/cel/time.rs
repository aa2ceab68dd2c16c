//! Timestamps and durations, which are read as Go reads them.

use std::str::FromStr;

use homeostat_core::parse_go_duration;
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};

/// Reads a time in RFC 3339 by the rules of Go: the hour may have one digit, and the fraction may
/// follow a comma.
pub(super) fn timestamp(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once('T')?;
    let (year, month_and_day) = date.split_once('-')?;
    let (month, day) = month_and_day.split_once('-')?;
    let date = Date::new(digits(year, 4)?, digits(month, 2)?, digits(day, 2)?).ok()?;
    let zone_at = time.find(['Z', '+', '-'])?;
    let (time, zone) = time.split_at(zone_at);
    let (hour, minute_and_rest) = time.split_once(':')?;
    let (minute, rest) = minute_and_rest.split_once(':')?;
    let hour = digits(hour, hour.len().clamp(1, 2))?;
    let (second, fraction) = rest.split_at(rest.find(['.', ',']).unwrap_or(rest.len()));
    let nanos = if fraction.is_empty() { 0 } else { nanos(&fraction[1..])? };
    let time = Time::new(hour, digits(minute, 2)?, digits(second, 2)?, nanos).ok()?;
    let zone = TimeZone::fixed(offset(zone)?);
    let read = date.to_datetime(time).to_zoned(zone).ok()?.timestamp();
    is_in_range(read).then_some(read)
}

/// Returns true if a time is in the years 1 to 9999, which CEL has.
pub(super) fn is_in_range(time: Timestamp) -> bool {
    (-62_135_596_800..=253_402_300_799).contains(&time.as_second())
}

/// Returns the time of a number of seconds after the start of 1970.
pub(super) fn of_seconds(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok().filter(|time| is_in_range(*time))
}

fn digits<T: FromStr>(text: &str, count: usize) -> Option<T> {
    let is_number = text.len() == count && text.bytes().all(|digit| digit.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Reads the digits of a fraction; those after the ninth do not count.
fn nanos(text: &str) -> Option<i32> {
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let kept = &text[..text.len().min(9)];
    if is_number { format!("{kept:0<9}").parse().ok() } else { None }
}

/// Reads `Z`, or an offset such as `+01:00`.
fn offset(text: &str) -> Option<Offset> {
    if text == "Z" {
        return Some(Offset::UTC);
    }
    let (sign, rest) = text.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (digits(hours, 2)?, digits(minutes, 2)?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    let seconds = hours * 3600 + minutes * 60;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

/// Reads a Go duration, such as `1h30m`, in nanoseconds.
pub(super) fn duration(text: &str) -> Option<i64> {
    parse_go_duration(text).ok()
}

/// Writes a duration as CEL does: in seconds.
#[expect(clippy::cast_precision_loss, reason = "upstream rounds, too")]
pub(super) fn show_duration(nanos: i64) -> String {
    // As upstream, a floating-point number, which rounds long durations.
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}
