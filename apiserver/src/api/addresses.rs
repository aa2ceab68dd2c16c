//! The `IPAddress` objects of services: one per cluster IP, as the real server's allocator makes
//! them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::conversion::Converter;
use super::removal::remove;
use super::server_objects::{self, SERVER};
use crate::admission::delete::DeleteOptions;
use crate::admission::field_manager::FieldManager;
use crate::admission::meta_text;
use crate::admission::target::Target;
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::{Fields, read_path};
use crate::kinds::Served;
use crate::object::Stored;

/// The value of the label that names the manager of an address.
const MANAGER: &str = "ipallocator.k8s.io";

/// The name of the default range of addresses.
const DEFAULT_RANGE: &str = "kubernetes";

/// The `IPAddress` objects around one write of a service. If the write fails, the objects that were
/// made for it are removed.
#[must_use = "dropping it removes the objects that were made for the write"]
pub(super) struct Reserved<'a> {
    core: &'a Core,
    addresses: Option<Served>,
    made: Vec<String>,
    /// The addresses that the service has no more after the write.
    released: Vec<String>,
}

/// Makes the `IPAddress` objects that a service needs and does not have yet. It does nothing for
/// other kinds.
pub(super) fn reserve<'a>(
    core: &'a Core,
    served: &Served,
    old: Option<&Fields>,
    new: Option<&Fields>,
) -> Reserved<'a> {
    let mut reserved = Reserved { core, addresses: None, made: Vec::new(), released: Vec::new() };
    if served.home.allocate.is_none() {
        return reserved;
    }
    let (before, after) = (addresses_of(old), addresses_of(new));
    if before == after {
        return reserved;
    }
    let kind = core.kinds().ip_addresses();
    for address in after.difference(&before) {
        let service = new.map(|service| address_of(address, service)).unwrap_or_default();
        if server_objects::store(core, &kind, &service, SERVER) {
            reserved.made.push(address.clone());
        }
    }
    reserved.released = before.difference(&after).cloned().collect();
    reserved.addresses = Some(kind);
    reserved
}

/// Removes the `IPAddress` objects of a deleted service. It does nothing for other kinds.
pub(super) fn release(core: &Core, served: &Served, last: &Stored) {
    if served.home.allocate.is_some() {
        reserve(core, served, Some(&last.fields()), None).keep();
    }
}

/// Makes the missing `IPAddress` objects of all services, as the real server's repair loop does.
pub(super) fn repair(core: &Core) {
    let Some(services) = core.kinds().find("", "v1", "services") else { return };
    let stored = core.read(|storage| storage.objects(services.resource).clone());
    for (_, service) in &stored {
        reserve(core, &services, None, Some(&service.fields())).keep();
    }
}

/// Sets the condition of the default range of addresses, as the real server's controller does.
pub(super) fn report_range(core: &Core) {
    let Some(ranges) = core.kinds().find("networking.k8s.io", "v1", "servicecidrs") else { return };
    let Some(stored) = core.get(ranges.resource, DEFAULT_RANGE) else { return };
    let old = stored.packed_fields();
    if read_path(&old, "status.conditions").is_some() {
        return;
    }
    let now = rfc3339(core.clock.now());
    let mut new = old.clone();
    let ready = json!({"type": "Ready", "status": "True", "reason": "",
        "message": "Kubernetes default Service CIDR is ready", "lastTransitionTime": now});
    new.insert("status".to_owned(), json!({"conditions": [ready]}));
    let manager = FieldManager {
        name: "kubernetes-service-cidr-controller".to_owned(),
        subresource: "status".to_owned(),
        target: Target::Status,
        now,
        converter: None,
    };
    // A client that writes in between keeps its own condition.
    server_objects::replace(core, &ranges, (&stored, &old), new, manager);
}

fn addresses_of(service: Option<&Fields>) -> BTreeSet<String> {
    let addresses = service.and_then(|service| read_path(service, "spec.clusterIPs")?.as_array());
    let texts = addresses.into_iter().flatten().filter_map(Value::as_str);
    texts.filter(|text| *text != "None").map(str::to_owned).collect()
}

fn address_of(address: &str, service: &Fields) -> Value {
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    json!({
        "metadata": {"name": address, "labels": {
            "ipaddress.kubernetes.io/ip-family": family,
            "ipaddress.kubernetes.io/managed-by": MANAGER,
        }},
        "spec": {"parentRef": {
            "resource": "services",
            "namespace": meta_text(service, "namespace"),
            "name": meta_text(service, "name"),
        }},
    })
}

// === impl Reserved ===

impl Reserved<'_> {
    /// Keeps the new objects: the service is stored. Removes those that it had before.
    pub(super) fn keep(mut self) {
        self.made.clear();
        let released = std::mem::take(&mut self.released);
        self.remove(&released);
    }

    fn remove(&self, names: &[String]) {
        let Some(kind) = &self.addresses else { return };
        let converter = Converter::without_webhook(kind);
        for name in names {
            // An object that is gone already is released, too.
            let options = DeleteOptions::default();
            drop(remove(self.core, &converter, (name, name), &options, &|_| Ok(())));
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.remove(&self.made);
    }
}
