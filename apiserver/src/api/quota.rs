//! Quota admission: a write is charged to the quotas of its namespace before the object is stored
//! (the plugin `ResourceQuota` of kube-apiserver).

use std::collections::BTreeSet;
use std::sync::Arc;

use homeostat_core::GroupResource;
use homeostat_quota::object::Object;
use homeostat_quota::{
    Evaluator, Gates, NewUsage, Operation, Quota, QuotaError, Registry, check_request, is_ignored,
};
use serde_json::Value;

use super::managers::server_manager;
use super::quota_devices::Devices;
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::admission::{meta_text, metadata_mut};
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::Served;
use crate::object::{Stored, without_owners};
use crate::status::{Failure, Result};

/// The number of rounds in which quotas are written: the first one, and three for those whose write
/// was late.
const ROUNDS: usize = 4;

/// A write that may be charged.
pub(super) struct Charged<'a> {
    pub(super) served: &'a Served,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    /// Empty for the object itself.
    pub(super) subresource: &'a str,
    /// The stored object. None for one that is created.
    pub(super) old: Option<&'a Fields>,
    /// The object as it will be stored.
    pub(super) new: &'a Fields,
    pub(super) dry_run: bool,
}

impl<'a> Charged<'a> {
    /// Returns the creation of an object.
    pub(super) fn creation(served: &'a Served, new: &'a Fields, dry_run: bool) -> Self {
        let (namespace, name) = (meta_text(new, "namespace"), meta_text(new, "name"));
        Self { served, namespace, name, subresource: "", old: None, new, dry_run }
    }
}

/// Charges a write to the quotas of its namespace, or refuses it. A dry run is checked and not
/// charged.
pub(super) fn charge(core: &Core, write: &Charged<'_>) -> Result<()> {
    let kind = &write.served.kind;
    let resource = GroupResource::new(kind.group.to_string(), kind.plural.to_string());
    if !core.enforces_quotas() || !kind.namespaced || is_ignored(&resource) {
        return Ok(());
    }
    let Some(quotas) = core.kinds().find("", "v1", "resourcequotas") else { return Ok(()) };
    let evaluator = Registry::new(Gates::default()).get(&resource).cloned();
    let evaluator = evaluator.unwrap_or_else(|| Evaluator::counter(resource));
    let mut charged = BTreeSet::new();
    for _ in 0..ROUNDS {
        let mut stored = core.objects_in(quotas.resource, write.namespace);
        stored.retain(|quota| !charged.contains(&quota.selectable.name));
        if stored.is_empty() {
            return Ok(());
        }
        let usages = check(core, write, &evaluator, &stored)?;
        if write.dry_run || usages.is_empty() {
            return Ok(());
        }
        let mut is_late = false;
        for usage in usages {
            let quota = &stored[usage.quota];
            if put_used(core, &quotas, quota, &usage) {
                charged.insert(quota.selectable.name.clone());
            } else {
                is_late = true;
            }
        }
        if !is_late {
            return Ok(());
        }
    }
    Err(Failure::internal("resource quota evaluation timed out"))
}

/// Returns the usage that the quotas have once the write is admitted.
fn check(
    core: &Core,
    write: &Charged<'_>,
    evaluator: &Evaluator,
    stored: &[Arc<Stored>],
) -> Result<Vec<NewUsage>> {
    let broken = |error: serde_json::Error| Failure::internal(error.to_string());
    let quotas: std::result::Result<Vec<Quota>, _> =
        stored.iter().map(|quota| serde_json::from_value(Value::Object(quota.fields()))).collect();
    let read = |fields: &Fields| {
        Object::read(evaluator.resource(), Value::Object(without_owners(fields))).map_err(broken)
    };
    let (object, old) = (read(write.new)?, write.old.map(read).transpose()?);
    let request = homeostat_quota::Request {
        evaluator,
        operation: if write.old.is_some() { Operation::Update } else { Operation::Create },
        subresource: write.subresource,
        object: &object,
        old: old.as_ref(),
        context: &Devices::of(core),
        now: core.clock.now(),
    };
    check_request(&quotas.map_err(broken)?, request).map_err(|error| refusal(write, &error))
}

fn refusal(write: &Charged<'_>, error: &QuotaError) -> Failure {
    if error.is_forbidden() {
        Failure::forbidden(&write.served.kind, write.name, &error.to_string())
    } else {
        Failure::internal(error.to_string())
    }
}

/// Writes `status.used`. Returns false if the quota has changed since it was read.
fn put_used(core: &Core, quotas: &Served, quota: &Arc<Stored>, usage: &NewUsage) -> bool {
    let old = quota.packed_fields();
    let mut fields = old.clone();
    let used = serde_json::to_value(&usage.used).unwrap_or_default();
    let status = fields.entry("status").or_insert_with(|| Value::Object(Fields::new()));
    if let Some(status) = status.as_object_mut() {
        status.insert("used".to_owned(), used);
    }
    let owners = Ownership::Tracked(server_manager(core, Target::Status));
    metadata_mut(&mut fields).remove("managedFields");
    owners.of_changed(&quotas.kind, &old, &mut fields, None);
    metadata_mut(&mut fields).remove("resourceVersion");
    let key = quotas.kind.key(&quota.selectable.namespace, &quota.selectable.name);
    core.put(quotas.resource, &key, Some(quota.revision), quotas.encode(fields)).is_ok()
}
