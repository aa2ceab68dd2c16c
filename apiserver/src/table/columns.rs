//! The columns of kinds: name, type, format, priority, and cell.

use super::Cell::{Age, Date, Number, Of, Text};
use super::{Cell, Column, cells, pod};
use crate::access::RBAC_GROUP;

pub(super) const fn text(name: &'static str, cell: Cell) -> Column {
    Column { name, kind: "string", format: "", priority: 0, cell }
}

pub(super) const fn integer(name: &'static str, path: &'static str) -> Column {
    Column { kind: "integer", ..text(name, Number(path)) }
}

pub(super) const fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

pub(super) const NAME: Column =
    Column { format: "name", ..text("Name", Text("metadata.name", "")) };
pub(super) const AGE: Column = text("Age", Age("metadata.creationTimestamp"));
pub(super) const CONTAINERS: Column = wide(text("Containers", Of(cells::containers)));
pub(super) const IMAGES: Column = wide(text("Images", Of(cells::images)));
const SELECTOR: Column = wide(text("Selector", Of(cells::spec_selector)));

/// The columns of a kind that is not listed.
pub(super) const PLAIN: Row = (ANY, "", &[NAME, AGE]);

/// The first column of a kind with a definition, which states the others.
pub(super) const DEFINED: Row = (ANY, "", &[NAME]);

/// The columns of a custom kind without a definition.
pub(super) const CUSTOM: Row = (ANY, "", &[NAME, CUSTOM_AGE]);

const CUSTOM_AGE: Column =
    Column { kind: "date", ..text("Age", Date("metadata.creationTimestamp")) };

/// The columns of a scale.
pub(super) const SCALE: Row =
    ("autoscaling", "Scale", &[Column { format: "", ..NAME }, DESIRED, AVAILABLE, AGE]);

/// The columns of the scale of a custom kind.
pub(super) const CUSTOM_SCALE: Row = (ANY, "Scale", &[NAME, DESIRED, AVAILABLE, CUSTOM_AGE]);

const AVAILABLE: Column = integer("Available", "status.replicas");

/// The group, the kind, and its columns.
pub(super) type Row = (&'static str, &'static str, &'static [Column]);

/// Stands for any group.
pub(super) const ANY: &str = "*";

pub(super) const TABLE: &[Row] = &[
    ("", "Namespace", &[NAME, text("Status", Text("status.phase", "")), AGE]),
    ("", "Node", NODE),
    ("", "Pod", POD),
    ("", "Service", SERVICE),
    ("", "ConfigMap", &[NAME, text("Data", Of(cells::data_count)), AGE]),
    (
        "",
        "Secret",
        &[NAME, text("Type", Text("type", "")), text("Data", Of(cells::data_count)), AGE],
    ),
    ("", "PersistentVolumeClaim", CLAIM),
    ("", "Event", EVENT),
    ("coordination.k8s.io", "Lease", &[NAME, text("Holder", Text("spec.holderIdentity", "")), AGE]),
    (
        "",
        "ReplicationController",
        &[
            NAME,
            DESIRED,
            CURRENT,
            READY,
            AGE,
            CONTAINERS,
            IMAGES,
            wide(text("Selector", Of(cells::spec_labels))),
        ],
    ),
    ("apps", "ReplicaSet", &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR]),
    (
        "apps",
        "Deployment",
        &[
            NAME,
            text("Ready", Of(cells::ready_of_desired)),
            Column { kind: "string", ..integer("Up-to-date", "status.updatedReplicas") },
            Column { kind: "string", ..integer("Available", "status.availableReplicas") },
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "apps",
        "StatefulSet",
        &[NAME, text("Ready", Of(cells::ready_of_desired)), AGE, CONTAINERS, IMAGES],
    ),
    ("apps", "DaemonSet", DAEMON_SET),
    (
        "batch",
        "Job",
        &[
            NAME,
            text("Status", Of(cells::jobs::status)),
            text("Completions", Of(cells::jobs::completions)),
            text("Duration", Of(cells::jobs::duration)),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    ("batch", "CronJob", CRON_JOB),
    (
        "",
        "ResourceQuota",
        &[
            NAME,
            text("Request", Of(cells::quotas::requests)),
            text("Limit", Of(cells::quotas::limits)),
            AGE,
        ],
    ),
    ("", "LimitRange", &[NAME, CREATED_AT]),
    (RBAC_GROUP, "Role", &[NAME, CREATED_AT]),
    (RBAC_GROUP, "ClusterRole", &[NAME, CREATED_AT]),
    (RBAC_GROUP, "RoleBinding", ROLE_BINDING),
    (RBAC_GROUP, "ClusterRoleBinding", ROLE_BINDING),
    (
        "resource.k8s.io",
        "ResourceClaim",
        &[NAME, text("State", Of(cells::resource_claim_state)), AGE],
    ),
    (
        "resource.k8s.io",
        "ResourceSlice",
        &[
            NAME,
            text("Node", Text("spec.nodeName", "")),
            text("Driver", Text("spec.driver", "")),
            text("Pool", Text("spec.pool.name", "")),
            AGE,
        ],
    ),
    (
        "scheduling.k8s.io",
        "PriorityClass",
        &[
            NAME,
            integer("Value", "value"),
            Column { kind: "boolean", ..text("Global-Default", Of(cells::global_default)) },
            AGE,
            text("PreemptionPolicy", Text("preemptionPolicy", "")),
        ],
    ),
];

const CREATED_AT: Column =
    Column { kind: "date", ..text("Created At", Text("metadata.creationTimestamp", "")) };

const ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role", Of(cells::bindings::role)),
    AGE,
    wide(text("Users", Of(cells::bindings::users))),
    wide(text("Groups", Of(cells::bindings::groups))),
    wide(text("ServiceAccounts", Of(cells::bindings::accounts))),
];

const DESIRED: Column = integer("Desired", "spec.replicas");
const CURRENT: Column = integer("Current", "status.replicas");
const READY: Column = integer("Ready", "status.readyReplicas");

const NODE: &[Column] = &[
    NAME,
    text("Status", Of(cells::nodes::status)),
    text("Roles", Of(cells::nodes::roles)),
    AGE,
    text("Version", Text("status.nodeInfo.kubeletVersion", "")),
    wide(text("Internal-IP", Of(cells::nodes::internal_ip))),
    wide(text("External-IP", Of(cells::nodes::external_ip))),
    wide(text("OS-Image", Text("status.nodeInfo.osImage", "<unknown>"))),
    wide(text("Kernel-Version", Text("status.nodeInfo.kernelVersion", "<unknown>"))),
    wide(text("Container-Runtime", Text("status.nodeInfo.containerRuntimeVersion", "<unknown>"))),
];

const POD: &[Column] = &[
    NAME,
    text("Ready", Of(pod::ready)),
    text("Status", Of(pod::status)),
    text("Restarts", Of(pod::restarts)),
    AGE,
    wide(text("IP", Of(pod::address))),
    wide(text("Node", Text("spec.nodeName", "<none>"))),
    wide(text("Nominated Node", Text("status.nominatedNodeName", "<none>"))),
    wide(text("Readiness Gates", Of(pod::readiness_gates))),
];

const SERVICE: &[Column] = &[
    NAME,
    text("Type", Text("spec.type", "")),
    text("Cluster-IP", Of(cells::services::cluster_ip)),
    text("External-IP", Of(cells::services::external_ip)),
    text("Port(s)", Of(cells::services::ports)),
    AGE,
    wide(text("Selector", Of(cells::spec_labels))),
];

const CLAIM: &[Column] = &[
    NAME,
    text("Status", Of(cells::claims::status)),
    text("Volume", Text("spec.volumeName", "")),
    text("Capacity", Of(cells::claims::capacity)),
    text("Access Modes", Of(cells::claims::access_modes)),
    text("StorageClass", Of(cells::claims::class)),
    text("VolumeAttributesClass", Text("spec.volumeAttributesClassName", "<unset>")),
    AGE,
    wide(text("VolumeMode", Of(cells::claims::mode))),
];

const EVENT: &[Column] = &[
    text("Last Seen", Of(cells::events::last_seen)),
    text("Type", Text("type", "")),
    text("Reason", Text("reason", "")),
    text("Object", Of(cells::events::object)),
    wide(text("Subobject", Text("involvedObject.fieldPath", ""))),
    wide(text("Source", Of(cells::events::source))),
    text("Message", Of(cells::events::message)),
    wide(text("First Seen", Of(cells::events::first_seen))),
    wide(text("Count", Of(cells::events::count))),
    wide(NAME),
];

const DAEMON_SET: &[Column] = &[
    NAME,
    integer("Desired", "status.desiredNumberScheduled"),
    integer("Current", "status.currentNumberScheduled"),
    integer("Ready", "status.numberReady"),
    integer("Up-to-date", "status.updatedNumberScheduled"),
    integer("Available", "status.numberAvailable"),
    text("Node Selector", Of(cells::node_selector)),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", Text("spec.schedule", "")),
    text("Timezone", Text("spec.timeZone", "<none>")),
    Column { kind: "boolean", ..text("Suspend", Of(cells::cron_jobs::suspend)) },
    Column { kind: "integer", ..text("Active", Of(cells::cron_jobs::active)) },
    text("Last Schedule", Of(cells::cron_jobs::last)),
    AGE,
    wide(text("Containers", Of(cells::cron_jobs::containers))),
    wide(text("Images", Of(cells::cron_jobs::images))),
    wide(text("Selector", Of(cells::cron_jobs::pod_selector))),
];
