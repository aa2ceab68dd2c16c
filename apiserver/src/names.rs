//! What names may look like.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Why `name` is no DNS label, if it is none.
pub(crate) fn dns_label(name: &str) -> Option<&'static str> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    (!is_label(name)).then_some(LABEL)
}

/// Why `name` is no DNS label of the older kind, which starts with a letter, if it is none.
pub(crate) fn dns_label_1035(name: &str) -> Option<&'static str> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters");
    }
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase());
    (!starts_well || !is_label(name)).then_some(LABEL_1035)
}

/// Why `name` is no DNS subdomain, if it is none.
pub(crate) fn dns_subdomain(name: &str) -> Option<&'static str> {
    if name.len() > 253 {
        return Some("must be no more than 253 characters");
    }
    (!name.split('.').all(is_label)).then_some(SUBDOMAIN)
}

/// Why `key` cannot be the key of a label, or a finalizer, if it cannot.
pub(crate) fn qualified(key: &str) -> Option<&'static str> {
    let name = match key.split_once('/') {
        None => key,
        Some(("", _)) => return Some("prefix part must be non-empty"),
        Some((prefix, name)) => {
            if !prefix.split('.').all(is_label) {
                return Some(SUBDOMAIN);
            }
            name
        }
    };
    match name.len() {
        0 => Some("name part must be non-empty"),
        64.. => Some("name part must be no more than 63 bytes"),
        _ => (!is_word(name)).then_some(QUALIFIED),
    }
}

/// Why `value` cannot be the value of a label, if it cannot.
pub(crate) fn label_value(value: &str) -> Option<&'static str> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    (!value.is_empty() && !is_word(value)).then_some(LABEL_VALUE)
}

fn is_label(part: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

fn is_word(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.bytes().all(inner) && edge(text.bytes().next()) && edge(text.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_upstream_does() {
        assert_eq!(dns_subdomain("a.b-c"), None);
        assert!(dns_subdomain("Bad_Name").is_some_and(|why| why.contains("subdomain")));
        assert_eq!(qualified("example.com/finalizer"), None);
        assert!(qualified("bad finalizer").is_some());
        assert_eq!(label_value(""), None);
        assert!(label_value("-a").is_some());
    }
}
