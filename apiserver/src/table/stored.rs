//! The columns of kinds that the server only stores.

use serde_json::{Value, json};

use super::Cell::{Date, Of, Text};
use super::columns::{AGE, CONTAINERS, IMAGES, NAME, Row, integer, text, wide};
use super::text::{labels, selector, unless_empty};
use super::{Column, Subject, cells, several};
use crate::fields;

pub(super) const TABLE: &[Row] = &[
    (
        "",
        "Endpoints",
        &[NAME, text("Endpoints", Of(several::endpoints), "The addresses with their ports"), AGE],
    ),
    (
        "discovery.k8s.io",
        "EndpointSlice",
        &[
            NAME,
            text("AddressType", Text("addressType", ""), "The type of its addresses"),
            text("Ports", Of(several::slice_ports), "The ports of each address"),
            text("Endpoints", Of(several::slice_addresses), "The addresses"),
            AGE,
        ],
    ),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        &[
            NAME,
            text("Reference", Of(several::scaled), "The object that it scales"),
            text("Targets", Of(several::metrics), "The metrics, present and wanted"),
            text("MinPods", Of(several::least_replicas), "The least number of replicas"),
            Column {
                kind: "string",
                ..integer("MaxPods", "spec.maxReplicas", "The most replicas")
            },
            Column {
                kind: "string",
                ..integer("Replicas", "status.currentReplicas", "The replicas at present")
            },
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
            text("Pod Labels", Of(template_labels), "The labels of the pods"),
        ],
    ),
    (
        "apps",
        "ControllerRevision",
        &[
            NAME,
            text("Controller", Of(controller), "The controller of the object"),
            Column { kind: "string", ..integer("Revision", "revision", "The revision's number") },
            AGE,
        ],
    ),
    ("networking.k8s.io", "Ingress", INGRESS),
    (
        "networking.k8s.io",
        "IngressClass",
        &[
            Column { cell: Of(ingress_class_name), ..NAME },
            text("Controller", Text("spec.controller", ""), "The controller of its ingresses"),
            text("Parameters", Of(ingress_class_parameters), "The object with more parameters"),
            AGE,
        ],
    ),
    (
        "networking.k8s.io",
        "IPAddress",
        &[NAME, text("ParentRef", Of(parent), "The object that has the address"), AGE],
    ),
    (
        "networking.k8s.io",
        "ServiceCIDR",
        &[NAME, text("CIDRs", Of(ranges), "The ranges of addresses"), AGE],
    ),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        &[NAME, text("Pod-Selector", Of(pod_selector), "The labels of its pods"), AGE],
    ),
    (
        "node.k8s.io",
        "RuntimeClass",
        &[NAME, text("Handler", Text("handler", ""), "The name that the runtime knows"), AGE],
    ),
    (
        "policy",
        "PodDisruptionBudget",
        &[
            NAME,
            text("Min Available", Of(min_available), "The pods that must be available"),
            text("Max Unavailable", Of(max_unavailable), "The pods that may be unavailable"),
            integer(
                "Allowed Disruptions",
                "status.disruptionsAllowed",
                "The number of evictions that it permits now",
            ),
            AGE,
        ],
    ),
    ("storage.k8s.io", "CSIDriver", DRIVER),
    (
        "storage.k8s.io",
        "CSIStorageCapacity",
        &[
            NAME,
            Column {
                kind: "date",
                ..text("Created At", Date("metadata.creationTimestamp"), "The time of its creation")
            },
        ],
    ),
    (
        "storage.k8s.io",
        "StorageClass",
        &[
            NAME,
            text("Provisioner", Text("provisioner", ""), "The source of the volumes"),
            text("ReclaimPolicy", Text("reclaimPolicy", "Delete"), "The fate of a released volume"),
            text(
                "VolumeBindingMode",
                Text("volumeBindingMode", "Immediate"),
                "The time at which a claim is bound",
            ),
            text(
                "AllowVolumeExpansion",
                Of(|class| flag(class, "allowVolumeExpansion", false)),
                "True if a volume may grow",
            ),
            AGE,
        ],
    ),
    ("storage.k8s.io", "VolumeAttachment", ATTACHMENT),
];

const CONTAINERS_OF_TEMPLATE: Column = Column { cell: Of(template_containers), ..CONTAINERS };
const IMAGES_OF_TEMPLATE: Column = Column { cell: Of(template_images), ..IMAGES };

const VOLUME: &[Column] = &[
    NAME,
    text("Capacity", Text("spec.capacity.storage", "0"), "The size of the volume"),
    text("Access Modes", Of(access_modes), "The ways in which nodes may mount it"),
    text(
        "Reclaim Policy",
        Text("spec.persistentVolumeReclaimPolicy", ""),
        "The fate of the volume",
    ),
    text("Status", Of(cells::claim_status), "The phase of the volume"),
    text("Claim", Of(claim), "The claim that it is bound to"),
    text("StorageClass", Of(cells::claim_class), "The class of the volume"),
    text(
        "VolumeAttributesClass",
        Text("spec.volumeAttributesClassName", "<unset>"),
        "The class of its attributes",
    ),
    text("Reason", Text("status.reason", ""), "The reason for its phase"),
    AGE,
    wide(text("VolumeMode", Of(cells::claim_mode), "A file system, or a block device")),
];

const INGRESS: &[Column] = &[
    NAME,
    text("Class", Text("spec.ingressClassName", "<none>"), "The class of the ingress"),
    text("Hosts", Of(hosts), "The hosts of its rules"),
    text("Address", Of(cells::balancer_address), "The addresses of the load balancer"),
    text("Ports", Of(ingress_ports), "The ports of its hosts"),
    AGE,
];

const DRIVER: &[Column] = &[
    NAME,
    boolean(text(
        "AttachRequired",
        Of(|driver| flag(driver, "spec.attachRequired", true)),
        "True if volumes must be attached to a node",
    )),
    boolean(text(
        "PodInfoOnMount",
        Of(|driver| flag(driver, "spec.podInfoOnMount", false)),
        "True if the driver needs to know the pod",
    )),
    boolean(text(
        "StorageCapacity",
        Of(|driver| flag(driver, "spec.storageCapacity", false)),
        "True if the scheduler considers the capacity",
    )),
    text("TokenRequests", Of(token_requests), "The audiences of the tokens that it needs"),
    boolean(text(
        "RequiresRepublish",
        Of(|driver| flag(driver, "spec.requiresRepublish", false)),
        "True if volumes are published periodically",
    )),
    text("Modes", Of(lifecycle_modes), "The modes of its volumes"),
    AGE,
];

const ATTACHMENT: &[Column] = &[
    NAME,
    Column {
        format: "name",
        ..text("Attacher", Text("spec.attacher", ""), "The driver that attaches the volume")
    },
    text("PV", Text("spec.source.persistentVolumeName", ""), "The volume"),
    text("Node", Text("spec.nodeName", ""), "The node"),
    boolean(text(
        "Attached",
        Of(|attachment| flag(attachment, "status.attached", false)),
        "True if the volume is attached",
    )),
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
    json!(cells::short_modes(volume.list("spec.accessModes")))
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
    let ranges: Vec<&str> = range.list("spec.cidrs").iter().filter_map(Value::as_str).collect();
    json!(ranges.join(","))
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
    let modes = driver.list("spec.volumeLifecycleModes").iter().filter_map(Value::as_str);
    json!(unless_empty(modes.collect::<Vec<_>>().join(","), "<none>"))
}
