//! The IP families of a service, on a cluster that has IPv4 only.

use serde_json::{Value, json};

use super::{is_headless, kind_of, list, text};
use crate::fields::Fields;
use crate::kinds::checks::addresses::ip_problem;
use crate::status::Cause;

const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Sets the families and their policy, if the service has a cluster IP; fails if the cluster does
/// not have what the service requests.
pub(super) fn complete(spec: &mut Fields, old: Option<&Fields>) -> Result<(), Vec<Cause>> {
    if kind_of(spec) == "ExternalName" || old.is_some_and(|old| keeps_preference(spec, old)) {
        return Ok(());
    }
    if !spec.contains_key("ipFamilyPolicy") {
        let known = old.and_then(|old| old.get("ipFamilyPolicy")).cloned();
        let policy = if is_unselected(spec) { "RequireDualStack" } else { "SingleStack" };
        spec.insert("ipFamilyPolicy".to_owned(), known.unwrap_or_else(|| json!(policy)));
    }
    let mut causes = Vec::new();
    check(spec, &mut causes);
    if !causes.is_empty() {
        return Err(causes);
    }
    if let Some(old) = old {
        shorten(spec, old, &mut causes);
    }
    check_single_stack(spec, &mut causes);
    infer(spec, &mut causes);
    if !causes.is_empty() {
        return Err(causes);
    }
    if is_unselected(spec) {
        complete_unselected(spec);
        return Ok(());
    }
    if is_policy(spec, "RequireDualStack") {
        let detail = "this cluster is not configured for dual-stack services";
        causes.push(Cause::invalid("spec.ipFamilyPolicy", &policy(spec), detail));
    }
    for (at, family) in list(spec, "ipFamilies").iter().enumerate().filter(|(_, it)| *it != "IPv4")
    {
        let detail = "not configured on this cluster";
        causes.push(Cause::invalid(format!("spec.ipFamilies[{at}]"), family, detail));
    }
    if !causes.is_empty() {
        return Err(causes);
    }
    if list(spec, "ipFamilies").is_empty() {
        spec.insert("ipFamilies".to_owned(), json!(["IPv4"]));
    }
    Ok(())
}

/// Checks the members that belong together, without regard to the cluster.
fn check(spec: &Fields, causes: &mut Vec<Cause>) {
    let addresses = list(spec, "clusterIPs");
    let shown = json!(addresses);
    let mut refuse = |detail| causes.push(Cause::invalid("spec.clusterIPs", &shown, detail));
    match (text(spec, "clusterIP"), addresses.first()) {
        ("", Some(_)) => refuse("must be empty when `clusterIP` is not specified"),
        (own, Some(first)) if own != first => refuse("first value must match `clusterIP`"),
        _ => {}
    }
    let families = list(spec, "ipFamilies");
    for (at, family) in families.iter().enumerate() {
        let field = format!("spec.ipFamilies[{at}]");
        if !is_one_of(family, FAMILIES) {
            causes.push(Cause::unsupported(&*field, family, FAMILIES));
        }
        if families[..at].contains(family) {
            causes.push(Cause::duplicate(&*field, family));
        }
    }
    if !is_one_of(&policy(spec), POLICIES) {
        causes.push(Cause::unsupported("spec.ipFamilyPolicy", &policy(spec), POLICIES));
    }
    check_addresses(addresses, families, causes);
}

fn check_addresses(addresses: &[Value], families: &[Value], causes: &mut Vec<Cause>) {
    let shown = json!(addresses);
    let mut is_valid = true;
    for (at, address) in addresses.iter().enumerate() {
        if at == 0 && address == "None" {
            if addresses.len() > 1 {
                is_valid = false;
                let detail = "'None' must be the first and only value";
                causes.push(Cause::invalid("spec.clusterIPs", &shown, detail));
            }
        } else if family(address).is_none() {
            is_valid = false;
            let detail = ip_problem(address.as_str().unwrap_or_default());
            causes.push(Cause::invalid(format!("spec.clusterIPs[{at}]"), address, detail));
        }
    }
    if addresses.len() > 2 {
        let detail = "may only hold up to 2 values";
        causes.push(Cause::invalid("spec.clusterIPs", &shown, detail));
    }
    if !is_valid {
        return;
    }
    let known: Vec<_> = addresses.iter().filter_map(family).collect();
    if known.len() > 1 && !(known.contains(&"IPv4") && known.contains(&"IPv6")) {
        let detail = "may specify no more than one IP for each IP family";
        causes.push(Cause::invalid("spec.clusterIPs", &shown, detail));
    }
    let wrong = |(at, (found, wanted)): (usize, (&&str, &Value))| {
        let is_wrong = is_one_of(wanted, FAMILIES) && wanted != found;
        is_wrong.then(|| {
            let wanted = wanted.as_str().unwrap_or_default();
            let detail = format!("expected an {wanted} value as indicated by `ipFamilies[{at}]`");
            Cause::invalid(format!("spec.clusterIPs[{at}]"), &addresses[at], &detail)
        })
    };
    causes.extend(known.iter().zip(families).enumerate().filter_map(wrong));
}

/// Drops the second family of a service that has one from now on.
fn shorten(spec: &mut Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let is_single = is_policy(spec, "SingleStack");
    for (key, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (new, old) = (list(spec, key), list(old, key));
        if is_single && new == old && new.len() > 1 {
            let first = json!(new[..1]);
            spec.insert(key.to_owned(), first);
        } else if !is_single && !new.is_empty() && new.len() < old.len() {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            causes.push(Cause::invalid("spec.ipFamilyPolicy", &policy(spec), &detail));
        }
    }
}

fn check_single_stack(spec: &Fields, causes: &mut Vec<Cause>) {
    if !is_policy(spec, "SingleStack") {
        return;
    }
    for (key, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if list(spec, key).len() == 2 {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            causes.push(Cause::invalid("spec.ipFamilyPolicy", &policy(spec), &detail));
        }
    }
}

/// Adds the families of the addresses that the client has chosen.
fn infer(spec: &mut Fields, causes: &mut Vec<Cause>) {
    let addresses = list(spec, "clusterIPs").to_vec();
    let known = list(spec, "ipFamilies").len();
    for (at, address) in addresses.iter().enumerate().skip(known) {
        match family(address) {
            None => break,
            Some("IPv4") => {
                let families = spec.entry("ipFamilies").or_insert_with(|| json!([]));
                families.as_array_mut().into_iter().for_each(|list| list.push(json!("IPv4")));
            }
            Some(family) => {
                let detail = format!("{family} is not configured on this cluster");
                let at = format!("spec.clusterIPs[{at}]");
                causes.push(Cause::invalid(at, &json!(addresses), &detail));
            }
        }
    }
}

/// Sets the families of a headless service without a selector: nothing says which its endpoints
/// have.
fn complete_unselected(spec: &mut Fields) {
    let is_single = is_policy(spec, "SingleStack");
    let mut families = list(spec, "ipFamilies").to_vec();
    if families.is_empty() {
        families.push(json!("IPv4"));
    }
    if families.len() < 2 && !is_single {
        families.push(json!(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }));
    }
    spec.insert("ipFamilies".to_owned(), json!(families));
}

/// Returns true if a service prefers two families as before, and has the same addresses.
fn keeps_preference(spec: &Fields, old: &Fields) -> bool {
    kind_of(spec) == kind_of(old)
        && matches!(kind_of(spec), "ClusterIP" | "NodePort" | "LoadBalancer")
        && [spec, old].iter().all(|it| is_policy(it, "PreferDualStack"))
        && ["clusterIPs", "ipFamilies"].iter().all(|key| list(spec, key) == list(old, key))
}

fn is_unselected(spec: &Fields) -> bool {
    let selector = spec.get("selector").and_then(Value::as_object);
    is_headless(spec) && selector.is_none_or(Fields::is_empty)
}

fn policy(spec: &Fields) -> Value {
    spec.get("ipFamilyPolicy").cloned().unwrap_or_default()
}

fn is_policy(spec: &Fields, policy: &str) -> bool {
    text(spec, "ipFamilyPolicy") == policy
}

fn is_one_of(value: &Value, known: &[&str]) -> bool {
    value.as_str().is_some_and(|text| known.contains(&text))
}

/// Returns the family of an address; `None` if it is no address.
fn family(address: &Value) -> Option<&'static str> {
    let address: std::net::IpAddr = address.as_str()?.parse().ok()?;
    Some(if address.is_ipv4() { "IPv4" } else { "IPv6" })
}
