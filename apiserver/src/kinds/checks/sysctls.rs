//! The kernel parameters of a pod.

use serde_json::{Value, json};

use super::{items, member, text};
use crate::status::Cause;

const LONGEST: usize = 253;
const NO_NAME: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Parameters that belong to the namespace of inter-process communication.
const OF_IPC: [&str; 9] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
];

/// Checks the parameters of the pod with this spec (`validateSysctls`).
pub(super) fn check(_: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut known: Vec<&str> = Vec::new();
    let list = items(member(member(spec, "securityContext"), "sysctls"));
    for (place, parameter) in list.iter().enumerate() {
        let name = text(parameter, "name");
        let at = format!("{at}.securityContext.sysctls[{place}].name");
        if name.is_empty() {
            causes.push(Cause::required(&*at, ""));
        } else if !is_name(name) {
            causes.push(Cause::invalid(&*at, &json!(name), NO_NAME));
        } else if known.contains(&name) {
            causes.push(Cause::duplicate(&*at, &json!(name)));
        }
        known.push(name);
        if let Some(member) = host_namespace(name, spec) {
            let detail = format!("may not be specified when '{member}' is true");
            causes.push(Cause::invalid(at, &json!(name), &detail));
        }
    }
}

/// Returns true if a name consists of segments between points and slashes.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(is_plain))
            && bytes.iter().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= LONGEST && name.split(['.', '/']).all(is_segment)
}

/// Returns the member of the spec that makes the pod share the parameter with its host.
fn host_namespace(name: &str, spec: &Value) -> Option<&'static str> {
    let dotted: String = match name.find(['.', '/']).and_then(|at| name.get(at..)) {
        Some(rest) if rest.starts_with('/') => name.chars().map(swap_separators).collect(),
        _ => name.to_owned(),
    };
    let name = dotted.split('*').next().unwrap_or_default();
    let of_ipc = OF_IPC.contains(&name) || name.starts_with("fs.mqueue.");
    let is_set = |key| member(spec, key) == true;
    if name.starts_with("net.") && is_set("hostNetwork") {
        Some("hostNetwork")
    } else if of_ipc && is_set("hostIPC") {
        Some("hostIPC")
    } else {
        None
    }
}

fn swap_separators(character: char) -> char {
    match character {
        '.' => '/',
        '/' => '.',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_belongs_to_a_namespace() {
        let spec = json!({"hostNetwork": true, "hostIPC": true});
        for name in ["net.ipv4.ip_forward", "net/ipv4/conf/eno2.100/rp_filter", "net.*"] {
            assert_eq!(host_namespace(name, &spec), Some("hostNetwork"), "{name}");
        }
        for name in ["kernel.sem", "fs.mqueue.msg_max", "kernel.shm*"] {
            assert_eq!(host_namespace(name, &spec), Some("hostIPC"), "{name}");
        }
        assert_eq!(host_namespace("vm.swappiness", &spec), None);
        assert_eq!(host_namespace("net.a", &json!({})), None);
    }

    #[test]
    fn name_consists_of_segments() {
        for name in ["a", "a.b", "a/b.c_d-e"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a.", "_a", "A", "a..b", "a.b*"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
