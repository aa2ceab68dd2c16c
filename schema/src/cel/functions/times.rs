//! The functions of timestamps and durations.

use jiff::Zoned;
use jiff::tz::{Offset, TimeZone};

use super::Result;
use crate::cel::error::EvalError;
use crate::cel::value::Value;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    match arguments {
        [Value::Timestamp(time)] => part_of(name, &time.to_zoned(TimeZone::UTC)).map(Ok),
        [Value::Timestamp(time), Value::String(zone)] => match zone_of(zone) {
            Some(zone) => part_of(name, &time.to_zoned(zone)).map(Ok),
            None => Some(Err(EvalError::new(format!("unknown time zone {}", &**zone)))),
        },
        [Value::Duration(nanos)] => {
            let part = match name {
                "getHours" => nanos / 3_600_000_000_000,
                "getMinutes" => nanos / 60_000_000_000,
                "getSeconds" => nanos / 1_000_000_000,
                "getMilliseconds" => nanos / 1_000_000,
                _ => return None,
            };
            Some(Ok(Value::Int(part)))
        }
        _ => None,
    }
}

/// Reads the name of a time zone, or an offset such as `02:00` and `-08:30`.
fn zone_of(name: &str) -> Option<TimeZone> {
    let Some((hours, minutes)) = name.split_once(':') else {
        return if matches!(name, "" | "Local") {
            Some(TimeZone::UTC)
        } else {
            TimeZone::get(name).ok()
        };
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let sign = if name.starts_with('-') { -1 } else { 1 };
    let seconds = hours.checked_mul(3600)?.checked_add(sign * minutes.checked_mul(60)?)?;
    Some(TimeZone::fixed(Offset::from_seconds(seconds).ok()?))
}

fn part_of<'a>(name: &str, time: &Zoned) -> Option<Value<'a>> {
    let part: i64 = match name {
        "getFullYear" => time.year().into(),
        "getMonth" => i64::from(time.month()) - 1,
        "getDayOfYear" => i64::from(time.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(time.day()) - 1,
        "getDate" => time.day().into(),
        "getDayOfWeek" => time.weekday().to_sunday_zero_offset().into(),
        "getHours" => time.hour().into(),
        "getMinutes" => time.minute().into(),
        "getSeconds" => time.second().into(),
        "getMilliseconds" => time.millisecond().into(),
        _ => return None,
    };
    Some(Value::Int(part))
}
