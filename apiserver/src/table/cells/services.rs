//! Services, and the addresses of load balancers.

use serde_json::{Value, json};

use crate::fields::text;
use crate::table::Subject;
use crate::table::text::unless_empty;

pub(in crate::table) fn cluster_ip(service: &Subject<'_>) -> Value {
    json!(service.list("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or("<none>"))
}

pub(in crate::table) fn external_ip(service: &Subject<'_>) -> Value {
    let own: Vec<&str> =
        service.list("spec.externalIPs").iter().filter_map(Value::as_str).collect();
    json!(match service.text("spec.type") {
        "ClusterIP" | "NodePort" => unless_empty(own.join(","), "<none>"),
        "LoadBalancer" => {
            let mut all = balancer_addresses(service);
            all.extend(own);
            unless_empty(all.join(","), "<pending>")
        }
        "ExternalName" => service.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    })
}

fn balancer_addresses<'a>(service: &'a Subject<'_>) -> Vec<&'a str> {
    let mut addresses: Vec<&str> = service
        .list("status.loadBalancer.ingress")
        .iter()
        .map(|ingress| match text(ingress, "ip") {
            "" => text(ingress, "hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

pub(in crate::table) fn balancer_address(ingress: &Subject<'_>) -> Value {
    json!(balancer_addresses(ingress).join(","))
}

pub(in crate::table) fn ports(service: &Subject<'_>) -> Value {
    let ports: Vec<String> = service
        .list("spec.ports")
        .iter()
        .map(|port| {
            let number = |name: &str| port.get(name).and_then(Value::as_i64).unwrap_or(0);
            let protocol = text(port, "protocol");
            match number("nodePort") {
                0 => format!("{}/{protocol}", number("port")),
                node_port => format!("{}:{node_port}/{protocol}", number("port")),
            }
        })
        .collect();
    json!(unless_empty(ports.join(","), "<none>"))
}
