//! The warnings about the ports of a pod.

use serde_json::Value;

use super::Pod;
use crate::fields::text;
use crate::kinds::checks::{items, member, pod_containers};

impl<'a> Pod<'a> {
    fn ports(&self) -> Vec<(String, &'a Value)> {
        let at = &self.spec_at();
        let of = |one: pod_containers::Placed<'a>| {
            let ports = items(member(one.container, "ports")).iter().enumerate();
            ports.map(move |(place, port)| (one.path(at, &format!("ports[{place}]")), port))
        };
        pod_containers::all(self.spec).flat_map(of).collect()
    }

    /// Checks for ports that cannot be distinguished.
    pub(super) fn check_ports(&mut self) {
        let ports = self.ports();
        for (place, (at, port)) in ports.iter().enumerate() {
            if !text(port, "hostIP").is_empty() && number(port, "hostPort") == 0 {
                self.found.push(format!("{at}: hostIP set without hostPort: {}", shown(port)));
            }
            let clashes = ports[..place].iter().filter_map(|(other_at, other)| {
                Some(format!("{at}: {} port definition with {other_at}", clash(port, other)?))
            });
            self.found.extend(clashes);
        }
    }

    /// Checks for ports of one name.
    pub(super) fn check_port_names(&mut self) {
        let mut known: Vec<(&str, String)> = Vec::new();
        for (at, port) in self.ports() {
            let name = text(port, "name");
            match known.iter().find(|(other, _)| *other == name) {
                _ if name.is_empty() => {}
                Some((_, other)) => self.found.push(format!(
                    "{at}: duplicate port name \"{name}\" with {other}, services and probes that \
                     select ports by name will use {other}"
                )),
                None => known.push((name, at)),
            }
        }
    }
}

fn number(port: &Value, key: &str) -> i64 {
    member(port, key).as_i64().unwrap_or_default()
}

/// Shows a port as Go does.
fn shown(port: &Value) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text(port, "name"),
        number(port, "hostPort"),
        number(port, "containerPort"),
        text(port, "protocol"),
        text(port, "hostIP"),
    )
}

/// Returns the relation of two ports that cannot be distinguished.
fn clash(port: &Value, other: &Value) -> Option<&'static str> {
    let is_same = |key| text(port, key) == text(other, key);
    if number(port, "containerPort") != number(other, "containerPort") || !is_same("protocol") {
        return None;
    }
    let [host, other_host] = [port, other].map(|port| number(port, "hostPort"));
    let [is_any, is_other_any] = [port, other].map(|port| text(port, "hostIP").is_empty());
    if is_same("hostIP") && host == other_host {
        Some("duplicate")
    } else if host == 0 || other_host == 0 {
        Some("overlapping")
    } else if host == other_host && is_any != is_other_any {
        Some("dangerously ambiguous")
    } else {
        None
    }
}
