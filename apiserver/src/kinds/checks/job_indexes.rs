//! The indexes of a job: whether its pods have one each, and the lists of indexes.

use serde_json::{Value, json};

use super::member;

pub(super) fn is_indexed(spec: &Value) -> bool {
    *member(spec, "completionMode") == "Indexed"
}

/// Counts the indexes of a list such as `1,3-5`. They must increase, and be below the number of
/// completions.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut last = None;
    let mut total = 0;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = read_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// Reads the first and the last index of an interval, such as `1` or `3-5`.
pub(super) fn read_interval(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = interval.split('-').collect();
    let read = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {}", json!(text))),
        Ok(index) if index >= completions => Err(format!("too large index: {}", json!(text))),
        Ok(index) => Ok(index),
    };
    match *parts {
        [index] => read(index).map(|index| (index, index)),
        [first, last] => {
            let (first, last) = (read(first)?, read(last)?);
            if first < last {
                return Ok((first, last));
            }
            Err(format!("non-increasing order, previous: {first}, current: {last}"))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two \
             parts separated by '-'",
            json!(interval)
        )),
    }
}
