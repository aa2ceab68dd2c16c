//! Checks of what a pod shares with its node: namespaces, ports, addresses, processes, settings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Violation;
use super::pod::{PodView, named, plural, sorted};
use crate::fields::text;

/// Settings of the kernel that are safe, with the minor version that permits each.
const SYSCTLS: [(&str, i64); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
    ("net.ipv4.tcp_notsent_lowat", 37),
];

pub(super) fn namespaces(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let is_set = |name: &&str| pod.spec[*name] == true;
    let set = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(is_set);
    let set: Vec<String> = set.map(|name| format!("{name}=true")).collect();
    let detail = set.join(", ");
    (!set.is_empty()).then_some(Violation { reason: "host namespaces", detail })
}

pub(super) fn ports(pod: PodView<'_>, _: i64) -> Option<Violation> {
    // Sorted as texts.
    let mut used = BTreeSet::new();
    let bad = pod.names_of(|container| {
        let ports = container["ports"].as_array().into_iter().flatten();
        let ports = ports.filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0);
        let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
        let is_bad = !ports.is_empty();
        used.extend(ports);
        is_bad
    });
    let ports: Vec<&str> = used.iter().map(String::as_str).collect();
    let detail = format!(
        "{} {} {} {}",
        named("container", &bad),
        plural(bad.len(), "uses", "use"),
        plural(ports.len(), "hostPort", "hostPorts"),
        ports.join(", ")
    );
    (!bad.is_empty()).then_some(Violation { reason: "hostPort", detail })
}

pub(super) fn probes(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let mut hosts = BTreeSet::new();
    let bad = pod.names_of(|container| {
        let lifecycle = &container["lifecycle"];
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"];
        let handlers = probes.iter().map(|name| &container[*name]);
        let handlers = handlers.chain([&lifecycle["postStart"], &lifecycle["preStop"]]);
        let called: Vec<&str> = handlers.flat_map(hosts_of).collect();
        let is_bad = !called.is_empty();
        hosts.extend(called);
        is_bad
    });
    let bad: Vec<&str> = bad.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let detail = format!(
        "{} {} {} {}",
        named("container", &bad),
        plural(bad.len(), "uses", "use"),
        plural(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts"),
        sorted(&hosts)
    );
    (!bad.is_empty()).then_some(Violation { reason: "probe or lifecycle host", detail })
}

fn hosts_of(handler: &Value) -> impl Iterator<Item = &str> {
    let hosts = ["httpGet", "tcpSocket"].map(|way| text(&handler[way], "host"));
    hosts.into_iter().filter(|host| !host.is_empty())
}

pub(super) fn sysctls(pod: PodView<'_>, minor: i64) -> Option<Violation> {
    let is_safe =
        |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && *since <= minor);
    let set = pod.spec["securityContext"]["sysctls"].as_array().into_iter().flatten();
    let set = set.map(|sysctl| text(sysctl, "name")).filter(|name| !is_safe(name));
    let bad: Vec<&str> = set.collect();
    let detail = bad.join(", ");
    (!bad.is_empty()).then_some(Violation { reason: "forbidden sysctls", detail })
}

pub(super) fn windows_process(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let setters = pod.setters("windowsOptions", |options| options["hostProcess"] == true).text()?;
    let detail = format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation { reason: "hostProcess", detail })
}
