//! Flags of kube-apiserver that have no effect here: they tune what this server does not have.

use std::collections::BTreeSet;
use std::ffi::OsString;

/// Flags that take no value, unless it follows `=`.
const SWITCHES: [&str; 21] = [
    "aggregator-reject-forwarding-redirect",
    "allow-privileged",
    "audit-log-batch-throttle-enable",
    "audit-log-compress",
    "audit-log-truncate-enabled",
    "audit-webhook-batch-throttle-enable",
    "audit-webhook-truncate-enabled",
    "contention-profiling",
    "disable-http2-serving",
    "enable-aggregator-routing",
    "enable-garbage-collector",
    "enable-logs-handler",
    "enable-priority-and-fairness",
    "log-json-split-stream",
    "log-text-split-stream",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "service-account-lookup",
    "shutdown-send-retry-after",
    "watch-cache",
];

/// Flags with a value.
const VALUES: [&str; 23] = [
    "advertise-address",
    "delete-collection-workers",
    "endpoint-reconciler-type",
    "event-ttl",
    "external-hostname",
    "goaway-chance",
    "http2-max-streams-per-connection",
    "lease-reuse-duration-seconds",
    "livez-grace-period",
    "logging-format",
    "max-connection-bytes-per-sec",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "min-request-timeout",
    "request-timeout",
    "runtime-config",
    "service-cluster-ip-range",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "tracing-config-file",
    "v",
    "vmodule",
];

/// The starts of the names of further flags with a value.
const FAMILIES: [&str; 9] = [
    "audit-",
    "etcd-",
    "kubelet-",
    "log-",
    "peer-",
    "proxy-client-",
    "requestheader-",
    "shutdown-",
    "storage-",
];

/// Takes the flags without an effect out of a command line. Returns the rest, and their names.
pub(crate) fn take(
    arguments: impl IntoIterator<Item = OsString>,
) -> (Vec<OsString>, BTreeSet<String>) {
    let (mut kept, mut names) = (Vec::new(), BTreeSet::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let flag = argument.to_str().and_then(|text| text.strip_prefix("--"));
        let Some(flag) = flag.filter(|flag| is_ignored(name(flag))) else {
            kept.push(argument);
            continue;
        };
        if !flag.contains('=') && !SWITCHES.contains(&flag) {
            arguments.next();
        }
        names.insert(name(flag).to_owned());
    }
    (kept, names)
}

fn name(flag: &str) -> &str {
    flag.split('=').next().unwrap_or(flag)
}

fn is_ignored(name: &str) -> bool {
    SWITCHES.contains(&name)
        || VALUES.contains(&name)
        || FAMILIES.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_without_an_effect_go_with_their_values() {
        let given = "apiserver --etcd-servers http://a --listen 127.0.0.1:0 --allow-privileged \
                     --secure --v=4 --audit-log-path=- --watch-cache=false --max-requests-inflight \
                     800 --with kubelet --enable-priority-and-fairness";
        let (kept, names) = take(given.split_whitespace().map(OsString::from));
        let kept: Vec<_> = kept.iter().filter_map(|argument| argument.to_str()).collect();
        assert_eq!(kept.join(" "), "apiserver --listen 127.0.0.1:0 --secure --with kubelet");
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(
            names.join(" "),
            "allow-privileged audit-log-path enable-priority-and-fairness etcd-servers \
             max-requests-inflight v watch-cache"
        );
    }

    #[test]
    fn flag_that_misses_its_value_takes_nothing() {
        let (kept, names) = take(["--etcd-servers"].map(OsString::from));
        assert_eq!((kept.len(), names.len()), (0, 1));
    }
}
