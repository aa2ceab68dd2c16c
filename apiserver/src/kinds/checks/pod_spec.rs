//! Pod specs, in pods and templates.

use serde_json::{Value, json};

use super::Test::{AtLeast, Between, By, Each, EachNamed, Has, NotNegative, OneOf, Required, Text};
use super::quantities::resources;
use super::{Check, is_empty, items, member, pod_dns, pod_level, selectors, text};
use crate::names;
use crate::status::Cause;

pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

pub(crate) const POD_SPEC: &[Check] = &[
    ("volumes", EachNamed("name", VOLUME)),
    ("resourceClaims", EachNamed("name", CLAIM)),
    ("containers", Required("")),
    ("containers", EachNamed("name", CONTAINER)),
    ("containers", By(mounts)),
    ("containers", By(claims)),
    ("initContainers", EachNamed("name", CONTAINER)),
    ("initContainers", By(mounts)),
    ("initContainers", By(other_names)),
    ("ephemeralContainers", By(ephemeral)),
    ("resources", By(pod_level::resources)),
    ("restartPolicy", OneOf(&["Always", "OnFailure", "Never"])),
    ("dnsPolicy", OneOf(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"])),
    ("nodeSelector", By(selectors::labels)),
    ("dnsConfig", By(pod_dns::config)),
    ("serviceAccountName", Text(names::dns_subdomain)),
    ("nodeName", Text(names::dns_subdomain)),
    ("activeDeadlineSeconds", Between(1, 2_147_483_647)),
    ("hostname", Text(names::dns_label)),
    ("subdomain", Text(names::dns_label)),
    ("tolerations", Each(TOLERATION)),
    ("schedulingGates", By(gates)),
];

const CONTAINER: &[Check] = &[
    ("name", Required("")),
    ("name", Text(names::dns_label)),
    ("image", Required("")),
    ("image", By(image)),
    ("terminationMessagePolicy", OneOf(&["File", "FallbackToLogsOnError"])),
    ("ports", EachNamed("name", PORT)),
    ("env", Each(VARIABLE)),
    ("livenessProbe", Has(PROBE)),
    ("readinessProbe", Has(PROBE)),
    ("startupProbe", Has(PROBE)),
    ("imagePullPolicy", OneOf(&["Always", "IfNotPresent", "Never"])),
    ("resources", By(resources)),
];

const PORT: &[Check] = &[
    ("name", Text(names::port)),
    ("containerPort", By(container_port)),
    ("hostPort", Between(1, 65_535)),
    ("protocol", OneOf(PROTOCOLS)),
];

const VARIABLE: &[Check] =
    &[("name", Required("")), ("name", Text(names::environment)), ("valueFrom", By(source))];

const PROBE: &[Check] = &[
    ("", By(handler)),
    ("initialDelaySeconds", NotNegative),
    ("timeoutSeconds", NotNegative),
    ("periodSeconds", NotNegative),
    ("successThreshold", NotNegative),
    ("failureThreshold", NotNegative),
    ("terminationGracePeriodSeconds", AtLeast(1, "must be greater than 0")),
];

const VOLUME: &[Check] =
    &[("", By(one_source)), ("name", Required("")), ("name", Text(names::dns_label))];

/// The sources of a volume, in the order of the real server, and the member that each needs.
const SOURCES: &[(&str, &str)] = &[
    ("emptyDir", ""),
    ("hostPath", "path"),
    ("gitRepo", ""),
    ("gcePersistentDisk", ""),
    ("awsElasticBlockStore", ""),
    ("secret", "secretName"),
    ("nfs", ""),
    ("iscsi", ""),
    ("glusterfs", ""),
    ("flocker", ""),
    ("persistentVolumeClaim", "claimName"),
    ("rbd", ""),
    ("cinder", ""),
    ("cephfs", ""),
    ("quobyte", ""),
    ("downwardAPI", ""),
    ("fc", ""),
    ("azureFile", ""),
    ("configMap", "name"),
    ("vsphereVolume", ""),
    ("photonPersistentDisk", ""),
    ("portworxVolume", ""),
    ("azureDisk", ""),
    ("storageos", ""),
    ("projected", ""),
    ("scaleIO", ""),
    ("csi", ""),
    ("ephemeral", ""),
    ("image", ""),
];

const CLAIM: &[Check] = &[
    ("name", Required("")),
    ("name", Text(names::dns_label)),
    ("", By(claim_source)),
    ("resourceClaimName", Text(names::dns_subdomain)),
    ("resourceClaimTemplateName", Text(names::dns_subdomain)),
];

pub(crate) const TOLERATION: &[Check] = &[("key", Text(names::qualified)), ("", By(toleration))];

fn image(_: &Value, image: &Value, at: &str, causes: &mut Vec<Cause>) {
    if image.as_str().is_some_and(|image| image.trim() != image) {
        causes.push(Cause::invalid(at, image, "must not have leading or trailing whitespace"));
    }
}

fn container_port(_: &Value, port: &Value, at: &str, causes: &mut Vec<Cause>) {
    match port.as_i64() {
        Some(0) | None => causes.push(Cause::required(at, "")),
        Some(1..=65_535) => {}
        Some(_) => {
            causes.push(Cause::invalid(at, port, "must be between 1 and 65535, inclusive"));
        }
    }
}

fn source(variable: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    const KINDS: &str =
        "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
    let Some(members) = source.as_object() else { return };
    let detail = if members.is_empty() {
        format!("must specify one of: {KINDS}")
    } else if !text(variable, "value").is_empty() {
        "may not be specified when `value` is not empty".to_owned()
    } else if members.len() > 1 {
        "may not have more than one field specified at a time".to_owned()
    } else {
        let field = member(source, "fieldRef");
        super::run(&[("fieldPath", By(field_path))], field, &format!("{at}.fieldRef"), causes);
        return;
    };
    causes.push(Cause::invalid(at, &json!(""), &detail));
}

/// The fields of a pod that the downward API offers.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn field_path(_: &Value, path: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(field) = path.as_str() else { return };
    let of_map =
        field.starts_with("metadata.labels[") || field.starts_with("metadata.annotations[");
    if !of_map && !FIELDS.contains(&field) {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        causes.push(Cause::invalid(at, path, &detail));
    }
}

fn handler(_: &Value, probe: &Value, at: &str, causes: &mut Vec<Cause>) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc"];
    let mut given = kinds.iter().filter(|kind| !member(probe, kind).is_null());
    if given.next().is_none() {
        causes.push(Cause::required(at, "must specify a handler type"));
    }
    for kind in given {
        let detail = "may not specify more than 1 handler type";
        causes.push(Cause::forbidden(format!("{at}.{kind}"), detail));
    }
}

fn one_source(_: &Value, volume: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut given = SOURCES.iter().filter(|(kind, _)| !member(volume, kind).is_null());
    if let Some((kind, needed)) = given.next().filter(|(_, needed)| !needed.is_empty()) {
        let at = format!("{at}.{kind}");
        super::run(&[(*needed, Required(""))], member(volume, kind), &at, causes);
    }
    for (kind, _) in given {
        let detail = "may not specify more than 1 volume type";
        causes.push(Cause::forbidden(format!("{at}.{kind}"), detail));
    }
}

/// Shows a claim as the real server's messages do.
fn claim_source(_: &Value, claim: &Value, at: &str, causes: &mut Vec<Cause>) {
    let by_name = member(claim, "resourceClaimName");
    let by_template = member(claim, "resourceClaimTemplateName");
    let detail = match (by_name.is_null(), by_template.is_null()) {
        (true, true) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        (false, false) => {
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        }
        _ => return,
    };
    let shown = json!({
        "Name": member(claim, "name"), "ResourceClaimName": by_name,
        "ResourceClaimTemplateName": by_template,
    });
    causes.push(Cause::invalid(at, &shown, detail));
}

fn toleration(_: &Value, toleration: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [key, operator, value] = ["key", "operator", "value"].map(|name| text(toleration, name));
    let operator_at = format!("{at}.operator");
    if key.is_empty() && operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values \
            and all keys\"";
        causes.push(Cause::invalid(&operator_at, &json!(operator), detail));
    }
    let effect = text(toleration, "effect");
    if !member(toleration, "tolerationSeconds").is_null() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.push(Cause::invalid(format!("{at}.effect"), &json!(effect), detail));
    }
    match operator {
        "" | "Equal" => {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                causes.push(Cause::invalid(&operator_at, &json!(value), &wrong.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            causes.push(Cause::invalid(&operator_at, &json!(value), detail));
        }
        "Exists" => {}
        other => {
            let known = &["Equal", "Exists"];
            causes.push(Cause::unsupported(&operator_at, &json!(other), known));
        }
    }
}

fn gates(spec: &Value, gates: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut known = Vec::new();
    for (place, gate) in items(gates).iter().enumerate() {
        let (at, name) = (format!("{at}[{place}]"), text(gate, "name"));
        super::check_text(&json!(name), names::qualified, &at, causes);
        if known.contains(&name) {
            causes.push(Cause::duplicate(at, &json!(name)));
        }
        known.push(name);
    }
    if !known.is_empty() && !text(spec, "nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        causes.push(Cause::forbidden(at.replace("schedulingGates", "nodeName"), detail));
    }
}

/// Checks that containers mount only existing volumes.
fn mounts(spec: &Value, containers: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (place, container) in items(containers).iter().enumerate() {
        mounts_of(spec, container, &format!("{at}[{place}]"), causes);
    }
}

fn mounts_of(spec: &Value, container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mounts = items(member(container, "volumeMounts"));
    if mounts.is_empty() {
        return;
    }
    // An invalid volume does not count.
    let is_valid = |volume: &&Value| {
        let mut found = Vec::new();
        super::run(VOLUME, volume, "", &mut found);
        found.is_empty()
    };
    let volumes = items(member(spec, "volumes")).iter().filter(is_valid);
    let volumes: Vec<&str> = volumes.map(|one| text(one, "name")).collect();
    for (place, mount) in mounts.iter().enumerate() {
        let at = format!("{at}.volumeMounts[{place}]");
        let name = text(mount, "name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{at}.name"), ""));
        }
        if !volumes.contains(&name) {
            causes.push(Cause::not_found(format!("{at}.name"), &json!(name), ""));
        }
        if text(mount, "mountPath").is_empty() {
            causes.push(Cause::required(format!("{at}.mountPath"), ""));
        }
    }
}

/// Checks that containers claim only what the pod claims.
fn claims(spec: &Value, containers: &Value, at: &str, causes: &mut Vec<Cause>) {
    let claims = items(member(spec, "resourceClaims"));
    let mut known: Vec<&str> = claims.iter().map(|claim| text(claim, "name")).collect();
    known.sort_unstable();
    known.dedup();
    let mut detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
    if known.is_empty() {
        detail += " which is empty";
    } else {
        detail = format!("{detail}: {}", known.join(", "));
    }
    for (place, container) in items(containers).iter().enumerate() {
        let used = items(member(member(container, "resources"), "claims"));
        for (claim_place, claim) in used.iter().enumerate() {
            let name = text(claim, "name");
            if !known.contains(&name) {
                let at = format!("{at}[{place}].resources.claims[{claim_place}]");
                causes.push(Cause::not_found(at, &json!(name), &detail));
            }
        }
    }
}

/// Checks that no init container has the name of a container.
fn other_names(spec: &Value, containers: &Value, at: &str, causes: &mut Vec<Cause>) {
    let others = items(member(spec, "containers"));
    for (place, container) in items(containers).iter().enumerate() {
        let name = text(container, "name");
        if !name.is_empty() && others.iter().any(|other| text(other, "name") == name) {
            causes.push(Cause::duplicate(format!("{at}[{place}].name"), &json!(name)));
        }
    }
}

/// Checks containers for debugging: names are unique in the pod, and what makes a container a part
/// of the workload is missing.
fn ephemeral(spec: &Value, containers: &Value, at: &str, causes: &mut Vec<Cause>) {
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
    let lists = ["containers", "initContainers"];
    let others = lists.iter().flat_map(|list| items(member(spec, list)));
    let others: Vec<&str> = others.map(|other| text(other, "name")).collect();
    let mut known = others.clone();
    for (place, container) in items(containers).iter().enumerate() {
        let at = format!("{at}[{place}]");
        super::run(CONTAINER, container, &at, causes);
        let [name, target] = ["name", "targetContainerName"].map(|key| text(container, key));
        if known.contains(&name) {
            causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
        }
        known.push(name);
        if !target.is_empty() && !others.contains(&target) {
            causes.push(Cause::not_found(format!("{at}.targetContainerName"), &json!(target), ""));
        }
        for key in FORBIDDEN.iter().filter(|key| !is_empty(member(container, key))) {
            causes.push(Cause::forbidden(format!("{at}.{key}"), NOT_EPHEMERAL));
        }
        mounts_of(spec, container, &at, causes);
        for (mount_place, mount) in items(member(container, "volumeMounts")).iter().enumerate() {
            let given = ["subPath", "subPathExpr"];
            for key in given.iter().filter(|key| !text(mount, key).is_empty()) {
                let field = format!("{at}.volumeMounts[{mount_place}].{key}");
                causes.push(Cause::forbidden(field, NOT_EPHEMERAL));
            }
        }
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
    selectors::annotations(member(metadata, "annotations"), &format!("{at}.annotations"), causes);
    let spec = member(template, "spec");
    let at = format!("{at}.spec");
    super::run(POD_SPEC, spec, &at, causes);
    let policy = member(spec, "restartPolicy");
    let fits = policy.as_str().is_some_and(|policy| restarts.contains(&policy));
    let policy_at = format!("{at}.restartPolicy");
    match restarts {
        _ if fits => {}
        [_] => causes.push(Cause::unsupported(policy_at, policy, restarts)),
        several => {
            let valid: Vec<String> = several.iter().map(|one| format!("\"{one}\"")).collect();
            let detail = format!("valid values: {}", valid.join(", "));
            causes.push(Cause::required(policy_at, &detail));
        }
    }
    if restarts.len() == 1 && !is_empty(member(spec, "activeDeadlineSeconds")) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(Cause::forbidden(format!("{at}.activeDeadlineSeconds"), &detail));
    }
}
