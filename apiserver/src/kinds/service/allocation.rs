//! The cluster IPs and node ports of services.
//!
//! They follow from the stored services and `IPAddress` objects, so that a backup, a restart or a
//! state file needs nothing else.

mod node_ports;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{families, has_node_ports, kind_of, list, needs_health_check, text};
use crate::fields::{Fields, read_path};
use crate::status::{Cause, Failure, ResourceName, Result};
use crate::storage::{Change, ResourceId, Storage};
use node_ports::PortAllocator;

/// The cluster IPs and node ports that the stored services have.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    /// The revision whose services are counted; 0 if none are.
    revision: u64,
    addresses: BTreeSet<Ipv4Addr>,
    /// The names of the `IPAddress` objects: also those that a client has created.
    objects: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<i64>,
}

/// The source of cluster IPs and node ports for one write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocator<'a> {
    pub(crate) allocations: &'a Allocations,
    /// True if nothing is stored.
    pub(crate) dry_run: bool,
}

const SERVICE: ResourceName<'static> =
    ResourceName { group: "", kind: "Service", plural: "services", custom: false };

/// The first and the last cluster IP: those of `--service-cluster-ip-range=10.0.0.0/16`.
const ADDRESSES: (Ipv4Addr, Ipv4Addr) =
    (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 255, 254));
/// The first cluster IP that the server chooses while there are free ones: those below are for
/// services that name theirs.
const FIRST_CHOSEN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// The cluster IP in the reply to a dry run: the address of the network.
const DRY_RUN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

// === impl Allocations ===

impl Allocations {
    /// Counts the services and the `IPAddress` objects of the newest revision.
    pub(crate) fn follow(&mut self, storage: &Storage, services: ResourceId, objects: ResourceId) {
        let changes = |resource| storage.changes_after(resource, self.revision);
        if let (Some(services), Some(objects)) = (changes(services), changes(objects)) {
            for change in services {
                change.old.iter().for_each(|old| self.release(&old.fields()));
                change.new.iter().for_each(|new| self.occupy(&new.fields()));
            }
            for change in objects {
                self.follow_object(change);
            }
        } else {
            *self = Self::default();
            for (_, service) in storage.objects(services) {
                self.occupy(&service.fields());
            }
            let names = storage.objects(objects).iter().map(|(name, _)| name);
            self.objects.extend(names.filter_map(|name| name.parse::<Ipv4Addr>().ok()));
        }
        self.revision = storage.revision();
    }

    fn follow_object(&mut self, change: &Change) {
        let Ok(address) = change.key.parse() else { return };
        if change.new.is_some() {
            self.objects.insert(address);
        } else {
            self.objects.remove(&address);
        }
    }

    fn has(&self, address: Ipv4Addr) -> bool {
        self.addresses.contains(&address) || self.objects.contains(&address)
    }

    fn occupy(&mut self, service: &Fields) {
        self.addresses.extend(addresses(service));
        self.ports.extend(ports(service));
    }

    fn release(&mut self, service: &Fields) {
        for address in addresses(service) {
            self.addresses.remove(&address);
        }
        for port in ports(service) {
            self.ports.remove(&port);
        }
    }
}

fn addresses(service: &Fields) -> impl Iterator<Item = Ipv4Addr> {
    let addresses = read_path(service, "spec.clusterIPs").and_then(Value::as_array);
    addresses.into_iter().flatten().filter_map(|address| address.as_str()?.parse().ok())
}

/// Returns the node ports that are allocated to a service. A service of another type may name some,
/// but has none.
fn ports(service: &Fields) -> impl Iterator<Item = i64> {
    let spec = service.get("spec").and_then(Value::as_object);
    let ports = spec.filter(|spec| has_node_ports(spec));
    let ports = ports.map_or(&[][..], |spec| list(spec, "ports"));
    let health_check = spec.filter(|spec| needs_health_check(spec));
    let health_check = health_check.and_then(|spec| spec.get("healthCheckNodePort")?.as_i64());
    ports.iter().filter_map(node_port).chain(health_check)
}

fn node_port(port: &Value) -> Option<i64> {
    port.get("nodePort").and_then(Value::as_i64).filter(|number| *number != 0)
}

/// Returns the FNV-1a hash of a text.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the numbers from `first` to `last`, in a circle that starts at a position in between.
fn circle(first: i64, last: i64, start: u64) -> impl Iterator<Item = i64> {
    let size = u64::try_from(last - first).unwrap_or_default() + 1;
    let middle = first + i64::try_from(start % size).unwrap_or_default();
    (middle..=last).chain(first..middle)
}

// === allocation ===

/// Gives a new service, or the new state of one, the cluster IP and the node ports that it needs.
///
/// The search for free ones starts at a place that follows from the uid, so that equal runs have
/// equal addresses.
pub(super) fn allocate(
    service: &mut Fields,
    old: Option<&Fields>,
    allocator: Allocator<'_>,
) -> Result<()> {
    let metadata = |key: &str| read_path(service, key).and_then(Value::as_str).unwrap_or("");
    let start = hash(metadata("metadata.uid"));
    let name = metadata("metadata.name").to_owned();
    let old = old.and_then(|old| old.get("spec")?.as_object());
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return Ok(()) };
    if old.is_none() && !text(spec, "clusterIP").is_empty() {
        // Clients that do not know of two families set only one address.
        let address = text(spec, "clusterIP").to_owned();
        spec.entry("clusterIPs").or_insert_with(|| json!([address]));
    }
    families::complete(spec, old).map_err(|causes| Failure::invalid(SERVICE, &name, &causes))?;
    if old.is_none_or(|old| kind_of(old) == "ExternalName") {
        allocate_address(spec, start, &name, allocator)?;
    }
    let mut ports = PortAllocator {
        service: &name,
        known: &allocator.allocations.ports,
        taken: BTreeSet::new(),
        start,
        dry_run: allocator.dry_run,
    };
    if has_node_ports(spec) {
        match old {
            None => ports.allocate_new(spec)?,
            Some(old) => ports.allocate_changed(spec, old)?,
        }
    }
    if needs_health_check(spec) && !old.is_some_and(needs_health_check) {
        ports.allocate_health_check(spec)?;
    }
    Ok(())
}

fn allocate_address(
    spec: &mut Fields,
    start: u64,
    name: &str,
    allocator: Allocator<'_>,
) -> Result<()> {
    if kind_of(spec) == "ExternalName" || text(spec, "clusterIP") == "None" {
        return Ok(());
    }
    let Allocator { allocations, dry_run } = allocator;
    let given = text(spec, "clusterIP").to_owned();
    let Ok(requested) = given.parse::<Ipv4Addr>() else {
        let address =
            if dry_run { Some(DRY_RUN_ADDRESS) } else { free_address(allocations, start) };
        let address = address.ok_or_else(|| {
            let what = format!("failed to allocate a serviceIP for Service \"{name}\"");
            Failure::internal_error(&format!("{what}: range is full"))
        })?;
        spec.insert("clusterIP".to_owned(), json!(address));
        spec.insert("clusterIPs".to_owned(), json!([address]));
        return Ok(());
    };
    let is_in_range = (ADDRESSES.0..=ADDRESSES.1).contains(&requested);
    let problem = if !is_in_range && dry_run {
        let range = "The range of valid IPs is 10.0.0.0/16";
        format!("the provided IP ({requested}) is not in the valid range. {range}")
    } else if !is_in_range {
        "the provided network does not match the current range".to_owned()
    } else if allocations.has(requested) && !dry_run {
        "provided IP is already allocated".to_owned()
    } else {
        return Ok(());
    };
    let shown = spec.get("clusterIPs").cloned().unwrap_or_default();
    let detail = format!("failed to allocate IP {given}: {problem}");
    let cause = Cause::invalid("spec.clusterIPs", &shown, &detail);
    Err(Failure::invalid(SERVICE, name, &[cause]))
}

fn free_address(allocations: &Allocations, start: u64) -> Option<Ipv4Addr> {
    let number = |address: Ipv4Addr| i64::from(u32::from(address));
    let [first, chosen, last] = [ADDRESSES.0, FIRST_CHOSEN_ADDRESS, ADDRESSES.1].map(number);
    let all = circle(chosen, last, start).chain(circle(first, chosen - 1, start));
    let mut addresses = all.filter_map(|it| Some(Ipv4Addr::from(u32::try_from(it).ok()?)));
    addresses.find(|address| !allocations.has(*address))
}

#[cfg(test)]
mod tests {
    use super::node_ports::NODE_PORTS;
    use super::*;

    fn service(uid: &str, spec: &Value) -> Fields {
        let service = json!({"metadata": {"name": uid, "uid": uid}, "spec": spec});
        service.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn last_free_node_port_is_found_and_a_full_range_is_an_error() {
        let ports_of_range = (NODE_PORTS.0..=NODE_PORTS.1).collect();
        let mut known = Allocations { ports: ports_of_range, ..Allocations::default() };
        let ports_of_x = json!([{"nodePort": 30_002}]);
        known.release(&service("x", &json!({"type": "NodePort", "ports": ports_of_x})));
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]});
        let mut last = service("last", &spec);
        allocate(&mut last, None, Allocator { allocations: &known, dry_run: false }).unwrap();
        assert_eq!(ports(&last).collect::<Vec<_>>(), [30_002]);
        known.occupy(&last);
        let allocator = Allocator { allocations: &known, dry_run: false };
        let failure = allocate(&mut service("late", &spec), None, allocator).unwrap_err();
        assert_eq!((failure.code, failure.reason), (500, "InternalError"));
        assert!(failure.message.ends_with("failed to allocate a nodePort: range is full"));
    }

    #[test]
    fn service_gives_up_only_the_node_ports_that_its_type_has() {
        let used = [30_001, 30_002].into();
        let mut known = Allocations { ports: used, ..Allocations::default() };
        let mut spec = json!({"type": "ExternalName", "ports": [{"nodePort": 30_001}],
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 30_002});
        known.release(&service("x", &spec));
        assert_eq!(known.ports, [30_001, 30_002].into());
        spec["type"] = json!("NodePort");
        known.release(&service("x", &spec));
        assert_eq!(known.ports, [30_002].into());
        spec["type"] = json!("LoadBalancer");
        known.release(&service("x", &spec));
        assert_eq!(known.ports, BTreeSet::new());
    }

    #[test]
    fn chosen_addresses_leave_the_first_ones_to_requests() {
        let all = u32::from(FIRST_CHOSEN_ADDRESS)..=u32::from(ADDRESSES.1);
        let addresses_of_range = all.map(Ipv4Addr::from).collect();
        let known = Allocations { addresses: addresses_of_range, ..Allocations::default() };
        let spec = json!({"type": "ClusterIP", "ports": [{"port": 80}]});
        let mut low = service("low", &spec);
        allocate(&mut low, None, Allocator { allocations: &known, dry_run: false }).unwrap();
        assert!(addresses(&low).all(|address| address < FIRST_CHOSEN_ADDRESS));
        let mut usual = service("usual", &spec);
        let empty = Allocations::default();
        allocate(&mut usual, None, Allocator { allocations: &empty, dry_run: false }).unwrap();
        assert!(addresses(&usual).all(|address| address >= FIRST_CHOSEN_ADDRESS));
    }
}
