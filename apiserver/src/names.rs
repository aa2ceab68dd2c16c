//! Validation of names.

use std::borrow::Cow;

pub(crate) use homeostat_schema::names::{
    Problems, any_subdomain, dns_label, dns_subdomain, label_value, qualified, rfc_1035_label,
};

/// A check of a name.
pub(crate) type NameCheck = fn(&str) -> Problems;

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
    '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";

fn problems<const N: usize>(found: [Option<Cow<'static, str>>; N]) -> Problems {
    found.into_iter().flatten().collect()
}

fn problem_if(wrong: bool, detail: &'static str) -> Option<Cow<'static, str>> {
    wrong.then_some(Cow::Borrowed(detail))
}

/// `10.0.0.1`
pub(crate) fn ip_address(name: &str) -> Problems {
    let wrong = name.parse::<std::net::IpAddr>().is_err();
    problems([problem_if(wrong, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")])
}

/// A `CronJob` name, which leaves room for the suffix of its jobs' names.
pub(crate) fn cron_job(name: &str) -> Problems {
    let mut found = dns_subdomain(name);
    found.extend(problem_if(name.len() > 52, "must be no more than 52 characters"));
    found
}

/// The key of an annotation. Its case does not matter.
pub(crate) fn annotation_key(key: &str) -> Problems {
    qualified(&key.to_lowercase())
}

/// The key of an entry of a config map or a secret, which becomes a file name.
pub(crate) fn config_key(key: &str) -> Problems {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let wrong = key.is_empty() || !key.bytes().all(plain);
    let path = match key {
        "." => Some(Cow::Borrowed("must not be '.'")),
        ".." => Some(Cow::Borrowed("must not be '..'")),
        longer if longer.starts_with("..") => Some(Cow::Borrowed("must not start with '..'")),
        _ => None,
    };
    let long = problem_if(key.len() > 253, "must be no more than 253 characters");
    problems([long, problem_if(wrong, CONFIG_KEY), path])
}

/// A name that can be part of a path. It may contain colons: `system:node`.
pub(crate) fn path_segment(name: &str) -> Problems {
    match name {
        "." => vec!["may not be '.'".into()],
        ".." => vec!["may not be '..'".into()],
        _ => problems([
            problem_if(name.contains('/'), "may not contain '/'"),
            problem_if(name.contains('%'), "may not contain '%'"),
        ]),
    }
}

/// The name of an environment variable.
pub(crate) fn environment(name: &str) -> Problems {
    let wrong = !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    let detail = "a valid environment variable name must consist only of printable ASCII \
        characters other than '='";
    problems([problem_if(wrong, detail)])
}

/// The start of a DNS name, to which a suffix is added: it may end with a hyphen. As in upstream,
/// the character before that hyphen is not checked.
pub(crate) fn dns_subdomain_prefix(name: &str) -> Problems {
    let mut start = name.strip_suffix('-').unwrap_or_default().chars();
    if start.next_back().is_none() {
        return dns_subdomain(name);
    }
    dns_subdomain(&format!("{}a", start.as_str()))
}

/// A DNS name below `*`, such as `*.example.com`.
pub(crate) fn wildcard_subdomain(name: &str) -> Problems {
    let detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
        subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end \
        with an alphanumeric character (e.g. '*.example.com', regex used for validation is \
        '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let below = name.strip_prefix("*.");
    let is_name = |below: &str| dns_subdomain(below).iter().all(|problem| problem.contains("253"));
    problems([
        problem_if(name.len() > 253, "must be no more than 253 characters"),
        problem_if(!below.is_some_and(is_name), detail),
    ])
}

/// A qualified name with a prefix, such as `example.com/name`.
pub(crate) fn domain_prefixed(key: &str) -> Problems {
    let found = qualified(key);
    let wrong = found.is_empty() && !key.contains('/');
    let detail = "must be a domain-prefixed key (such as \"acme.io/foo\")";
    found.into_iter().chain(problem_if(wrong, detail)).collect()
}

/// The name of a header of HTTP.
pub(crate) fn http_header(name: &str) -> Problems {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
        'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
    problems([problem_if(name.is_empty() || !name.bytes().all(plain), detail)])
}

/// The name of a port, such as `http`.
pub(crate) fn port(name: &str) -> Problems {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    problems([
        problem_if(name.len() > 15, "must be no more than 15 characters"),
        problem_if(
            name.is_empty() || !name.bytes().all(plain),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        problem_if(
            !name.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        problem_if(name.contains("--"), "must not contain consecutive hyphens"),
        problem_if(
            name.starts_with('-') || name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ])
}

/// Returns true if Go prints a character as it is.
pub(crate) fn is_printable(c: char) -> bool {
    let quoted = homeostat_core::go_quote(c.encode_utf8(&mut [0; 4]));
    matches!(c, '"' | '\\') || quoted.strip_prefix('"').is_some_and(|rest| rest.starts_with(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_upstream_does() {
        assert_eq!(dns_subdomain("a.b-c"), Problems::new());
        assert!(dns_subdomain("Bad_Name")[0].contains("subdomain"));
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns_label("A.b").len(), 1);
        assert_eq!(qualified("example.com/finalizer"), Problems::new());
        assert!(qualified("bad finalizer")[0].starts_with("name part must consist"));
        assert_eq!(qualified("x/")[0], "name part must be non-empty");
        assert_eq!(qualified("/x"), ["prefix part must be non-empty"]);
        assert_eq!(label_value(""), Problems::new());
        assert_eq!(label_value("-a").len(), 1);
        assert_eq!(config_key(".."), ["must not be '..'"]);
        assert_eq!(port("http"), Problems::new());
        assert_eq!(port("A").len(), 2);
        assert_eq!(port("").len(), 2);
        assert_eq!(environment("a=b").len(), 1);
        assert_eq!(dns_subdomain_prefix("a-"), Problems::new());
        assert_eq!(dns_subdomain_prefix("-").len(), 1);
        assert_eq!(domain_prefixed("a").len(), 1);
        assert_eq!(domain_prefixed("a.b/c"), Problems::new());
        assert_eq!(http_header("X-A"), Problems::new());
        assert_eq!(http_header("").len(), 1);
    }
}
