//! Removes the entries of `metadata.managedFields` from the text of a watch event before it is
//! parsed.
//!
//! They are 42 % of the pod in `tests/fixtures`. [`Skip`](super::skip::Skip) keeps them from being
//! decoded, but the deserializer still reads them, for which it needs about twice the instructions
//! of a [`Scanner`]. The array stays in the text, without elements, so that the rest of the text is
//! as valid as before, and `Skip` hides the member.
//!
//! Only `metadata` and what precedes it is scanned, which is about 1 KB besides the entries: API
//! servers write the metadata before the spec. The entries are checked to be valid JSON.

use super::scanner::Scanner;

/// The path of the array in an object.
pub(super) const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Returns the text of a watch event without the entries of `metadata.managedFields`, or `None` if
/// it has none or is not valid JSON up to their end.
///
/// The result is in `buffer`, whose memory serves the next event.
pub(super) fn without_managed_fields<'a>(frame: &str, buffer: &'a mut String) -> Option<&'a str> {
    let mut scanner = Scanner::new(frame);
    scanner.enter("object")?;
    for name in MANAGED_FIELDS {
        scanner.enter(name)?;
    }
    let mut array = scanner.array()?;
    array.start += 1;
    array.end -= 1;
    buffer.clear();
    buffer.push_str(&frame[..array.start]);
    buffer.push_str(&frame[array.end..]);
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(frame: &str) -> Option<String> {
        without_managed_fields(frame, &mut String::new()).map(str::to_owned)
    }

    #[test]
    fn only_the_entries_of_managed_fields_are_removed() {
        let frame = |entries: &str| {
            format!(
                r#"{{"type":"ADDED","object":{{"metadata":{{"labels":{{"managedFields":"[1]"}},
                "managedFields":[{entries}] , "name":"a"}},"managedFields":[2]}}}}"#
            )
        };
        let entries = r#"{"manager":"m]","fieldsV1":{"k:{\"name\":\"]\"}":{".":{}}}},{}"#;
        assert_eq!(shortened(&frame(entries)), Some(frame("")));
        assert_eq!(shortened(&frame("")), Some(frame("")));
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        for frame in [
            r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#,
            r#"{"type":"ADDED","object":{"metadata":{"managedFields":null}}}"#,
            r#"{"type":"ADDED","object":{"metadata":{"managedFields":{}}}}"#,
            r#"{"type":"ADDED","object":{"metadata":{"managedFields":[1,]}}}"#,
            r#"{"type":"ADDED","object":{"metadata":{"managedFields":[1"#,
            r#"{"type":"ADDED","object":{"spec":{"metadata":{"managedFields":[1]}}}}"#,
            r#"{"type":"ADDED","metadata":{"managedFields":[1]}}"#,
            "<html>",
            "",
        ] {
            assert_eq!(shortened(frame), None, "{frame}");
        }
    }
}
