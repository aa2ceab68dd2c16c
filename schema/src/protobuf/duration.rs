//! Go's durations as texts: `1h0m0.5s`.

use std::fmt::Write;

const SECOND: u64 = 1_000_000_000;

/// Writes nanoseconds as `time.Duration.String` does.
pub(super) fn show(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let rest = nanos.unsigned_abs();
    if rest == 0 {
        return "0s".to_owned();
    }
    if rest < SECOND {
        let (unit, size) = match rest {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", decimal(rest, size));
    }
    let (minutes, rest) = (rest / (60 * SECOND), rest % (60 * SECOND));
    let mut shown = sign.to_owned();
    if minutes >= 60 {
        let _ = write!(shown, "{}h", minutes / 60);
    }
    if minutes > 0 {
        let _ = write!(shown, "{}m", minutes % 60);
    }
    shown + &decimal(rest, SECOND) + "s"
}

/// Writes `value / size` without trailing zeros.
fn decimal(value: u64, size: u64) -> String {
    let digits = size.ilog10() as usize;
    let shown = format!("{}.{:0digits$}", value / size, value % size);
    if digits == 0 {
        (value / size).to_string()
    } else {
        shown.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// Reads a text as `time.ParseDuration` does; `None` if it is none, or too long.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut nanos = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let size: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        nanos = nanos.checked_add(part(number, size)?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(())?;
    i64::try_from(if negative { -nanos } else { nanos }).ok()
}

/// Returns the nanoseconds of a number of units.
fn part(number: &str, size: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = &fraction[..fraction.len().min(15)];
    let scale = 10_i128.pow(u32::try_from(digits.len()).ok()?);
    let fraction: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(whole * size + fraction * size / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (20_000_000, "20ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (-5_400_500_000_000, "-1h30m0.5s"),
        ] {
            assert_eq!(show(nanos), text);
            assert_eq!(parse(text), Some(nanos));
        }
        for odd in ["", "1", "h", "1x", "1.2.3s", "99999999999999999999h"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
