//! Cells that need more than a path.

use serde_json::{Value, json};

use super::Subject;
use super::duration;
use super::text::{age, labels, members, selector, unless_empty};
use crate::fields::text;

// === nodes ===

pub(super) fn node_status(node: &Subject<'_>) -> Value {
    let conditions = node.list("status.conditions");
    let ready = conditions.iter().find(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if node.get("spec.unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    json!(status)
}

pub(super) fn node_roles(node: &Subject<'_>) -> Value {
    let labels = node.get("metadata.labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            if key == "kubernetes.io/role" {
                return value.as_str();
            }
            key.strip_prefix("node-role.kubernetes.io/")
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    json!(unless_empty(roles.join(","), "<none>"))
}

pub(super) fn internal_ip(node: &Subject<'_>) -> Value {
    node_address(node, "InternalIP")
}

pub(super) fn external_ip(node: &Subject<'_>) -> Value {
    node_address(node, "ExternalIP")
}

fn node_address(node: &Subject<'_>, kind: &str) -> Value {
    let addresses = node.list("status.addresses");
    let found = addresses.iter().find(|address| text(address, "type") == kind);
    json!(found.map_or("<none>", |address| text(address, "address")))
}

// === services ===

pub(super) fn cluster_ip(service: &Subject<'_>) -> Value {
    json!(service.list("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or("<none>"))
}

pub(super) fn service_external_ip(service: &Subject<'_>) -> Value {
    let own: Vec<&str> =
        service.list("spec.externalIPs").iter().filter_map(Value::as_str).collect();
    json!(match service.text("spec.type") {
        "ClusterIP" | "NodePort" => unless_empty(own.join(","), "<none>"),
        "LoadBalancer" => {
            let mut all = balancer_addresses(service);
            all.extend(own);
            unless_empty(all.join(","), "<pending>")
        }
        "ExternalName" => service.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    })
}

fn balancer_addresses<'a>(service: &'a Subject<'_>) -> Vec<&'a str> {
    let mut addresses: Vec<&str> = service
        .list("status.loadBalancer.ingress")
        .iter()
        .map(|ingress| match text(ingress, "ip") {
            "" => text(ingress, "hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

pub(super) fn balancer_address(ingress: &Subject<'_>) -> Value {
    json!(balancer_addresses(ingress).join(","))
}

pub(super) fn service_ports(service: &Subject<'_>) -> Value {
    let ports: Vec<String> = service
        .list("spec.ports")
        .iter()
        .map(|port| {
            let number = |name: &str| port.get(name).and_then(Value::as_i64).unwrap_or(0);
            let protocol = text(port, "protocol");
            match number("nodePort") {
                0 => format!("{}/{protocol}", number("port")),
                node_port => format!("{}:{node_port}/{protocol}", number("port")),
            }
        })
        .collect();
    json!(unless_empty(ports.join(","), "<none>"))
}

// === roles ===

pub(super) fn bound_role(binding: &Subject<'_>) -> Value {
    json!(format!("{}/{}", binding.text("roleRef.kind"), binding.text("roleRef.name")))
}

pub(super) fn bound_users(binding: &Subject<'_>) -> Value {
    bound(binding, "User", |user| text(user, "name").to_owned())
}

pub(super) fn bound_groups(binding: &Subject<'_>) -> Value {
    bound(binding, "Group", |group| text(group, "name").to_owned())
}

pub(super) fn bound_accounts(binding: &Subject<'_>) -> Value {
    bound(binding, "ServiceAccount", |account| {
        format!("{}/{}", text(account, "namespace"), text(account, "name"))
    })
}

fn bound(binding: &Subject<'_>, kind: &str, name: fn(&Value) -> String) -> Value {
    let subjects = binding.list("subjects").iter();
    let names: Vec<String> =
        subjects.filter(|subject| text(subject, "kind") == kind).map(name).collect();
    json!(names.join(", "))
}

// === data and storage ===

pub(super) fn data_count(object: &Subject<'_>) -> Value {
    let count =
        |path: &str| object.get(path).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    json!(count("data") + count("binaryData"))
}

pub(super) fn claim_status(claim: &Subject<'_>) -> Value {
    json!(if claim.is_terminating() { "Terminating" } else { claim.text("status.phase") })
}

pub(super) fn claim_capacity(claim: &Subject<'_>) -> Value {
    json!(if is_bound(claim) { claim.text("status.capacity.storage") } else { "" })
}

pub(super) fn claim_access_modes(claim: &Subject<'_>) -> Value {
    if !is_bound(claim) {
        return json!("");
    }
    json!(short_modes(claim.list("status.accessModes")))
}

/// Returns access modes in short: `RWO,ROX`.
pub(super) fn short_modes(modes: &[Value]) -> String {
    let held: Vec<&str> = modes.iter().filter_map(Value::as_str).collect();
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short: Vec<&str> =
        known.iter().filter(|(mode, _)| held.contains(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

pub(super) fn claim_class(claim: &Subject<'_>) -> Value {
    let annotations = claim.get("metadata.annotations");
    let old = annotations.and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    json!(old.and_then(Value::as_str).unwrap_or_else(|| claim.text("spec.storageClassName")))
}

pub(super) fn claim_mode(claim: &Subject<'_>) -> Value {
    let mode = claim.text("spec.volumeMode");
    json!(if mode.is_empty() { "<unset>" } else { mode })
}

fn is_bound(claim: &Subject<'_>) -> bool {
    !claim.text("spec.volumeName").is_empty()
}

// === events ===

pub(super) fn event_last_seen(event: &Subject<'_>) -> Value {
    if event.get("series").is_some_and(Value::is_object) {
        return json!(event.age("series.lastObservedTime"));
    }
    if event.time("lastTimestamp").is_some() {
        return json!(event.age("lastTimestamp"));
    }
    event_first_seen(event)
}

pub(super) fn event_first_seen(event: &Subject<'_>) -> Value {
    let first = event.time("firstTimestamp").or_else(|| event.time("eventTime"));
    json!(age(first, event.now))
}

pub(super) fn event_object(event: &Subject<'_>) -> Value {
    let kind = event.text("involvedObject.kind").to_lowercase();
    json!(match event.text("involvedObject.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    })
}

pub(super) fn event_source(event: &Subject<'_>) -> Value {
    let or =
        |first: &str, second: &str| unless_empty(event.text(first).to_owned(), event.text(second));
    let component = or("source.component", "reportingComponent");
    let instance = or("source.host", "reportingInstance");
    json!(if instance.is_empty() { component } else { format!("{component}, {instance}") })
}

pub(super) fn event_message(event: &Subject<'_>) -> Value {
    json!(event.text("message").trim())
}

pub(super) fn event_count(event: &Subject<'_>) -> Value {
    if event.get("series").is_some_and(Value::is_object) {
        return json!(event.number("series.count"));
    }
    // An event that was never repeated may omit its count.
    json!(event.number("count").max(1))
}

// === workloads ===

pub(super) fn ready_of_desired(workload: &Subject<'_>) -> Value {
    json!(format!(
        "{}/{}",
        workload.number("status.readyReplicas"),
        workload.number("spec.replicas")
    ))
}

pub(super) fn containers(workload: &Subject<'_>) -> Value {
    json!(members(workload.list("spec.template.spec.containers"), "name"))
}

pub(super) fn images(workload: &Subject<'_>) -> Value {
    json!(members(workload.list("spec.template.spec.containers"), "image"))
}

pub(super) fn spec_selector(workload: &Subject<'_>) -> Value {
    json!(selector(workload.get("spec.selector")))
}

pub(super) fn spec_labels(workload: &Subject<'_>) -> Value {
    json!(labels(workload.get("spec.selector")))
}

pub(super) fn node_selector(workload: &Subject<'_>) -> Value {
    json!(labels(workload.get("spec.template.spec.nodeSelector")))
}

pub(super) fn job_status(job: &Subject<'_>) -> Value {
    let conditions = job.list("status.conditions");
    let holds = |kind: &str| {
        conditions.iter().any(|one| text(one, "type") == kind && text(one, "status") == "True")
    };
    json!(if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if job.is_terminating() {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    })
}

pub(super) fn job_completions(job: &Subject<'_>) -> Value {
    let done = job.number("status.succeeded");
    if job.get("spec.completions").is_some() {
        return json!(format!("{done}/{}", job.number("spec.completions")));
    }
    json!(match job.number("spec.parallelism") {
        several if several > 1 => format!("{done}/1 of {several}"),
        _ => format!("{done}/1"),
    })
}

pub(super) fn job_duration(job: &Subject<'_>) -> Value {
    let Some(start) = job.time("status.startTime") else { return json!("") };
    json!(duration::between(start, job.time("status.completionTime").unwrap_or(job.now)))
}

const JOB_TEMPLATE: &str = "spec.jobTemplate.spec.template.spec.containers";

pub(super) fn cron_job_containers(job: &Subject<'_>) -> Value {
    json!(members(job.list(JOB_TEMPLATE), "name"))
}

pub(super) fn cron_job_images(job: &Subject<'_>) -> Value {
    json!(members(job.list(JOB_TEMPLATE), "image"))
}

pub(super) fn cron_job_selector(job: &Subject<'_>) -> Value {
    json!(selector(job.get("spec.jobTemplate.spec.selector")))
}

pub(super) fn cron_job_suspend(job: &Subject<'_>) -> Value {
    json!(match job.get("spec.suspend").and_then(Value::as_bool) {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    })
}

pub(super) fn cron_job_active(job: &Subject<'_>) -> Value {
    json!(job.list("status.active").len())
}

pub(super) fn cron_job_last(job: &Subject<'_>) -> Value {
    json!(match job.time("status.lastScheduleTime") {
        None => "<none>".to_owned(),
        last => age(last, job.now),
    })
}

// === policies and devices ===

pub(super) fn quota_requests(quota: &Subject<'_>) -> Value {
    quota_of(quota, false)
}

pub(super) fn quota_limits(quota: &Subject<'_>) -> Value {
    quota_of(quota, true)
}

fn quota_of(quota: &Subject<'_>, limits: bool) -> Value {
    let used = quota.get("status.used");
    let hard = quota.get("status.hard").and_then(Value::as_object);
    let texts: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.contains("limits") == limits)
        .map(|(name, hard)| {
            let used = used.map_or("", |used| text(used, name));
            let used = if used.is_empty() { "0" } else { used };
            format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
        })
        .collect();
    json!(texts.join(", "))
}

pub(super) fn resource_claim_state(claim: &Subject<'_>) -> Value {
    let mut states = Vec::new();
    if claim.is_terminating() {
        states.push("deleted");
    }
    if claim.get("status.allocation").is_some_and(Value::is_object) {
        states.push("allocated");
        if !claim.list("status.reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !claim.is_terminating() {
        states.push("pending");
    }
    json!(states.join(","))
}

pub(super) fn global_default(class: &Subject<'_>) -> Value {
    json!(class.get("globalDefault") == Some(&json!(true)))
}
