//! `ResourceClaim` and its relatives.

mod permissions;

use std::collections::BTreeMap;

use homeostat_schema::InternalValue;
use serde_json::{Value, json};

use super::checks::{device_claim_status, devices, member};
use super::{Kind, checks};
use crate::fields::{Fields, read_path};
use crate::status::Cause;

pub(super) use permissions::check as check_permissions;

const ALLOCATION: &str = "status.allocation";

/// The label of a namespace whose users may ask for admin access.
const ADMIN_ACCESS: &str = "resource.kubernetes.io/admin-access";

/// A request is for one device by default.
pub(super) fn default_device_count(request: &Fields) -> Value {
    match request.get("allocationMode").and_then(Value::as_str) {
        None | Some("ExactCount") => json!({"allocationMode": "ExactCount", "count": 1}),
        Some(_) => Value::Null,
    }
}

/// A taint's time is that of its first write.
pub(super) fn set_taint_times(slice: &mut Fields) {
    let now = read_path(slice, "metadata.creationTimestamp").cloned().unwrap_or_default();
    let devices = slice.get_mut("spec").and_then(|spec| spec.get_mut("devices"));
    let devices = devices.and_then(Value::as_array_mut).into_iter().flatten();
    for device in devices {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut).into_iter().flatten();
        for taint in taints.filter_map(Value::as_object_mut) {
            taint.entry("timeAdded").or_insert_with(|| now.clone());
        }
    }
}

/// Dates the taint of a new rule.
pub(super) fn set_taint_time(rule: &mut Fields) {
    let now = read_path(rule, "metadata.creationTimestamp").cloned().unwrap_or_default();
    let taint = rule.get_mut("spec").and_then(|spec| spec.get_mut("taint"));
    if let Some(taint) = taint.and_then(Value::as_object_mut) {
        taint.entry("timeAdded").or_insert(now);
    }
}

/// Dates the taint of a rule again when its effect changes, unless the client dates it.
pub(super) fn date_new_effect(rule: &mut Fields, old: &Fields, now: &str) {
    let [new_effect, old_effect] =
        [&*rule, old].map(|rule| read_path(rule, "spec.taint.effect").cloned());
    let [new_time, old_time] =
        [&*rule, old].map(|rule| read_path(rule, "spec.taint.timeAdded").cloned());
    if new_effect == old_effect || new_time != old_time {
        return;
    }
    let taint = rule.get_mut("spec").and_then(|spec| spec.get_mut("taint"));
    if let Some(taint) = taint.and_then(Value::as_object_mut) {
        taint.insert("timeAdded".to_owned(), json!(now));
    }
}

/// A taint that is written again without its time keeps the time.
pub(super) fn inherit_times(slice: &mut Fields, old: &Fields) {
    let devices = |slice: &Fields| read_path(slice, "spec.devices").cloned().unwrap_or_default();
    let (mut new, old) = (devices(slice), devices(old));
    for device in new.as_array_mut().into_iter().flatten() {
        let same = checks::items(&old).iter().find(|one| one.get("name") == device.get("name"));
        let known = same.map_or(&Value::Null, |one| member(one, "taints"));
        let taints = device.get_mut("taints").and_then(Value::as_array_mut).into_iter().flatten();
        for taint in taints.filter_map(Value::as_object_mut) {
            let is_same =
                |one: &&Value| ["key", "effect"].iter().all(|key| one.get(key) == taint.get(*key));
            let time =
                checks::items(known).iter().find(is_same).and_then(|one| one.get("timeAdded"));
            if let Some(time) = time.cloned() {
                taint.entry("timeAdded").or_insert(time);
            }
        }
    }
    if let Some(Value::Object(spec)) = slice.get_mut("spec").filter(|_| !new.is_null()) {
        spec.insert("devices".to_owned(), new);
    }
    set_taint_times(slice);
}

/// Removes the devices of `status.devices` that the old state had allocated and the new one has
/// not. So clients that do not know the member leave no stale one behind.
pub(super) fn drop_deallocated_devices(claim: &mut Fields, old: &Fields) {
    let allocated = |claim: &Fields| {
        let results = read_path(claim, "status.allocation.devices.results");
        checks::items(results.unwrap_or(&Value::Null)).iter().map(device_id).collect::<Vec<_>>()
    };
    let kept = allocated(claim);
    let dropped = allocated(old);
    let Some(Value::Object(status)) = claim.get_mut("status") else { return };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else { return };
    devices.retain(|device| {
        let id = device_id(device);
        kept.contains(&id) || !dropped.contains(&id)
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

/// Returns the members that identify a device.
fn device_id(device: &Value) -> [Value; 4] {
    ["driver", "pool", "device", "shareID"].map(|member| checks::member(device, member).clone())
}

/// Returns the cause for which a claim or a template that asks for admin access is refused in a
/// namespace with these labels, or `None`.
pub(crate) fn admin_access(
    kind: &Kind,
    object: &Fields,
    labels: &BTreeMap<String, String>,
) -> Option<Cause> {
    let path = match (&*kind.group, &*kind.kind) {
        ("resource.k8s.io", "ResourceClaim") => "spec.devices.requests",
        ("resource.k8s.io", "ResourceClaimTemplate") => "spec.spec.devices.requests",
        _ => return None,
    };
    if labels.get(ADMIN_ACCESS).is_some_and(|value| value == "true") {
        return None;
    }
    let requests = checks::items(read_path(object, path).unwrap_or(&Value::Null));
    let wants_access =
        |request: &Value| member(member(request, "exactly"), "adminAccess").as_bool() == Some(true);
    let index = requests.iter().position(wants_access)?;
    // The path is upstream's, also for a template.
    let field = format!("spec.devices.requests[{index}].adminAccess");
    Some(Cause::forbidden(field, &admin_access_detail()))
}

fn admin_access_detail() -> String {
    format!(
        "admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing \
         namespace"
    )
}

pub(super) fn validate(claim: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let Some(old) = old else {
        let devices = read_path(claim, "spec.devices").unwrap_or(&Value::Null);
        devices::claim(devices, "spec.devices", causes);
        devices::declared(devices, "spec.devices", causes);
        return;
    };
    let status = (member_of(claim, "status"), member_of(old, "status"));
    // As in upstream, an update of the rest does not check the status.
    let status = Some(status).filter(|(new, old)| new != old);
    if let Some((new, old)) = status {
        check_status(claim, new, old, causes);
    }
    if claim.get("spec") != old.get("spec") {
        // The real server does not show the value here.
        causes.push(Cause::invalid("spec", &Value::Null, "field is immutable"));
    }
    if let Some((new, old)) = status {
        device_claim_status::declared(new, old, causes);
    }
}

fn member_of<'a>(object: &'a Fields, name: &str) -> &'a Value {
    object.get(name).unwrap_or(&Value::Null)
}

fn check_status(claim: &Fields, status: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let is_deleted = read_path(claim, "metadata.deletionTimestamp").is_some();
    device_claim_status::consumers(status, causes);
    device_claim_status::devices(status, causes);
    device_claim_status::reservations(status, old, is_deleted, causes);
    let [allocation, before] = [status, old].map(|status| member(status, "allocation"));
    if before.is_null() && !allocation.is_null() {
        let requests = read_path(claim, "spec.devices.requests").unwrap_or(&Value::Null);
        device_claim_status::allocation(requests, allocation, causes);
    }
}

pub(super) fn validate_template(template: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    const AT: &str = "spec.spec.devices";
    let devices = read_path(template, AT).unwrap_or(&Value::Null);
    let metadata = read_path(template, "spec.metadata").unwrap_or(&Value::Null);
    checks::selectors::template_metadata(metadata, "spec.metadata", causes);
    devices::claim(devices, AT, causes);
    let spec = member_of(template, "spec");
    if old.is_some_and(|old| member_of(old, "spec") != spec) {
        let shown = InternalValue::of("resource.ResourceClaimTemplateSpec", spec);
        let shown = shown.map(|shown| shown.to_json()).unwrap_or_default();
        causes.push(Cause::invalid("spec", &shown, "field is immutable"));
    }
    if old.is_none_or(|old| member_of(old, "spec") != spec) {
        devices::declared(devices, AT, causes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taint_of_a_rule_is_dated_again_when_its_effect_alone_changes() {
        let rule = |effect: &str, time: &str| {
            let rule = json!({"spec": {"taint": {"effect": effect, "timeAdded": time}}});
            serde_json::from_value::<Fields>(rule).unwrap()
        };
        let old = rule("None", "first");
        let dated = |mut new: Fields| {
            date_new_effect(&mut new, &old, "now");
            read_path(&new, "spec.taint.timeAdded").cloned()
        };
        assert_eq!(dated(rule("NoExecute", "first")), Some(json!("now")));
        assert_eq!(dated(rule("NoExecute", "of the client")), Some(json!("of the client")));
        assert_eq!(dated(rule("None", "first")), Some(json!("first")));
    }
}
