//! Pod specs, in pods and templates.

use serde_json::{Value, json};

use super::Test::{Between, By, Each, Has, OneOf, Text};
use super::addresses::address;
use super::affinity::AFFINITY;
use super::pod_containers::Pod;
use super::tolerations::TOLERATION;
use super::{
    Check, check_text, container, container_ports, environment, is_empty, items, member,
    pod_annotations, pod_claims, pod_dns, pod_host, pod_level, pod_os, pod_profiles, pod_spread,
    quantities, security, selectors, text, volumes, windows,
};
use crate::names;
use crate::status::Cause;

/// The checks before those of the security context.
const SCHEDULING: &[Check] = &[
    ("restartPolicy", OneOf(&["Always", "OnFailure", "Never"])),
    ("dnsPolicy", OneOf(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"])),
    ("nodeSelector", By(selectors::labels)),
];

const POD_SPEC: &[Check] = &[
    ("affinity", Has(AFFINITY)),
    ("dnsConfig", By(pod_dns::config)),
    ("readinessGates", Each(READINESS_GATE)),
    ("schedulingGates", By(gates)),
    ("topologySpreadConstraints", By(pod_spread::constraints)),
    ("", By(windows::host_processes)),
    ("", By(pod_host::users)),
    ("hostnameOverride", By(pod_host::name)),
    ("serviceAccountName", Text(names::dns_subdomain)),
    ("nodeName", Text(names::dns_subdomain)),
    ("activeDeadlineSeconds", Between(1, 2_147_483_647)),
    ("hostname", Text(names::dns_label)),
    ("subdomain", Text(names::dns_label)),
    ("tolerations", Each(TOLERATION)),
    ("hostAliases", Each(HOST_ALIAS)),
    ("priorityClassName", Text(names::dns_subdomain)),
    ("runtimeClassName", By(runtime_class)),
    ("preemptionPolicy", OneOf(&["PreemptLowerPriority", "Never"])),
    ("overhead", By(overhead)),
    ("", By(pod_os::check)),
];

const READINESS_GATE: &[Check] = &[("conditionType", By(condition_type))];

const HOST_ALIAS: &[Check] = &[("ip", By(alias_address)), ("hostnames", By(hostnames))];

/// Checks that only pods have, but no templates.
const ONLY_IN_PODS: &[Check] = &[
    ("", By(tokens)),
    ("containers", Each(&[("image", By(container::image))])),
    ("initContainers", Each(&[("image", By(container::image))])),
];

/// Checks a spec (`ValidatePodSpec`). The metadata are those of the pod; a template has none.
fn check(spec: &Value, metadata: Option<&Value>, at: &str, causes: &mut Vec<Cause>) {
    let pod_name = metadata.map_or("", |metadata| text(metadata, "name"));
    let volumes_at = format!("{at}.volumes");
    let volumes = volumes::check(member(spec, "volumes"), pod_name, &volumes_at, causes);
    pod_claims::check(spec, metadata, at, causes);
    let pod = Pod { spec, volumes };
    container::check(&pod, at, causes);
    super::run(&[("resources", By(pod_level::resources))], spec, at, causes);
    container_ports::check_host_network(spec, metadata.is_some(), at, causes);
    super::run(SCHEDULING, spec, at, causes);
    super::run(security::OF_POD, spec, at, causes);
    super::run(POD_SPEC, spec, at, causes);
    environment::check_files(spec, at, causes);
}

/// Checks the metadata and the spec of a pod (`validatePodMetadataAndSpec`).
pub(crate) fn pod(spec: &Value, metadata: &Value, causes: &mut Vec<Cause>) {
    pod_annotations::check(metadata, spec, "metadata.annotations", causes);
    check(spec, Some(metadata), "spec", causes);
    super::run(ONLY_IN_PODS, spec, "spec", causes);
}

/// Checks that a new pod has no member that only an update can set (`ValidatePodCreate`).
pub(crate) fn new_pod(spec: &Value, metadata: &Value, causes: &mut Vec<Cause>) {
    if !is_empty(member(spec, "ephemeralContainers")) {
        causes.push(Cause::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    if !is_empty(member(spec, "schedulingGates")) && !text(spec, "nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        causes.push(Cause::forbidden("spec.nodeName", detail));
    }
    pod_profiles::check(metadata, spec, "spec", causes);
}

/// Checks that a pod without a service account has no token of it.
fn tokens(_: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    if !text(spec, "serviceAccountName").is_empty() {
        return;
    }
    for (place, volume) in items(member(spec, "volumes")).iter().enumerate() {
        let sources = items(member(member(volume, "projected"), "sources"));
        for (source_place, source) in sources.iter().enumerate() {
            if !member(source, "serviceAccountToken").is_null() {
                let at = format!("{at}.volumes[{place}].projected.sources[{source_place}]");
                let detail = "must not be specified when serviceAccountName is not set";
                causes.push(Cause::forbidden(format!("{at}.serviceAccountToken"), detail));
            }
        }
    }
}

fn gates(_: &Value, gates: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut known = Vec::new();
    for (place, gate) in items(gates).iter().enumerate() {
        let (at, name) = (format!("{at}[{place}]"), text(gate, "name"));
        check_text(&json!(name), names::qualified, &at, causes);
        if known.contains(&name) {
            causes.push(Cause::duplicate(at, &json!(name)));
        }
        known.push(name);
    }
}

fn condition_type(_: &Value, kind: &Value, at: &str, causes: &mut Vec<Cause>) {
    check_text(&json!(kind.as_str().unwrap_or_default()), names::qualified, at, causes);
}

fn alias_address(_: &Value, ip: &Value, at: &str, causes: &mut Vec<Cause>) {
    address(ip, at, causes);
}

fn hostnames(_: &Value, hostnames: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (place, name) in items(hostnames).iter().enumerate() {
        check_text(name, names::dns_subdomain, &format!("{at}[{place}]"), causes);
    }
}

fn runtime_class(_: &Value, name: &Value, at: &str, causes: &mut Vec<Cause>) {
    check_text(name, names::dns_subdomain, at, causes);
}

/// Checks the amounts that a pod needs besides its containers, like limits of a container.
fn overhead(_: &Value, overhead: &Value, at: &str, causes: &mut Vec<Cause>) {
    if !overhead.is_null() {
        let limits = json!({"limits": overhead});
        quantities::resources(overhead, &limits, at, causes);
    }
}

/// Checks a template of pods that `kind` creates, with the restart policies that it allows.
pub(crate) fn template(
    template: &Value,
    at: &str,
    (kind, restarts): (&str, &[&str]),
    causes: &mut Vec<Cause>,
) {
    let metadata = member(template, "metadata");
    selectors::labels(metadata, member(metadata, "labels"), &format!("{at}.labels"), causes);
    let annotations_at = format!("{at}.annotations");
    selectors::annotations(member(metadata, "annotations"), &annotations_at, causes);
    let spec = member(template, "spec");
    pod_annotations::check(metadata, spec, &annotations_at, causes);
    let at = format!("{at}.spec");
    check(spec, None, &at, causes);
    pod_profiles::check(metadata, spec, &at, causes);
    if !is_empty(member(spec, "ephemeralContainers")) {
        let detail = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden(format!("{at}.ephemeralContainers"), detail));
    }
    lifetime(spec, &at, (kind, restarts), causes);
}

/// Checks the restart policy and the deadline of a template at a path.
pub(super) fn lifetime(
    spec: &Value,
    at: &str,
    (kind, restarts): (&str, &[&str]),
    causes: &mut Vec<Cause>,
) {
    restart_policy(spec, at, restarts, causes);
    if restarts.len() == 1 && !is_empty(member(spec, "activeDeadlineSeconds")) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(Cause::forbidden(format!("{at}.activeDeadlineSeconds"), &detail));
    }
}

fn restart_policy(spec: &Value, at: &str, restarts: &[&str], causes: &mut Vec<Cause>) {
    let policy = member(spec, "restartPolicy");
    let fits = policy.as_str().is_some_and(|policy| restarts.contains(&policy));
    let policy_at = format!("{at}.restartPolicy");
    match restarts {
        _ if fits => {}
        // A missing policy is `Always`.
        several if several.len() > 1 && *policy == "Always" => {
            let valid: Vec<String> = several.iter().map(|one| format!("\"{one}\"")).collect();
            let detail = format!("valid values: {}", valid.join(", "));
            causes.push(Cause::required(policy_at, &detail));
        }
        _ => causes.push(Cause::unsupported(policy_at, policy, restarts)),
    }
}
