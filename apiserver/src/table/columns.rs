//! The columns of every kind: name, type, format, priority, description, and cell.

use super::Cell::{Age, Date, Number, Of, Text};
use super::{Cell, Column, cells, pod, stored};
use crate::access::RBAC_GROUP;

/// Returns the columns of a kind; the default columns for a kind that is not listed.
pub(super) fn of(group: &str, kind: &str) -> &'static [Column] {
    TABLE
        .iter()
        .chain(stored::TABLE)
        .find(|(known, name, _)| *known == group && *name == kind)
        .map_or(PLAIN, |(_, _, columns)| *columns)
}

pub(super) const fn text(name: &'static str, cell: Cell, description: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0, description, cell }
}

pub(super) const fn integer(
    name: &'static str,
    path: &'static str,
    description: &'static str,
) -> Column {
    Column { kind: "integer", ..text(name, Number(path), description) }
}

pub(super) const fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

pub(super) const NAME: Column =
    Column { format: "name", ..text("Name", Text("metadata.name", ""), "The name of the object") };
pub(super) const AGE: Column =
    text("Age", Age("metadata.creationTimestamp"), "How long ago the object was created");
pub(super) const CONTAINERS: Column =
    wide(text("Containers", Of(cells::containers), "Names of each container in the template."));
pub(super) const IMAGES: Column =
    wide(text("Images", Of(cells::images), "Images referenced by each container in the template."));
const SELECTOR: Column =
    wide(text("Selector", Of(cells::spec_selector), "The labels of the pods that it counts"));

const PLAIN: &[Column] = &[NAME, AGE];

/// The first column of a kind with a definition, which states the others.
pub(super) const DEFINED: &[Column] = &[NAME];

/// The columns of a custom kind without a definition.
pub(super) const CUSTOM: &[Column] = &[NAME, CUSTOM_AGE];

const CUSTOM_AGE: Column = Column {
    kind: "date",
    ..text("Age", Date("metadata.creationTimestamp"), "How long ago the object was created")
};

/// The columns of a scale.
pub(super) const SCALE: &[Column] = &[Column { format: "", ..NAME }, DESIRED, AVAILABLE, AGE];

/// The columns of the scale of a custom kind.
pub(super) const CUSTOM_SCALE: &[Column] = &[NAME, DESIRED, AVAILABLE, CUSTOM_AGE];

const AVAILABLE: Column = integer("Available", "status.replicas", "How many instances there are");

pub(super) type Row = (&'static str, &'static str, &'static [Column]);

const TABLE: &[Row] = &[
    (
        "",
        "Namespace",
        &[NAME, text("Status", Text("status.phase", ""), "The status of the namespace"), AGE],
    ),
    ("", "Node", NODE),
    ("", "Pod", POD),
    ("", "Service", SERVICE),
    ("", "ConfigMap", &[NAME, text("Data", Of(cells::data_count), "How many entries it has"), AGE]),
    (
        "",
        "Secret",
        &[
            NAME,
            text("Type", Text("type", ""), "What the data is for"),
            text("Data", Of(cells::data_count), "How many entries it has"),
            AGE,
        ],
    ),
    ("", "PersistentVolumeClaim", CLAIM),
    ("", "Event", EVENT),
    (
        "coordination.k8s.io",
        "Lease",
        &[NAME, text("Holder", Text("spec.holderIdentity", ""), "Who holds it"), AGE],
    ),
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
            wide(text("Selector", Of(cells::spec_labels), "The labels of the pods that it counts")),
        ],
    ),
    ("apps", "ReplicaSet", &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR]),
    (
        "apps",
        "Deployment",
        &[
            NAME,
            text("Ready", Of(cells::ready_of_desired), "Number of the pod with ready state"),
            Column {
                kind: "string",
                ..integer("Up-to-date", "status.updatedReplicas", "Pods of the newest template")
            },
            Column {
                kind: "string",
                ..integer(
                    "Available",
                    "status.availableReplicas",
                    "Pods that have been ready long enough",
                )
            },
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "apps",
        "StatefulSet",
        &[
            NAME,
            text("Ready", Of(cells::ready_of_desired), "Number of the pod with ready state"),
            AGE,
            CONTAINERS,
            IMAGES,
        ],
    ),
    ("apps", "DaemonSet", DAEMON_SET),
    (
        "batch",
        "Job",
        &[
            NAME,
            text("Status", Of(cells::job_status), "Status of the job."),
            text(
                "Completions",
                Of(cells::job_completions),
                "How many pods have succeeded, and must",
            ),
            text("Duration", Of(cells::job_duration), "Time required to complete the job."),
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
            text("Request", Of(cells::quota_requests), "Used and allowed of what is requested"),
            text("Limit", Of(cells::quota_limits), "Used and allowed of the limits"),
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
        &[
            NAME,
            text(
                "State",
                Of(cells::resource_claim_state),
                "A summary of the current state (allocated, pending, reserved, etc.).",
            ),
            AGE,
        ],
    ),
    (
        "resource.k8s.io",
        "ResourceSlice",
        &[
            NAME,
            text("Node", Text("spec.nodeName", ""), "The node that has the devices"),
            text("Driver", Text("spec.driver", ""), "The driver that offers the devices"),
            text("Pool", Text("spec.pool.name", ""), "The pool that the devices are part of"),
            AGE,
        ],
    ),
    (
        "scheduling.k8s.io",
        "PriorityClass",
        &[
            NAME,
            integer("Value", "value", "The priority of its pods"),
            Column {
                kind: "boolean",
                ..text(
                    "Global-Default",
                    Of(cells::global_default),
                    "Whether pods without a class are of this one",
                )
            },
            AGE,
            text(
                "PreemptionPolicy",
                Text("preemptionPolicy", ""),
                "Whether its pods may evict others",
            ),
        ],
    ),
];

const CREATED_AT: Column = Column {
    kind: "date",
    ..text("Created At", Text("metadata.creationTimestamp", ""), "When it was created")
};

const ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role", Of(cells::bound_role), "The role that the subjects get"),
    AGE,
    wide(text("Users", Of(cells::bound_users), "The users that get the role")),
    wide(text("Groups", Of(cells::bound_groups), "The groups that get the role")),
    wide(text("ServiceAccounts", Of(cells::bound_accounts), "The accounts that get the role")),
];

const DESIRED: Column = integer("Desired", "spec.replicas", "The number of pods that is wanted");
const CURRENT: Column = integer("Current", "status.replicas", "The number of pods that there are");
const READY: Column = integer("Ready", "status.readyReplicas", "The number of pods that are ready");

const NODE: &[Column] = &[
    NAME,
    text("Status", Of(cells::node_status), "The status of the node"),
    text("Roles", Of(cells::node_roles), "The roles of the node"),
    AGE,
    text(
        "Version",
        Text("status.nodeInfo.kubeletVersion", ""),
        "Kubelet Version reported by the node.",
    ),
    wide(text("Internal-IP", Of(cells::internal_ip), "The address inside the cluster")),
    wide(text("External-IP", Of(cells::external_ip), "The address outside of the cluster")),
    wide(text("OS-Image", Text("status.nodeInfo.osImage", "<unknown>"), "The operating system")),
    wide(text("Kernel-Version", Text("status.nodeInfo.kernelVersion", "<unknown>"), "The kernel")),
    wide(text(
        "Container-Runtime",
        Text("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
        "What runs the containers",
    )),
];

const POD: &[Column] = &[
    NAME,
    text(
        "Ready",
        Of(pod::ready),
        "The aggregate readiness state of this pod for accepting traffic.",
    ),
    text("Status", Of(pod::status), "The aggregate status of the containers in this pod."),
    text(
        "Restarts",
        Of(pod::restarts),
        "The number of times the containers in this pod have been restarted and when the last \
         container in this pod has restarted.",
    ),
    AGE,
    wide(text("IP", Of(pod::address), "The address of the pod")),
    wide(text("Node", Text("spec.nodeName", "<none>"), "The node that the pod is on")),
    wide(text(
        "Nominated Node",
        Text("status.nominatedNodeName", "<none>"),
        "The node that room is being made on",
    )),
    wide(text("Readiness Gates", Of(pod::readiness_gates), "How many of the gates are open")),
];

const SERVICE: &[Column] = &[
    NAME,
    text("Type", Text("spec.type", ""), "How the service is exposed"),
    text("Cluster-IP", Of(cells::cluster_ip), "The address inside the cluster"),
    text("External-IP", Of(cells::service_external_ip), "The addresses outside of the cluster"),
    text("Port(s)", Of(cells::service_ports), "The ports that are exposed"),
    AGE,
    wide(text("Selector", Of(cells::spec_labels), "The labels of the pods behind it")),
];

const CLAIM: &[Column] = &[
    NAME,
    text("Status", Of(cells::claim_status), "The phase of the claim"),
    text("Volume", Text("spec.volumeName", ""), "The volume that the claim is bound to"),
    text("Capacity", Of(cells::claim_capacity), "The size of the volume"),
    text("Access Modes", Of(cells::claim_access_modes), "How the volume can be mounted"),
    text("StorageClass", Of(cells::claim_class), "StorageClass of the pvc"),
    text(
        "VolumeAttributesClass",
        Text("spec.volumeAttributesClassName", "<unset>"),
        "VolumeAttributesClass of the pvc",
    ),
    AGE,
    wide(text("VolumeMode", Of(cells::claim_mode), "Whether it is a file system or a device")),
];

const EVENT: &[Column] = &[
    text("Last Seen", Of(cells::event_last_seen), "How long ago it happened last"),
    text("Type", Text("type", ""), "Normal or Warning"),
    text("Reason", Text("reason", ""), "Why it happened, in one word"),
    text("Object", Of(cells::event_object), "The object that this event is about."),
    wide(text("Subobject", Text("involvedObject.fieldPath", ""), "The part of the object")),
    wide(text("Source", Of(cells::event_source), "Who reports it")),
    text("Message", Of(cells::event_message), "What happened"),
    wide(text("First Seen", Of(cells::event_first_seen), "How long ago it happened first")),
    wide(text("Count", Of(cells::event_count), "How often it happened")),
    wide(NAME),
];

const DAEMON_SET: &[Column] = &[
    NAME,
    integer(
        "Desired",
        "status.desiredNumberScheduled",
        "The number of nodes that should run the pod",
    ),
    integer("Current", "status.currentNumberScheduled", "The number of nodes that should and do"),
    integer("Ready", "status.numberReady", "The number of nodes with a ready pod"),
    integer(
        "Up-to-date",
        "status.updatedNumberScheduled",
        "The number of nodes with the newest pod",
    ),
    integer(
        "Available",
        "status.numberAvailable",
        "The number of nodes whose pod has been ready long enough",
    ),
    text("Node Selector", Of(cells::node_selector), "The labels of the nodes"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", Text("spec.schedule", ""), "When it runs, as cron writes it"),
    text("Timezone", Text("spec.timeZone", "<none>"), "The time zone of the schedule"),
    Column {
        kind: "boolean",
        ..text("Suspend", Of(cells::cron_job_suspend), "Whether it is held back")
    },
    Column {
        kind: "integer",
        ..text("Active", Of(cells::cron_job_active), "The number of running jobs")
    },
    text("Last Schedule", Of(cells::cron_job_last), "How long ago it ran last"),
    AGE,
    wide(text(
        "Containers",
        Of(cells::cron_job_containers),
        "Names of each container in the template.",
    )),
    wide(text(
        "Images",
        Of(cells::cron_job_images),
        "Images referenced by each container in the template.",
    )),
    wide(text("Selector", Of(cells::cron_job_selector), "The labels of the pods of the jobs")),
];
