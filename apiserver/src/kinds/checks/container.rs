//! The containers of a pod: regular ones, init containers, and ephemeral ones.

use serde_json::{Value, json};

use super::Test::{By, Has, OneOf, Required, Text};
use super::environment::ENVIRONMENT;
use super::pod_containers::Pod;
use super::probes::{self, PROBES};
use super::quantities::resources;
use super::{
    Check, container_ports as ports, container_restarts as restarts, is_empty, items, member,
    security, text, volume_mounts,
};
use crate::names;
use crate::status::Cause;

const NAMED: &[Check] = &[
    ("name", Required("")),
    ("name", Text(names::dns_label)),
    ("image", Required("")),
    ("terminationMessagePolicy", OneOf(&["File", "FallbackToLogsOnError"])),
    ("ports", By(ports::check)),
];

const RESOURCES: &[Check] = &[
    ("imagePullPolicy", OneOf(&["Always", "IfNotPresent", "Never"])),
    ("resources", Has(&[("", By(resources))])),
];

const IMAGE: &[Check] = &[("image", By(image))];

/// Members that an init container has only if it runs beside the regular containers.
const OF_SIDECARS: [&str; 4] = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

/// Checks that the image has no space around it. Templates may have it.
pub(super) fn image(_: &Value, image: &Value, at: &str, causes: &mut Vec<Cause>) {
    if image.as_str().is_some_and(|image| image.trim() != image) {
        causes.push(Cause::invalid(at, image, "must not have leading or trailing whitespace"));
    }
}

/// Checks all containers of a pod.
pub(super) fn check(pod: &Pod<'_>, at: &str, causes: &mut Vec<Cause>) {
    let list = |name| items(member(pod.spec, name));
    let containers_at = format!("{at}.containers");
    if list("containers").is_empty() {
        causes.push(Cause::required(&*containers_at, ""));
    }
    let mut known: Vec<&str> = Vec::new();
    for (place, container) in list("containers").iter().enumerate() {
        let at = format!("{containers_at}[{place}]");
        check_common(container, pod, &at, causes);
        check_name(container, &mut known, &at, causes);
        probes::lifecycle(container, pod.period(), &at, causes);
        super::run(PROBES, container, &at, causes);
        restarts::check_rules(container, &at, causes);
    }
    ports::check_hosts(list("containers"), &containers_at, causes);
    check_init_containers(pod, &format!("{at}.initContainers"), causes);
    check_ephemeral_containers(pod, &format!("{at}.ephemeralContainers"), causes);
}

/// Checks what containers of all sorts have (`validateContainerCommon`).
fn check_common(container: &Value, pod: &Pod<'_>, at: &str, causes: &mut Vec<Cause>) {
    super::run(NAMED, container, at, causes);
    super::run(ENVIRONMENT, container, at, causes);
    volume_mounts::mounts(container, pod, at, causes);
    volume_mounts::devices(container, pod, at, causes);
    super::run(RESOURCES, container, at, causes);
    check_claims(container, pod, at, causes);
    let pod_restart = text(pod.spec, "restartPolicy");
    restarts::check_resizes(container, pod_restart, &format!("{at}.resizePolicy"), causes);
    let has_host_users = member(pod.spec, "hostUsers") != false;
    let context = member(container, "securityContext");
    security::of_container(context, has_host_users, &format!("{at}.securityContext"), causes);
}

/// Checks that a container has a name of its own, and adds it to the known ones.
fn check_name<'a>(
    container: &'a Value,
    known: &mut Vec<&'a str>,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let name = text(container, "name");
    if known.contains(&name) {
        causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
    } else {
        known.push(name);
    }
}

fn names_of<'a>(spec: &'a Value, list: &str) -> Vec<&'a str> {
    items(member(spec, list)).iter().map(|item| text(item, "name")).collect()
}

fn check_init_containers(pod: &Pod<'_>, at: &str, causes: &mut Vec<Cause>) {
    let mut known = names_of(pod.spec, "containers");
    for (place, container) in items(member(pod.spec, "initContainers")).iter().enumerate() {
        let item_at = format!("{at}[{place}]");
        check_common(container, pod, &item_at, causes);
        restarts::check_init(container, &item_at, causes);
        // As in upstream, init containers may all lack a name, but not beside a regular one.
        if !text(container, "name").is_empty() || known.contains(&"") {
            check_name(container, &mut known, &item_at, causes);
        }
        // They run one by one. The real server writes each as the first one.
        ports::check_hosts(std::slice::from_ref(container), at, causes);
        let is_sidecar = text(container, "restartPolicy") == "Always";
        if is_sidecar {
            probes::lifecycle(container, pod.period(), &item_at, causes);
            super::run(PROBES, container, &item_at, causes);
            continue;
        }
        for key in OF_SIDECARS.iter().filter(|key| !member(container, key).is_null()) {
            let detail = "may not be set for init containers without restartPolicy=Always";
            causes.push(Cause::forbidden(format!("{item_at}.{key}"), detail));
        }
        restarts::check_init_resizes(container, &format!("{item_at}.resizePolicy"), causes);
    }
}

/// Checks containers for debugging: names are unique in the pod, and what makes a container a part
/// of the workload is missing.
fn check_ephemeral_containers(pod: &Pod<'_>, at: &str, causes: &mut Vec<Cause>) {
    const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
    const FORBIDDEN: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let mut others = names_of(pod.spec, "containers");
    others.extend(names_of(pod.spec, "initContainers"));
    let mut known = others.clone();
    for (place, container) in items(member(pod.spec, "ephemeralContainers")).iter().enumerate() {
        let at = format!("{at}[{place}]");
        check_common(container, pod, &at, causes);
        super::run(IMAGE, container, &at, causes);
        check_name(container, &mut known, &at, causes);
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(&target) {
            causes.push(Cause::not_found(format!("{at}.targetContainerName"), &json!(target), ""));
        }
        // Resources are no pointer in upstream: each container has them.
        let is_set = |key: &str| match key {
            "resources" => !is_empty(member(container, key)),
            other => !member(container, other).is_null(),
        };
        for key in FORBIDDEN.iter().filter(|key| is_set(key)) {
            causes.push(Cause::forbidden(format!("{at}.{key}"), NOT_EPHEMERAL));
        }
        for (place, mount) in items(member(container, "volumeMounts")).iter().enumerate() {
            let given = ["subPath", "subPathExpr"];
            for key in given.iter().filter(|key| !text(mount, key).is_empty()) {
                let field = format!("{at}.volumeMounts[{place}].{key}");
                causes.push(Cause::forbidden(field, NOT_EPHEMERAL));
            }
        }
    }
}

/// Checks that a container claims only what the pod claims, and that once
/// (`validateResourceClaimNames`).
fn check_claims(container: &Value, pod: &Pod<'_>, at: &str, causes: &mut Vec<Cause>) {
    let used = items(member(member(container, "resources"), "claims"));
    if used.is_empty() {
        return;
    }
    let mut of_pod = names_of(pod.spec, "resourceClaims");
    of_pod.retain(|name| !name.is_empty());
    of_pod.sort_unstable();
    of_pod.dedup();
    let mut detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
    if of_pod.is_empty() {
        detail += " which is empty";
    } else {
        detail = format!("{detail}: {}", of_pod.join(", "));
    }
    let mut known: Vec<(&str, &str)> = Vec::new();
    for (place, claim) in used.iter().enumerate() {
        let at = format!("{at}.resources.claims[{place}]");
        let name = text(claim, "name");
        if name.is_empty() {
            causes.push(Cause::required(at, ""));
            continue;
        }
        check_request(claim, &mut known, &at, causes);
        if !of_pod.contains(&name) {
            causes.push(Cause::not_found(at, &json!(name), &detail));
        }
    }
}

/// Checks that no two items of a container use one request of a claim. An item without a request
/// uses them all.
fn check_request<'a>(
    claim: &'a Value,
    known: &mut Vec<(&'a str, &'a str)>,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let [name, request] = ["name", "request"].map(|key| text(claim, key));
    if known.contains(&(name, "")) {
        causes.push(Cause::duplicate(at, &json!(name)));
        return;
    }
    super::run(&[("request", Text(names::dns_label))], claim, at, causes);
    if request.is_empty() {
        let count = known.iter().filter(|(claim, _)| *claim == name).count();
        causes.extend((0..count).map(|_| Cause::duplicate(at, &json!(name))));
    } else if known.contains(&(name, request)) {
        causes.push(Cause::duplicate(at, &json!(format!("{name}/{request}"))));
    }
    if !known.contains(&(name, request)) {
        known.push((name, request));
    }
}
