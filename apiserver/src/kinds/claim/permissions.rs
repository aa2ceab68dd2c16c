//! The permissions that a write to the status of a claim needs besides `resourceclaims/status`.
//!
//! The subresources `binding` and `driver` exist for roles only: no request names them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ADMIN_ACCESS, ALLOCATION, admin_access_detail};
use crate::access::{Attributes, User};
use crate::fields::{Fields, read_path, text};
use crate::kinds::StatusWrite;
use crate::kinds::checks::{is_empty, items, member};
use crate::status::Cause;

pub(in crate::kinds) fn check(write: &StatusWrite<'_>, causes: &mut Vec<Cause>) {
    causes.extend(admin_access(write));
    causes.extend(binding(write));
    if !at(write.new, ALLOCATION).is_null() {
        drivers(write, causes);
    }
}

fn at<'a>(claim: &'a Fields, path: &str) -> &'a Value {
    read_path(claim, path).unwrap_or(&Value::Null)
}

/// Checks the label of the namespace if the allocation grants admin access for the first time.
fn admin_access(write: &StatusWrite<'_>) -> Option<Cause> {
    let granted = |claim| {
        let results = items(at(claim, "status.allocation.devices.results"));
        results.iter().position(|result| *member(result, "adminAccess") == true)
    };
    let place = granted(write.new).filter(|_| granted(write.old).is_none())?;
    if write.author.namespace_labels().get(ADMIN_ACCESS).is_some_and(|value| value == "true") {
        return None;
    }
    let field = format!("status.allocation.devices.results[{place}].adminAccess");
    Some(Cause::forbidden(field, &admin_access_detail()))
}

/// Checks the permission to allocate and to reserve. It is one for all claims of the cluster.
fn binding(write: &StatusWrite<'_>) -> Option<Cause> {
    let is_changed = |path| {
        let (old, new) = (at(write.old, path), at(write.new, path));
        old != new && !(is_empty(old) && is_empty(new))
    };
    if !is_changed(ALLOCATION) && !is_changed("status.reservedFor") {
        return None;
    }
    let verb = write.author.verb();
    let refusal = write.author.refusal(&subresource("binding", verb))?;
    let detail = format!(
        "changing status.allocation or status.reservedFor requires \
         resource=\"resourceclaims/binding\", verb=\"{verb}\" permission: {refusal}"
    );
    Some(Cause::forbidden(ALLOCATION, &detail))
}

/// Checks the permission for each driver whose devices the write changes.
fn drivers(write: &StatusWrite<'_>, causes: &mut Vec<Cause>) {
    let StatusWrite { old, new, author } = write;
    let verb = author.verb();
    let mut verbs = vec![format!("arbitrary-node:{verb}")];
    if is_on_node(author.user(), node_of(at(new, ALLOCATION))) {
        verbs.insert(0, format!("associated-node:{verb}"));
    }
    for driver in changed_drivers(old, new) {
        let refusal = |verb: &String| {
            let namespace = text(at(new, "metadata"), "namespace").to_owned();
            let name = driver.to_owned();
            let request = Attributes { namespace, name, ..subresource("driver", verb) };
            author.refusal(&request).ok_or(())
        };
        // One of the verbs is enough. The text is that of the first.
        let Ok(refusals) = verbs.iter().map(refusal).collect::<Result<Vec<_>, ()>>() else {
            continue;
        };
        let detail = format!(
            "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" \
             permission: {}",
            verbs.join(" "),
            refusals.first().map_or("", String::as_str)
        );
        causes.push(Cause::forbidden("status.devices", &detail));
    }
}

fn subresource(name: &str, verb: &str) -> Attributes {
    Attributes {
        verb: verb.to_owned(),
        group: "resource.k8s.io".to_owned(),
        resource: "resourceclaims".to_owned(),
        subresource: name.to_owned(),
        ..Attributes::default()
    }
}

/// Returns the drivers whose devices were added, removed or changed.
fn changed_drivers<'a>(old: &'a Fields, new: &'a Fields) -> BTreeSet<&'a str> {
    let [old, new] = [old, new].map(|claim| items(at(claim, "status.devices")));
    let changed = new.iter().filter(|device| !old.contains(device));
    let changed = changed.chain(old.iter().filter(|device| !new.contains(device)));
    changed.map(|device| text(device, "driver")).collect()
}

/// Returns the only node on which an allocation can be used; empty if there may be others.
fn node_of(allocation: &Value) -> &str {
    let terms = items(member(member(allocation, "nodeSelector"), "nodeSelectorTerms"));
    let [term] = terms else { return "" };
    let [field] = items(member(term, "matchFields")) else { return "" };
    let is_name = text(field, "key") == "metadata.name" && text(field, "operator") == "In";
    match items(member(field, "values")) {
        [node] if is_name && is_empty(member(term, "matchExpressions")) => {
            node.as_str().unwrap_or_default()
        }
        _ => "",
    }
}

/// Returns true if the user is a service account whose pod runs on this node.
fn is_on_node(user: &User, node: &str) -> bool {
    !node.is_empty() && user.node() == Some(node)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(devices: &Value) -> Fields {
        json!({"status": {"devices": devices}}).as_object().cloned().unwrap()
    }

    fn device(driver: &str, device: &str, data: u8) -> Value {
        json!({"driver": driver, "pool": "p", "device": device, "data": {"a": data}})
    }

    /// The cases of upstream's `TestGetModifiedDrivers`.
    #[test]
    fn drivers_of_changed_devices_are_named() {
        let (a, b) = (device("a", "1", 0), device("b", "2", 0));
        let changed = |old: Value, new: Value| {
            let (old, new) = (claim(&old), claim(&new));
            let drivers = changed_drivers(&old, &new);
            drivers.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(changed(json!([a, b]), json!([a, b])), none, "no changes");
        assert_eq!(changed(json!([a, b]), json!([b, a])), none, "another order");
        assert_eq!(changed(json!(null), json!([])), none, "empty");
        assert_eq!(changed(json!([a]), json!([a, b])), ["b"], "added");
        assert_eq!(changed(json!([a, b]), json!([b])), ["a"], "removed");
        assert_eq!(changed(json!([a, b]), json!([a, device("b", "2", 1)])), ["b"], "changed");
        assert_eq!(changed(json!([a]), json!([b])), ["a", "b"], "replaced");
        let shared = |share: &str| json!({"driver": "a", "device": "1", "shareID": share});
        assert_eq!(changed(json!([shared("x")]), json!([shared("y")])), ["a"], "another share");
    }

    #[test]
    fn node_of_an_allocation_is_the_only_one_that_is_named() {
        let term = |fields: Value| {
            let terms = json!([{"matchFields": fields}]);
            json!({"nodeSelector": {"nodeSelectorTerms": terms}})
        };
        let name = |values: Value| {
            let key = "metadata.name";
            json!({"key": key, "operator": "In", "values": values})
        };
        assert_eq!(node_of(&term(json!([name(json!(["n"]))]))), "n");
        assert_eq!(node_of(&term(json!([name(json!(["n", "m"]))]))), "");
        assert_eq!(node_of(&term(json!([name(json!(["n"])), name(json!(["m"]))]))), "");
        assert_eq!(node_of(&json!({})), "");
        let mut with_labels = term(json!([name(json!(["n"]))]));
        with_labels["nodeSelector"]["nodeSelectorTerms"][0]["matchExpressions"] =
            json!([{"key": "zone", "operator": "Exists"}]);
        assert_eq!(node_of(&with_labels), "");
    }

    #[test]
    fn only_service_accounts_are_on_a_node() {
        let on = |user: User, nodes: &[&str]| {
            let nodes = nodes.iter().map(|&node| node.to_owned()).collect();
            User {
                extra: [("authentication.kubernetes.io/node-name".to_owned(), nodes)].into(),
                ..user
            }
        };
        let account = || User::service_account("shop", "driver");
        assert!(is_on_node(&on(account(), &["n"]), "n"));
        assert!(!is_on_node(&on(account(), &["n"]), "m"));
        assert!(!is_on_node(&on(account(), &["n", "m"]), "n"));
        assert!(!is_on_node(&on(User::new("jane"), &["n"]), "n"));
        assert!(!is_on_node(&on(account(), &[""]), ""), "the allocation is for any node");
    }
}
