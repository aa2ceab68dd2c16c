//! The external addresses of services (the plugin `DenyServiceExternalIPs`).

use serde_json::Value;

use super::columns::{Guard, GuardedWrite};
use crate::fields::{Fields, read_path};
use crate::plugin::AdmissionPlugin;

/// The checks of services.
pub(super) const GUARDS: &[Guard] = &[Guard {
    plugin: AdmissionPlugin::DenyServiceExternalIPs,
    subresource: "",
    check: check_external_addresses,
}];

/// Refuses new external addresses.
fn check_external_addresses(write: &GuardedWrite<'_>) -> Result<(), String> {
    let addresses = |service: &Fields| -> Vec<Value> {
        let list = read_path(service, "spec.externalIPs").and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let known = write.old.map(addresses).unwrap_or_default();
    if addresses(write.new).iter().all(|address| known.contains(address)) {
        return Ok(());
    }
    Err("Use of external IPs is denied by admission control".to_owned())
}
