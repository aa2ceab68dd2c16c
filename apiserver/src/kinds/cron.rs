//! Schedules of cron jobs, read as the library of the real server does.

use crate::clock::check_go_duration;

/// The parts of a schedule: the smallest and the largest number, and names for the numbers.
const PARTS: [(u64, u64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const NAMED: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Checks a schedule.
///
/// # Errors
///
/// Returns the text of the library's error.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let schedule = without_zone(schedule)?;
    if schedule.starts_with('@') {
        return check_named(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != PARTS.len() {
        let (wanted, found) = (PARTS.len(), fields.len());
        let fields = fields.join(" ");
        return Err(format!("expected exactly {wanted} fields, found {found}: [{fields}]"));
    }
    for (field, part) in fields.iter().zip(PARTS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            check_range(range, part)?;
        }
    }
    Ok(())
}

/// Returns true if a time zone has this name. Without a time zone database, each name is one.
pub(super) fn is_zone(name: &str) -> bool {
    let database = jiff::tz::db();
    let found = database.get(name);
    let is_same = |zone: &jiff::tz::TimeZone| zone.iana_name().is_none_or(|known| known == name);
    found.is_ok_and(|zone| is_same(&zone)) || database.available().next().is_none()
}

/// Removes the time zone at the start of a schedule.
fn without_zone(schedule: &str) -> Result<&str, String> {
    let zoned = ["TZ=", "CRON_TZ="].iter().find_map(|start| schedule.strip_prefix(start));
    let Some((zone, rest)) = zoned.and_then(|zoned| zoned.split_once(' ')) else {
        return Ok(schedule);
    };
    if !matches!(zone, "" | "Local") && !is_zone(zone) {
        return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
    }
    Ok(rest.trim())
}

fn check_named(schedule: &str) -> Result<(), String> {
    if let Some(duration) = schedule.strip_prefix("@every ") {
        let check = check_go_duration(duration);
        return check.map_err(|why| format!("failed to parse duration {schedule}: {why}"));
    }
    if NAMED.contains(&schedule) {
        return Ok(());
    }
    Err(format!("unrecognized descriptor: {schedule}"))
}

fn check_range(range: &str, (least, most, names): (u64, u64, &[&str])) -> Result<(), String> {
    let parts: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match *ends {
        ["*" | "?", ..] => (least, most),
        [one] => {
            let one = read(one, least, names)?;
            (one, one)
        }
        [start, end] => (read(start, least, names)?, read(end, least, names)?),
        _ => {
            read(ends[0], least, names)?;
            return Err(format!("too many hyphens: {range}"));
        }
    };
    let step = match *parts {
        [_] => 1,
        [_, step] => read(step, 0, &[])?,
        _ => return Err(format!("too many slashes: {range}")),
    };
    if parts.len() > 1 && ends.len() == 1 {
        end = most;
    }
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {range}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {range}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

/// Reads a number, or a name that stands for one: the first name for `least`.
fn read(text: &str, least: u64, names: &[&str]) -> Result<u64, String> {
    if let Some(place) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(least + u64::try_from(place).unwrap_or_default());
    }
    let Ok(number) = text.parse::<i64>() else {
        let why = format!("strconv.Atoi: parsing \"{text}\": invalid syntax");
        return Err(format!("failed to parse int from {text}: {why}"));
    };
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::check;

    fn problem(schedule: &str) -> String {
        check(schedule).err().unwrap_or_default()
    }

    #[test]
    fn schedules_are_read() {
        for schedule in [
            "* * * * *",
            "*/5 0-3 1,2 JAN mon",
            "@hourly",
            "@every 1h30m",
            "TZ=UTC ? * * * *",
            "5/10 * * * *",
        ] {
            assert_eq!(problem(schedule), "", "{schedule}");
        }
    }

    #[test]
    fn problems_have_the_texts_of_the_library() {
        assert_eq!(problem("* *"), "expected exactly 5 fields, found 2: [* *]");
        assert_eq!(problem("@odd"), "unrecognized descriptor: @odd");
        assert_eq!(problem("60 * * * *"), "end of range (60) above maximum (59): 60");
        assert_eq!(problem("* * 0 * *"), "beginning of range (0) below minimum (1): 0");
        assert_eq!(problem("5-1 * * * *"), "beginning of range (5) beyond end of range (1): 5-1");
        assert_eq!(problem("1-2-3 * * * *"), "too many hyphens: 1-2-3");
        assert_eq!(problem("1/2/3 * * * *"), "too many slashes: 1/2/3");
        assert_eq!(problem("*/0 * * * *"), "step of range should be a positive number: */0");
        assert!(problem("x * * * *").starts_with("failed to parse int from x: strconv.Atoi"));
        assert!(problem("@every x").ends_with("time: invalid duration \"x\""));
        assert!(problem("@every 1").ends_with("time: missing unit in duration \"1\""));
        assert!(problem("@every 1d").ends_with("time: unknown unit \"d\" in duration \"1d\""));
    }
}
