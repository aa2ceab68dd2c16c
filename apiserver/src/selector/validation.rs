//! What keys and values of labels may look like, with the words of a real server about those that do not.

use super::SelectorError;

/// The bound of a name and of a value.
const MAX_NAME: usize = 63;
/// The bound of a DNS name.
const MAX_PREFIX: usize = 253;

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                      and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                      validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                     '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

pub(super) fn check_key(key: &str) -> Result<(), SelectorError> {
    let problems = problems_of_key(key);
    if problems.is_empty() {
        return Ok(());
    }
    // A selector in a query has no path, which real servers print as nil.
    let problems = problems.join("; ");
    Err(SelectorError(format!("<nil>: Invalid value: {key:?}: {problems}")))
}

/// What is wrong with the value, which is the `at`-th of its requirement.
pub(super) fn problem_of_value(key: &str, at: usize, value: &str) -> Option<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_NAME {
        problems.push(too_long(MAX_NAME));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(VALUE.to_owned());
    }
    let problems = (!problems.is_empty()).then(|| problems.join("; "))?;
    Some(format!("values[{at}][{key}]: Invalid value: {value:?}: {problems}"))
}

fn problems_of_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > MAX_PREFIX {
                    problems.push(format!("prefix part {}", too_long(MAX_PREFIX)));
                }
                if !prefix.split('.').all(is_dns_label) {
                    problems.push(format!("prefix part {PREFIX}"));
                }
            }
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
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

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_dns_label(label: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
        && bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
}
