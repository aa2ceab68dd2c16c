//! Options of containers that run on Windows.

use serde_json::{Value, json};

use super::Test::{By, Has};
use super::{Check, check_text, member, pod_containers};
use crate::names;
use crate::status::Cause;

/// The options of a pod or a container (`validateWindowsSecurityContextOptions`).
pub(super) const OPTIONS: &[Check] = &[
    ("gmsaCredentialSpecName", Has(&[("", By(credential_name))])),
    ("gmsaCredentialSpec", Has(&[("", By(credential))])),
    ("runAsUserName", Has(&[("", By(user_name))])),
];

const LARGEST_CREDENTIAL: usize = 64 * 1024;
const LONGEST_DOMAIN: usize = 255;
const LONGEST_NET_BIOS: usize = 15;
const LONGEST_USER: usize = 104;

fn credential_name(_: &Value, name: &Value, at: &str, causes: &mut Vec<Cause>) {
    check_text(name, names::dns_subdomain, at, causes);
}

fn credential(_: &Value, credential: &Value, at: &str, causes: &mut Vec<Cause>) {
    let detail = match credential.as_str().map(str::len) {
        Some(0) => "gmsaCredentialSpec cannot be an empty string",
        Some(length) if length > LARGEST_CREDENTIAL => {
            "gmsaCredentialSpec size must be under 64 KiB"
        }
        _ => return,
    };
    causes.push(Cause::invalid(at, credential, detail));
}

fn user_name(_: &Value, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(name) = value.as_str() else { return };
    let problems = problems_of_user(name);
    let invalid = |problem: &String| Cause::invalid(at, value, &format!("runAsUserName{problem}"));
    causes.extend(problems.iter().map(invalid));
}

/// Returns what is wrong with `DOMAIN\user`, of which the domain may be missing.
fn problems_of_user(name: &str) -> Vec<String> {
    let fatal = match name.split('\\').count() {
        _ if name.is_empty() => " cannot be an empty string",
        _ if name.chars().any(|character| character.is_ascii_control()) => {
            " cannot contain control characters"
        }
        3.. => " cannot contain more than one backslash",
        _ => "",
    };
    if !fatal.is_empty() {
        return vec![fatal.to_owned()];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let found = [
        (
            domain.is_some_and(|domain| domain.len() > LONGEST_DOMAIN),
            "'s Domain length must be under 256 characters",
        ),
        (
            domain.is_some_and(|domain| !is_net_bios(domain) && !is_domain(domain)),
            "'s Domain doesn't match the NetBios nor the DNS format",
        ),
        (user.is_empty(), "'s User cannot be empty"),
        (user.len() > LONGEST_USER, "'s User length must not be longer than 104 characters"),
        (
            !user.is_empty() && user.chars().all(|character| matches!(character, '.' | ' ')),
            "'s User cannot contain only periods or spaces",
        ),
        (
            user.contains(|character| "\"/\\:;|=,+*?<>@[]".contains(character)),
            "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        ),
    ];
    found.iter().filter(|(wrong, _)| *wrong).map(|(_, problem)| (*problem).to_owned()).collect()
}

fn is_net_bios(domain: &str) -> bool {
    let length = domain.chars().count();
    (1..=LONGEST_NET_BIOS).contains(&length)
        && !domain.starts_with('.')
        && !domain.contains(|character| "\\/:*?\"<>|".contains(character))
}

fn is_domain(domain: &str) -> bool {
    domain.split('.').all(|label| names::dns_label(&label.to_lowercase()).is_empty())
}

/// Checks that all or none of the containers are processes of the host
/// (`validateWindowsHostProcessPod`).
pub(super) fn host_processes(_: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let option = |object| {
        let options = member(member(object, "securityContext"), "windowsOptions");
        member(options, "hostProcess").as_bool()
    };
    let of_pod = option(spec);
    let (mut total, mut count) = (0, 0);
    for one in pod_containers::all(spec) {
        total += 1;
        let own = option(one.container);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let detail = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            let at = one.path(at, "securityContext.windowsOptions.hostProcess");
            causes.push(Cause::invalid(at, &json!(own), &detail));
        }
        if own.or(of_pod) == Some(true) {
            count += 1;
        }
    }
    if count == 0 {
        return;
    }
    if count != total {
        let detail = "If pod contains any hostProcess containers then all containers must be \
            HostProcess containers";
        causes.push(Cause::invalid(at, &json!(""), detail));
    }
    if member(spec, "hostNetwork") != true {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        causes.push(Cause::invalid(format!("{at}.hostNetwork"), &json!(false), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_has_a_domain_or_none() {
        for name in ["user", "DOMAIN\\user", "a.example.com\\user", "a b"] {
            assert!(problems_of_user(name).is_empty(), "{name}");
        }
        for name in ["", "a\tb", "a\\b\\c", ".a-\\b", "a\\", "...", "a@b"] {
            assert_eq!(problems_of_user(name).len(), 1, "{name}");
        }
    }
}
