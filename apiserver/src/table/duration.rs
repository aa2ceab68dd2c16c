//! Durations in at most two units, as kubectl shows them.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

pub(super) fn between(start: Timestamp, end: Timestamp) -> String {
    of_seconds(end.duration_since(start).as_secs())
}

/// Formats a duration. The larger it is, the fewer small units it shows.
pub(super) fn of_seconds(seconds: i64) -> String {
    match seconds {
        // Clocks may differ by a second, but not by two.
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds, (MINUTE, 'm'), (1, 's')),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds, (DAY, 'd'), (HOUR, 'h')),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds, (YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn pair(seconds: i64, large: (i64, char), small: (i64, char)) -> String {
    let (whole, rest) = (seconds / large.0, seconds % large.0 / small.0);
    let large = large.1;
    if rest == 0 { format!("{whole}{large}") } else { format!("{whole}{large}{rest}{}", small.1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_has_at_most_two_units() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
            (i64::MAX, "292471208677y"),
            (i64::MIN, "<invalid>"),
        ] {
            assert_eq!(of_seconds(seconds), text, "{seconds}");
        }
    }
}
