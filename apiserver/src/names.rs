//! What names may look like.

use std::borrow::Cow;

/// Why a text is no name of some form; empty if it is one.
pub(crate) type Reasons = Vec<Cow<'static, str>>;
/// A form that names have.
pub(crate) type Judge = fn(&str) -> Reasons;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const ANY_SUBDOMAIN: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start \
    and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const WORD: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
    or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

fn reasons<const N: usize>(found: [Option<Cow<'static, str>>; N]) -> Reasons {
    found.into_iter().flatten().collect()
}

fn when(wrong: bool, why: &'static str) -> Option<Cow<'static, str>> {
    wrong.then_some(Cow::Borrowed(why))
}

/// `my-name`
pub(crate) fn dns_label(name: &str) -> Reasons {
    let long = when(name.len() > 63, "must be no more than 63 characters");
    reasons([long, when(!is_label(name), LABEL)])
}

/// `my-name`, where others take names with dots.
pub(crate) fn dns_label_without_dots(name: &str) -> Reasons {
    let dots = when(name.contains('.'), "must not contain dots");
    let long = when(name.len() > 63, "must be no more than 63 characters");
    let wrong = !name.split('.').all(is_label);
    reasons([dots, long, when(wrong, LABEL)])
}

/// `example.com`
pub(crate) fn dns_subdomain(name: &str) -> Reasons {
    let long = when(name.len() > 253, "must be no more than 253 characters");
    reasons([long, when(!is_subdomain(name), SUBDOMAIN)])
}

/// `Example.com`
pub(crate) fn any_subdomain(name: &str) -> Reasons {
    let long = when(name.len() > 253, "must be no more than 253 characters");
    let wrong = !is_subdomain(&name.to_ascii_lowercase());
    reasons([long, when(wrong, ANY_SUBDOMAIN)])
}

/// A cron job's name leaves room for what is appended for each of its jobs.
pub(crate) fn cron_job(name: &str) -> Reasons {
    let mut found = dns_subdomain(name);
    found.extend(when(name.len() > 52, "must be no more than 52 characters"));
    found
}

/// The key of a label or an annotation, a finalizer: `name` or `example.com/name`.
pub(crate) fn qualified(key: &str) -> Reasons {
    let mut found = Reasons::new();
    let name = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            let domain =
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {WORD} {domain}").into()];
        }
        Some(("", name)) => {
            found.push("prefix part must be non-empty".into());
            name
        }
        Some((prefix, name)) => {
            let wrong = dns_subdomain(prefix).into_iter();
            found.extend(wrong.map(|why| format!("prefix part {why}").into()));
            name
        }
        None => key,
    };
    if name.is_empty() {
        found.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        found.push("name part must be no more than 63 bytes".into());
    }
    if !is_word(name) {
        found.push(format!("name part {WORD}").into());
    }
    found
}

/// The same, in lower case throughout: an annotation's key is not told from another by its case.
pub(crate) fn annotation_key(key: &str) -> Reasons {
    qualified(&key.to_lowercase())
}

/// The value of a label.
pub(crate) fn label_value(value: &str) -> Reasons {
    let long = when(value.len() > 63, "must be no more than 63 bytes");
    reasons([long, when(!value.is_empty() && !is_word(value), LABEL_VALUE)])
}

/// A key in a config map or a secret, which becomes the name of a file.
pub(crate) fn config_key(key: &str) -> Reasons {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let wrong = key.is_empty() || !key.bytes().all(plain);
    let path = match key {
        "." => Some(Cow::Borrowed("must not be '.'")),
        ".." => Some(Cow::Borrowed("must not be '..'")),
        longer if longer.starts_with("..") => Some(Cow::Borrowed("must not start with '..'")),
        _ => None,
    };
    let long = when(key.len() > 253, "must be no more than 253 characters");
    reasons([long, when(wrong, CONFIG_KEY), path])
}

/// The name of a variable in a process' environment.
pub(crate) fn environment(name: &str) -> Reasons {
    let wrong = !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    reasons([when(wrong, why)])
}

/// The name of a port: `http`
pub(crate) fn port(name: &str) -> Reasons {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    reasons([
        when(name.len() > 15, "must be no more than 15 characters"),
        when(
            !name.bytes().all(plain),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        when(
            !name.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        when(name.contains("--"), "must not contain consecutive hyphens"),
        when(name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ])
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
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
        assert_eq!(dns_subdomain("a.b-c"), Reasons::new());
        assert!(dns_subdomain("Bad_Name")[0].contains("subdomain"));
        assert_eq!(dns_label_without_dots("a.b"), ["must not contain dots"]);
        assert_eq!(qualified("example.com/finalizer"), Reasons::new());
        assert!(qualified("bad finalizer")[0].starts_with("name part must consist"));
        assert_eq!(qualified("x/")[0], "name part must be non-empty");
        assert_eq!(qualified("/x"), ["prefix part must be non-empty"]);
        assert_eq!(label_value(""), Reasons::new());
        assert_eq!(label_value("-a").len(), 1);
        assert_eq!(config_key(".."), ["must not be '..'"]);
        assert_eq!(port("http"), Reasons::new());
        assert_eq!(port("A").len(), 2);
        assert_eq!(environment("a=b").len(), 1);
    }
}
