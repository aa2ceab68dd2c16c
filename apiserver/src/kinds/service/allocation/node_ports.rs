//! The node ports of a service.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{SERVICE, circle, node_port};
use crate::fields::Fields;
use crate::kinds::service::needs_node_ports;
use crate::status::{Cause, Failure, Result};

/// The node ports that one write allocates.
#[derive(Debug)]
pub(super) struct PortAllocator<'a> {
    /// The name of the service.
    pub(super) service: &'a str,
    pub(super) known: &'a BTreeSet<i64>,
    pub(super) taken: BTreeSet<i64>,
    /// The position in the range at which the search for a free port starts.
    pub(super) start: u64,
    pub(super) dry_run: bool,
}

pub(super) const NODE_PORTS: (i64, i64) = (30_000, 32_767);
/// The first node port that the server chooses while there are free ones.
const FIRST_CHOSEN_PORT: i64 = 30_086;
/// The first node port in the reply to a dry run.
const DRY_RUN_PORT: i64 = 32_769;

const PORT_IS_TAKEN: &str = "provided port is already allocated";

// === impl PortAllocator ===

impl PortAllocator<'_> {
    fn is_taken(&self, port: i64) -> bool {
        self.known.contains(&port) || self.taken.contains(&port)
    }

    /// Takes a port that the client has chosen.
    fn take(&mut self, port: i64) -> std::result::Result<(), String> {
        let (first, last) = NODE_PORTS;
        // The real server does not check the range in a dry run.
        if !self.dry_run && !(first..=last).contains(&port) {
            let range = format!("The range of valid ports is {first}-{last}");
            return Err(format!("provided port is not in the valid range. {range}"));
        }
        if self.is_taken(port) {
            return Err(PORT_IS_TAKEN.to_owned());
        }
        self.taken.insert(port);
        Ok(())
    }

    /// Takes a free port; `what` names it in the error.
    fn take_next(&mut self, what: &str) -> Result<i64> {
        let port = if self.dry_run {
            Some(self.taken.last().map_or(DRY_RUN_PORT, |last| last + 1))
        } else {
            let upper = circle(FIRST_CHOSEN_PORT, NODE_PORTS.1, self.start);
            let lower = circle(NODE_PORTS.0, FIRST_CHOSEN_PORT - 1, self.start);
            upper.chain(lower).find(|port| !self.is_taken(*port))
        };
        let port = port.ok_or_else(|| {
            Failure::internal_error(&format!("failed to allocate a {what}: range is full"))
        })?;
        self.taken.insert(port);
        Ok(port)
    }

    /// Takes a port that the client has chosen for the port at a position.
    fn take_for(&mut self, at: usize, node: i64) -> Result<i64> {
        let field = format!("spec.ports[{at}].nodePort");
        self.take(node).map_err(|why| {
            let cause = Cause::invalid(field, &json!(node), &why);
            Failure::invalid(SERVICE, self.service, &[cause])
        })?;
        Ok(node)
    }

    /// Gives the ports of a new service their node ports. Two protocols of one port share a node
    /// port.
    pub(super) fn allocate_new(&mut self, spec: &mut Fields) -> Result<()> {
        let chooses = needs_node_ports(spec);
        let Some(Value::Array(ports)) = spec.get_mut("ports") else { return Ok(()) };
        let mut requested = BTreeMap::new();
        for port in ports.iter() {
            if let Some(node) = node_port(port) {
                requested.entry(number(port)).or_insert(node);
            }
        }
        let mut allocated: BTreeMap<i64, i64> = BTreeMap::new();
        for (at, port) in ports.iter_mut().enumerate() {
            let (number, own) = (number(port), node_port(port));
            if own.is_none() && !chooses {
                continue;
            }
            let wanted = match (allocated.get(&number), own) {
                (Some(_), Some(own)) => Some(own),
                _ => requested.get(&number).copied(),
            };
            let node = match (allocated.get(&number), wanted) {
                (Some(shared), None) => *shared,
                (Some(shared), Some(wanted)) if *shared == wanted => wanted,
                (_, Some(wanted)) => self.take_for(at, wanted)?,
                (None, None) => self.take_next("nodePort")?,
            };
            allocated.entry(number).or_insert(node);
            port["nodePort"] = json!(node);
        }
        Ok(())
    }

    /// Gives the new ports of a changed service their node ports.
    pub(super) fn allocate_changed(&mut self, spec: &mut Fields, old: &Fields) -> Result<()> {
        let chooses = needs_node_ports(spec);
        let old = old.get("ports").and_then(Value::as_array).into_iter().flatten();
        let before: BTreeSet<i64> = old.filter_map(node_port).collect();
        let Some(Value::Array(ports)) = spec.get_mut("ports") else { return Ok(()) };
        let mut requested = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (at, port) in ports.iter_mut().enumerate() {
            let node = match node_port(port) {
                None if !chooses => continue,
                None => self.take_next("nodePort")?,
                Some(node) if before.contains(&node) || !requested.insert(node) => node,
                Some(node) => self.take_for(at, node)?,
            };
            port["nodePort"] = json!(node);
            let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("").to_owned();
            if !seen.insert((protocol.clone(), node)) {
                return Err(Failure::internal(format!(
                    "duplicate nodePort: {{{protocol} {node}}}"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn allocate_health_check(&mut self, spec: &mut Fields) -> Result<()> {
        let requested = spec.get("healthCheckNodePort").and_then(Value::as_i64);
        if let Some(port) = requested.filter(|port| *port != 0) {
            return self.take(port).map_err(|why| {
                let what = "failed to allocate requested HealthCheck NodePort";
                Failure::internal_error(&format!("{what} {port}: {why}"))
            });
        }
        let port = self.take_next("HealthCheck NodePort 0")?;
        spec.insert("healthCheckNodePort".to_owned(), json!(port));
        Ok(())
    }
}

fn number(port: &Value) -> i64 {
    port.get("port").and_then(Value::as_i64).unwrap_or_default()
}
