//! Checks of label keys and values, with the API server's texts.
//!
//! The rules are apimachinery's `validation.IsQualifiedName`, `IsDNS1123Subdomain` and
//! `IsValidLabelValue`. A function returns every problem of its input, because upstream reports all
//! of them at once.

use crate::go_quote;

/// The longest name part of a key, and the longest value, in bytes.
const MAX_NAME: usize = 63;
/// The longest DNS prefix of a key, in bytes.
const MAX_PREFIX: usize = 253;

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
    and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
    used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
    '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
    'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Checks a key: a name, with or without a DNS prefix before a slash. `path` is the field that
/// upstream names.
pub(super) fn check_key(path: &str, key: &str) -> Result<(), String> {
    let problems = problems_of_key(key);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{path}: Invalid value: {}: {}", go_quote(key), problems.join("; ")))
}

/// Checks the value at `position` of the requirement for `key`.
pub(super) fn check_value(key: &str, position: usize, value: &str) -> Result<(), String> {
    let mut problems = Vec::new();
    if value.len() > MAX_NAME {
        problems.push(too_long(MAX_NAME));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(VALUE.to_owned());
    }
    if problems.is_empty() {
        return Ok(());
    }
    let (shown, problems) = (go_quote(value), problems.join("; "));
    Err(format!("values[{position}][{key}]: Invalid value: {shown}: {problems}"))
}

/// Returns the problems of a key in upstream's order: the prefix first, then the name.
fn problems_of_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            problems.extend(problems_of_prefix(prefix));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_NAME {
        problems.push(format!("name part {}", too_long(MAX_NAME)));
    }
    if !is_name(name) {
        problems.push(format!("name part {NAME}"));
    }
    problems
}

/// Returns the problems of the DNS prefix. An empty prefix has one problem and is not checked
/// further.
fn problems_of_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut problems = Vec::new();
    if prefix.len() > MAX_PREFIX {
        problems.push(format!("prefix part {}", too_long(MAX_PREFIX)));
    }
    if !prefix.split('.').all(is_dns_label) {
        problems.push(format!("prefix part {PREFIX}"));
    }
    problems
}

/// Returns upstream's text for a part of more than `limit` bytes.
fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// Returns true if the name part has valid characters. The length is checked elsewhere.
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Returns true if the text is a label of a lower-case DNS name, of any length.
fn is_dns_label(label: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
        && bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
}
