//! The columns of kinds that the server only stores.

use serde_json::{Value, json};

use super::Cell::{Date, Of, Text};
use super::columns::{AGE, CONTAINERS, IMAGES, NAME, Row, integer, text, wide};
use super::text::{labels, selector, unless_empty};
use super::{Column, Subject, cells, several};
use crate::fields;

pub(super) const TABLE: &[Row] = &[
    ("", "Endpoints", &[NAME, text("Endpoints", Of(several::endpoints)), AGE]),
    (
        "discovery.k8s.io",
        "EndpointSlice",
        &[
            NAME,
            text("AddressType", Text("addressType", "")),
            text("Ports", Of(several::slice_ports)),
            text("Endpoints", Of(several::slice_addresses)),
            AGE,
        ],
    ),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        &[
            NAME,
            text("Reference", Of(several::scaled)),
            text("Targets", Of(several::metrics)),
            text("MinPods", Of(several::least_replicas)),
            Column { kind: "string", ..integer("MaxPods", "spec.maxReplicas") },
            Column { kind: "string", ..integer("Replicas", "status.currentReplicas") },
            AGE,
        ],
    ),
    ("", "PersistentVolume", VOLUME),
    (
        "",
        "PodTemplate",
        &[
            NAME,
            Column { priority: 0, ..CONTAINERS_OF_TEMPLATE },
            Column { priority: 0, ..IMAGES_OF_TEMPLATE },
            text("Pod Labels", Of(template_labels)),
        ],
    ),
    (
        "apps",
        "ControllerRevision",
        &[
            NAME,
            text("Controller", Of(controller)),
            Column { kind: "string", ..integer("Revision", "revision") },
            AGE,
        ],
    ),
    ("networking.k8s.io", "Ingress", INGRESS),
    (
        "networking.k8s.io",
        "IngressClass",
        &[
            Column { cell: Of(ingress_class_name), ..NAME },
            text("Controller", Text("spec.controller", "")),
            text("Parameters", Of(ingress_class_parameters)),
            AGE,
        ],
    ),
    ("networking.k8s.io", "IPAddress", &[NAME, text("ParentRef", Of(parent)), AGE]),
    ("networking.k8s.io", "ServiceCIDR", &[NAME, text("CIDRs", Of(ranges)), AGE]),
    ("networking.k8s.io", "NetworkPolicy", &[NAME, text("Pod-Selector", Of(pod_selector)), AGE]),
    ("node.k8s.io", "RuntimeClass", &[NAME, text("Handler", Text("handler", "")), AGE]),
    (
        "policy",
        "PodDisruptionBudget",
        &[
            NAME,
            text("Min Available", Of(min_available)),
            text("Max Unavailable", Of(max_unavailable)),
            integer("Allowed Disruptions", "status.disruptionsAllowed"),
            AGE,
        ],
    ),
    ("storage.k8s.io", "CSIDriver", DRIVER),
    (
        "storage.k8s.io",
        "CSIStorageCapacity",
        &[NAME, Column { kind: "date", ..text("Created At", Date("metadata.creationTimestamp")) }],
    ),
    (
        "storage.k8s.io",
        "StorageClass",
        &[
            NAME,
            text("Provisioner", Text("provisioner", "")),
            text("ReclaimPolicy", Text("reclaimPolicy", "Delete")),
            text("VolumeBindingMode", Text("volumeBindingMode", "Immediate")),
            text("AllowVolumeExpansion", Of(|class| flag(class, "allowVolumeExpansion", false))),
            AGE,
        ],
    ),
    ("storage.k8s.io", "VolumeAttachment", ATTACHMENT),
];

const CONTAINERS_OF_TEMPLATE: Column = Column { cell: Of(template_containers), ..CONTAINERS };
const IMAGES_OF_TEMPLATE: Column = Column { cell: Of(template_images), ..IMAGES };

const VOLUME: &[Column] = &[
    NAME,
    text("Capacity", Text("spec.capacity.storage", "0")),
    text("Access Modes", Of(access_modes)),
    text("Reclaim Policy", Text("spec.persistentVolumeReclaimPolicy", "")),
    text("Status", Of(cells::claims::status)),
    text("Claim", Of(claim)),
    text("StorageClass", Of(cells::claims::class)),
    text("VolumeAttributesClass", Text("spec.volumeAttributesClassName", "<unset>")),
    text("Reason", Text("status.reason", "")),
    AGE,
    wide(text("VolumeMode", Of(cells::claims::mode))),
];

const INGRESS: &[Column] = &[
    NAME,
    text("Class", Text("spec.ingressClassName", "<none>")),
    text("Hosts", Of(hosts)),
    text("Address", Of(cells::services::balancer_address)),
    text("Ports", Of(ingress_ports)),
    AGE,
];

const DRIVER: &[Column] = &[
    NAME,
    boolean(text("AttachRequired", Of(|driver| flag(driver, "spec.attachRequired", true)))),
    boolean(text("PodInfoOnMount", Of(|driver| flag(driver, "spec.podInfoOnMount", false)))),
    boolean(text("StorageCapacity", Of(|driver| flag(driver, "spec.storageCapacity", false)))),
    text("TokenRequests", Of(token_requests)),
    boolean(text("RequiresRepublish", Of(|driver| flag(driver, "spec.requiresRepublish", false)))),
    text("Modes", Of(lifecycle_modes)),
    AGE,
];

const ATTACHMENT: &[Column] = &[
    NAME,
    Column { format: "name", ..text("Attacher", Text("spec.attacher", "")) },
    text("PV", Text("spec.source.persistentVolumeName", "")),
    text("Node", Text("spec.nodeName", "")),
    boolean(text("Attached", Of(|attachment| flag(attachment, "status.attached", false)))),
    AGE,
];

const fn boolean(column: Column) -> Column {
    Column { kind: "boolean", ..column }
}

fn flag(object: &Subject<'_>, path: &str, missing: bool) -> Value {
    json!(object.get(path).and_then(Value::as_bool).unwrap_or(missing))
}

fn template_containers(template: &Subject<'_>) -> Value {
    json!(super::text::members(template.list("template.spec.containers"), "name"))
}

fn template_images(template: &Subject<'_>) -> Value {
    json!(super::text::members(template.list("template.spec.containers"), "image"))
}

fn template_labels(template: &Subject<'_>) -> Value {
    json!(labels(template.get("template.metadata.labels")))
}

fn access_modes(volume: &Subject<'_>) -> Value {
    json!(cells::claims::short_modes(volume.list("spec.accessModes")))
}

fn claim(volume: &Subject<'_>) -> Value {
    let Some(claim) = volume.get("spec.claimRef") else { return json!("") };
    json!(format!("{}/{}", fields::text(claim, "namespace"), fields::text(claim, "name")))
}

fn controller(revision: &Subject<'_>) -> Value {
    let owners = revision.list("metadata.ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return json!("<none>");
    };
    let kind = fields::text(owner, "kind").to_lowercase();
    let name = fields::text(owner, "name");
    json!(match fields::text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    })
}

fn parent(address: &Subject<'_>) -> Value {
    let Some(parent) = address.get("spec.parentRef") else { return json!("<none>") };
    let [resource, group, namespace, name] =
        ["resource", "group", "namespace", "name"].map(|key| fields::text(parent, key));
    let dot = if group.is_empty() { "" } else { "." };
    let resource = format!("{resource}{dot}{group}").to_lowercase();
    let slash = if namespace.is_empty() { "" } else { "/" };
    json!(format!("{resource}{slash}{namespace}/{name}"))
}

fn ranges(range: &Subject<'_>) -> Value {
    json!(range.joined("spec.cidrs"))
}

fn hosts(ingress: &Subject<'_>) -> Value {
    const SHOWN: usize = 3;
    let rules = ingress.list("spec.rules");
    let hosts = rules.iter().map(|rule| fields::text(rule, "host")).enumerate();
    let shown: Vec<(usize, &str)> =
        hosts.filter(|(_, host)| !host.is_empty()).take(SHOWN).collect();
    let names = shown.iter().map(|(_, host)| *host).collect::<Vec<_>>().join(",");
    json!(match shown.get(SHOWN - 1) {
        Some((last, _)) if last + 1 < rules.len() => {
            format!("{names} + {} more...", rules.len() - SHOWN)
        }
        _ => unless_empty(names, "*"),
    })
}

fn ingress_ports(ingress: &Subject<'_>) -> Value {
    json!(if ingress.list("spec.tls").is_empty() { "80" } else { "80, 443" })
}

fn ingress_class_name(class: &Subject<'_>) -> Value {
    let annotations = class.get("metadata.annotations").unwrap_or(&Value::Null);
    let is_default = fields::text(annotations, "ingressclass.kubernetes.io/is-default-class");
    let name = class.text("metadata.name");
    json!(if is_default == "true" { format!("{name} (default)") } else { name.to_owned() })
}

fn ingress_class_parameters(class: &Subject<'_>) -> Value {
    let Some(parameters) = class.get("spec.parameters") else { return json!("<none>") };
    let [kind, group, name] = ["kind", "apiGroup", "name"].map(|key| fields::text(parameters, key));
    let dot = if group.is_empty() { "" } else { "." };
    json!(format!("{kind}{dot}{group}/{name}"))
}

fn pod_selector(policy: &Subject<'_>) -> Value {
    json!(selector(policy.get("spec.podSelector")))
}

fn min_available(budget: &Subject<'_>) -> Value {
    share(budget.get("spec.minAvailable"))
}

fn max_unavailable(budget: &Subject<'_>) -> Value {
    share(budget.get("spec.maxUnavailable"))
}

/// Returns a number of pods, or a percentage, as text.
fn share(share: Option<&Value>) -> Value {
    match share {
        None | Some(Value::Null) => json!("N/A"),
        Some(Value::String(text)) => json!(text),
        Some(number) => json!(number.to_string()),
    }
}

fn token_requests(driver: &Subject<'_>) -> Value {
    if driver.get("spec.tokenRequests").is_none() {
        return json!("<unset>");
    }
    json!(super::text::members(driver.list("spec.tokenRequests"), "audience"))
}

fn lifecycle_modes(driver: &Subject<'_>) -> Value {
    json!(unless_empty(driver.joined("spec.volumeLifecycleModes"), "<none>"))
}
