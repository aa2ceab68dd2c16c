//! `ResourceClaim` and its relatives.

mod permissions;

use std::collections::BTreeMap;

use homeostat_schema::InternalValue;
use serde_json::{Value, json};

use super::{Kind, checks};
use crate::fields::{Fields, read_path, text};
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
        let known = same.map_or(&Value::Null, |one| checks::member(one, "taints"));
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
    let wants_access = |request: &Value| {
        checks::member(checks::member(request, "exactly"), "adminAccess").as_bool() == Some(true)
    };
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
    let devices = read_path(claim, "spec.devices").unwrap_or(&Value::Null);
    if old.is_none() {
        checks::run(checks::devices::CLAIM, devices, "spec.devices", causes);
    }
    if let Some(old) = old {
        if claim.get("spec") != old.get("spec") {
            // The real server does not show the value here.
            causes.push(Cause::invalid("spec", &Value::Null, "field is immutable"));
        }
        let (new, old) = (read_path(claim, ALLOCATION), read_path(old, ALLOCATION));
        if old.is_some() && new.is_some() && new != old {
            let detail = "field cannot be modified once set";
            causes.push(Cause::invalid(ALLOCATION, &Value::Null, detail));
        }
    }
    checks::devices::consumers(claim.get("status").unwrap_or(&Value::Null), causes);
    if let Some(old) = old {
        check_added_consumers(claim, old, causes);
    }
    check_devices(claim, causes);
}

/// Checks that a claim which is being deleted gets no new consumers.
fn check_added_consumers(claim: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    const CONSUMERS: &str = "status.reservedFor";
    let is_being_deleted = read_path(claim, "metadata.deletionTimestamp").is_some();
    if !is_being_deleted || read_path(claim, ALLOCATION).is_none_or(Value::is_null) {
        return;
    }
    let consumers = |claim| checks::items(read_path(claim, CONSUMERS).unwrap_or(&Value::Null));
    if consumers(claim).iter().any(|consumer| !consumers(old).contains(consumer)) {
        let detail = "new entries may not be added while `deallocationRequested` or \
                      `deletionTimestamp` are set";
        causes.push(Cause::forbidden(CONSUMERS, detail));
    }
}

/// Checks that drivers report allocated devices only.
fn check_devices(claim: &Fields, causes: &mut Vec<Cause>) {
    let list = |path| checks::items(read_path(claim, path).unwrap_or(&Value::Null));
    let allocated: Vec<_> =
        list("status.allocation.devices.results").iter().map(device_id).collect();
    for (place, device) in list("status.devices").iter().enumerate() {
        if allocated.contains(&device_id(device)) {
            continue;
        }
        let shown = json!({
            "Driver": text(device, "driver"), "Pool": text(device, "pool"),
            "Device": text(device, "device"), "ShareID": text(device, "shareID"),
        });
        let detail = "must be an allocated device in the claim";
        causes.push(Cause::invalid(format!("status.devices[{place}]"), &shown, detail));
    }
}

pub(super) fn validate_template(template: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let devices = read_path(template, "spec.spec.devices").unwrap_or(&Value::Null);
    if old.is_none() {
        if read_path(template, "spec.metadata.name").is_some() {
            causes.push(Cause::forbidden("spec.metadata.name", "cannot be set"));
        }
        checks::run(checks::devices::CLAIM, devices, "spec.spec.devices", causes);
    }
    let spec = |template: &Fields| template.get("spec").cloned().unwrap_or_default();
    if old.is_some_and(|old| old.get("spec") != template.get("spec")) {
        let shown = InternalValue::of("resource.ResourceClaimTemplateSpec", &spec(template));
        let shown = shown.map(|shown| shown.to_json()).unwrap_or_default();
        causes.push(Cause::invalid("spec", &shown, "field is immutable"));
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
