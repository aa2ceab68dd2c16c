//! Services (`pkg/quota/v1/evaluator/core/services.go`).

use homeostat_quantity::{Quantity, ResourceName, names};

use super::ones;
use crate::charge::Charge;
use crate::object::service::Service;
use crate::scope::ScopeFacts;

const NODE_PORTS: &str = "services.nodeports";
const LOAD_BALANCERS: &str = "services.loadbalancers";
const NAMES: [&str; 4] = ["count/services", "services", NODE_PORTS, LOAD_BALANCERS];

pub(super) fn matching(list: &[ResourceName]) -> Vec<ResourceName> {
    names::intersection(list, &NAMES.map(ResourceName::from_static))
}

/// Computes the charge of a service: itself, its load balancer and its node ports.
///
/// A node port is charged for each port, before it is allocated. A load balancer that needs no node
/// ports is charged for those that are given.
pub fn charge(service: &Service) -> Charge {
    let spec = &service.spec;
    let ports = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (load_balancers, node_ports) = match spec.kind.as_str() {
        "NodePort" => (0, ports(spec.ports.len())),
        "LoadBalancer" if spec.allocate_load_balancer_node_ports == Some(false) => {
            (1, ports(spec.ports.iter().filter(|port| port.node_port != 0).count()))
        }
        "LoadBalancer" => (1, ports(spec.ports.len())),
        _ => (0, 0),
    };
    let mut usage = ones(["count/services", "services"]);
    usage.insert(ResourceName::from_static(LOAD_BALANCERS), Quantity::from(load_balancers));
    usage.insert(ResourceName::from_static(NODE_PORTS), Quantity::from(node_ports));
    Charge::new(usage, ScopeFacts::None)
}
