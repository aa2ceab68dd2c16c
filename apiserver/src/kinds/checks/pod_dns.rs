//! The DNS configuration of a pod (`validatePodDNSConfig`).

use serde_json::{Value, json};

use super::addresses::address;
use super::{items, member, text};
use crate::status::Cause;

const MOST_SERVERS: usize = 3;
const MOST_SEARCHES: usize = 32;
/// The longest list of search paths, in bytes, with a space between two.
const LONGEST_SEARCHES: usize = 2048;
const LONGEST_NAME: usize = 253;
const NOT_A_DOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

/// Checks the configuration of the pod with this spec.
pub(super) fn config(spec: &Value, config: &Value, at: &str, causes: &mut Vec<Cause>) {
    let servers = items(member(config, "nameservers"));
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            causes.push(Cause::required(at, detail));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            causes.push(Cause::required(format!("{at}.nameservers"), detail));
            return;
        }
    }
    check_servers(servers, &format!("{at}.nameservers"), causes);
    check_searches(items(member(config, "searches")), &format!("{at}.searches"), causes);
    for (place, option) in items(member(config, "options")).iter().enumerate() {
        if text(option, "name").is_empty() {
            causes.push(Cause::required(format!("{at}.options[{place}]"), "must not be empty"));
        }
    }
}

fn check_servers(servers: &[Value], at: &str, causes: &mut Vec<Cause>) {
    if servers.len() > MOST_SERVERS {
        let detail = format!("must not have more than {MOST_SERVERS} nameservers");
        causes.push(Cause::invalid(at, &json!(servers), &detail));
    }
    for (place, server) in servers.iter().enumerate() {
        address(server, &format!("{at}[{place}]"), causes);
    }
}

fn check_searches(searches: &[Value], at: &str, causes: &mut Vec<Cause>) {
    if searches.len() > MOST_SEARCHES {
        let detail = format!("must not have more than {MOST_SEARCHES} search paths");
        causes.push(Cause::invalid(at, &json!(searches), &detail));
    }
    let names = searches.iter().map(|search| search.as_str().unwrap_or_default());
    let length = names.clone().map(|name| name.len() + 1).sum::<usize>().saturating_sub(1);
    if length > LONGEST_SEARCHES {
        let detail = format!(
            "must not have more than {LONGEST_SEARCHES} characters (including spaces) in the \
             search list"
        );
        causes.push(Cause::invalid(at, &json!(searches), &detail));
    }
    for (place, name) in names.enumerate().filter(|(_, name)| *name != ".") {
        let (name, at) = (name.strip_suffix('.').unwrap_or(name), format!("{at}[{place}]"));
        if name.len() > LONGEST_NAME {
            let detail = format!("must be no more than {LONGEST_NAME} characters");
            causes.push(Cause::invalid(&*at, &json!(name), &detail));
        }
        if !name.split('.').all(is_label) {
            causes.push(Cause::invalid(at, &json!(name), NOT_A_DOMAIN));
        }
    }
}

/// Returns true if a text is a part of a domain that may have underscores.
fn is_label(label: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.strip_prefix('_').unwrap_or(label).as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|end| is_plain(*end)))
        && bytes.iter().all(|byte| is_plain(*byte) || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_may_have_underscores_within_and_one_before() {
        for label in ["a", "_a", "a_b", "a-b", "9"] {
            assert!(is_label(label), "{label}");
        }
        for label in ["", "_", "__a", "a_", "-a", "A", "☃"] {
            assert!(!is_label(label), "{label}");
        }
    }
}
