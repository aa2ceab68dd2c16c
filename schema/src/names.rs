//! The grammar of names, with the texts of apimachinery.

use std::borrow::Cow;

/// The reasons why a text is invalid; empty if it is valid.
pub type Problems = Vec<Cow<'static, str>>;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const ANY_SUBDOMAIN: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for \
    validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
    end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
    for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const RFC_1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters \
    or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Checks a label of a DNS name, such as `my-name`.
///
/// # Examples
///
/// ```
/// use homeostat_schema::names::dns_label;
///
/// assert!(dns_label("my-name").is_empty());
/// assert_eq!(dns_label("My name").len(), 1);
/// ```
pub fn dns_label(name: &str) -> Problems {
    let long = problem_if(name.len() > 63, "must be no more than 63 characters");
    let detail = if is_subdomain(name) { "must not contain dots" } else { LABEL };
    problems([long, problem_if(!is_label(name), detail)])
}

/// Checks a label of a DNS name that starts with a letter.
pub fn rfc_1035_label(name: &str) -> Problems {
    let long = problem_if(name.len() > 63, "must be no more than 63 characters");
    let starts_with_letter = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    problems([long, problem_if(!is_label(name) || !starts_with_letter, RFC_1035_LABEL)])
}

/// Checks a DNS name, such as `example.com`.
pub fn dns_subdomain(name: &str) -> Problems {
    let long = problem_if(name.len() > 253, "must be no more than 253 characters");
    problems([long, problem_if(!is_subdomain(name), SUBDOMAIN)])
}

/// Checks a DNS name with letters of any case, such as `Example.com`.
pub fn any_subdomain(name: &str) -> Problems {
    let long = problem_if(name.len() > 253, "must be no more than 253 characters");
    let wrong = !is_subdomain(&name.to_ascii_lowercase());
    problems([long, problem_if(wrong, ANY_SUBDOMAIN)])
}

/// Checks the key of a label or an annotation, or a finalizer: `name` or `example.com/name`.
pub fn qualified(key: &str) -> Problems {
    let mut found = Problems::new();
    let name = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            let domain =
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {NAME} {domain}").into()];
        }
        Some(("", name)) => {
            found.push("prefix part must be non-empty".into());
            name
        }
        Some((prefix, name)) => {
            let wrong = dns_subdomain(prefix).into_iter();
            found.extend(wrong.map(|detail| format!("prefix part {detail}").into()));
            name
        }
        None => key,
    };
    if name.is_empty() {
        found.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        found.push("name part must be no more than 63 bytes".into());
    }
    if !is_name(name) {
        found.push(format!("name part {NAME}").into());
    }
    found
}

/// Checks the value of a label.
pub fn label_value(value: &str) -> Problems {
    let long = problem_if(value.len() > 63, "must be no more than 63 bytes");
    problems([long, problem_if(!value.is_empty() && !is_name(value), LABEL_VALUE)])
}

fn problems<const N: usize>(found: [Option<Cow<'static, str>>; N]) -> Problems {
    found.into_iter().flatten().collect()
}

fn problem_if(wrong: bool, detail: &'static str) -> Option<Cow<'static, str>> {
    wrong.then_some(Cow::Borrowed(detail))
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_label(part: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.bytes().all(inner) && edge(text.bytes().next()) && edge(text.bytes().last())
}
