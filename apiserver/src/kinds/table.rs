//! The rows. A further kind is a few lines here.

use std::borrow::Cow;

use super::DefaultValue::{From, Json};
use super::{
    Action, DefaultValue, Defaults, FieldLabel, Generation, Kind, OnCreate, Status, StoredAs, pod,
    rules,
};

/// A namespaced kind that only has metadata and data: what a row changes is what is special about it.
pub(super) const PLAIN: Kind = Kind {
    group: Cow::Borrowed(""),
    version: Cow::Borrowed("v1"),
    kind: Cow::Borrowed(""),
    plural: Cow::Borrowed(""),
    short_names: &[],
    namespaced: true,
    custom: false,
    status: Status::None,
    generation: Generation::None,
    unconditional_update: true,
    create_on_update: false,
    returns_deleted: false,
    fields: &[],
    defaults: &[],
    prepare: |_| {},
    validate: |_, _, _| {},
    immutable: &[],
    grace: None,
    on_mark: |_| {},
    finalize: None,
    actions: &[],
    protected: &[],
    stored_as: None,
};

const KEEPS_SPEC: Status = Status::Subresource { kept: &["spec"], on_create: OnCreate::Drop };

pub(crate) fn built_in() -> Vec<Kind> {
    vec![
        namespace(),
        node(),
        pod(),
        replica_set(),
        event(),
        events_v1(),
        lease(),
        Kind { short_names: &["cm"], ..named("", "ConfigMap", "configmaps") },
    ]
}

fn named(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group: group.into(), kind: kind.into(), plural: plural.into(), ..PLAIN }
}

fn namespace() -> Kind {
    Kind {
        short_names: &["ns"],
        namespaced: false,
        status: KEEPS_SPEC,
        returns_deleted: true,
        fields: const { &[label("status.phase", &["status.phase"])] },
        defaults: &[
            Defaults { under: "", rules: &[("spec", Json("{}")), ("status", Json("{}"))] },
            Defaults { under: "status", rules: &[("phase", Json("\"Active\""))] },
        ],
        prepare: rules::prepare_namespace,
        validate: rules::name_is_label,
        on_mark: rules::mark_namespace,
        finalize: Some("spec.finalizers"),
        protected: &["default", "kube-system", "kube-public"],
        ..named("", "Namespace", "namespaces")
    }
}

fn node() -> Kind {
    Kind {
        short_names: &["no"],
        namespaced: false,
        status: Status::Subresource { kept: &["spec"], on_create: OnCreate::Keep },
        fields: &[FieldLabel {
            label: "spec.unschedulable",
            paths: &["spec.unschedulable"],
            missing: "false",
        }],
        defaults: &[Defaults { under: "", rules: &[("spec", Json("{}")), ("status", Json("{}"))] }],
        ..named("", "Node", "nodes")
    }
}

fn pod() -> Kind {
    const POD_KEEPS: &[&str] = &["spec", "metadata.ownerReferences", "metadata.deletionTimestamp"];
    const BINDING: Action = Action { name: "binding", apply: pod::bind };
    Kind {
        short_names: &["po"],
        status: Status::Subresource { kept: POD_KEEPS, on_create: OnCreate::Drop },
        generation: Generation::Spec,
        returns_deleted: true,
        fields: POD_FIELDS,
        defaults: &[
            Defaults { under: "spec", rules: POD_SPEC },
            Defaults { under: "", rules: &[("status", Json("{}"))] },
            Defaults { under: "status", rules: &[("phase", Json("\"Pending\""))] },
        ],
        prepare: pod::prepare,
        validate: pod::validate,
        grace: Some(pod::grace),
        actions: &[BINDING],
        ..named("", "Pod", "pods")
    }
}

fn replica_set() -> Kind {
    Kind {
        short_names: &["rs"],
        status: KEEPS_SPEC,
        generation: Generation::Spec,
        fields: const { &[label("status.replicas", &["status.replicas"])] },
        defaults: &[
            Defaults { under: "", rules: &[("spec", Json("{}")), ("status", Json("{}"))] },
            Defaults { under: "spec", rules: &[("replicas", Json("1")), ("template", Json("{}"))] },
            Defaults {
                under: "spec.template",
                rules: &[("metadata", Json("{}")), ("spec", Json("{}"))],
            },
            Defaults { under: "spec.template.spec", rules: POD_SPEC },
            Defaults { under: "status", rules: &[("replicas", Json("0"))] },
        ],
        validate: rules::replica_set,
        immutable: &["spec.selector"],
        ..named("apps", "ReplicaSet", "replicasets")
    }
}

fn event() -> Kind {
    Kind {
        short_names: &["ev"],
        create_on_update: true,
        fields: EVENT_FIELDS,
        defaults: &[Defaults {
            under: "",
            rules: &[("source", Json("{}")), ("involvedObject", Json("{}"))],
        }],
        validate: rules::event,
        ..named("", "Event", "events")
    }
}

fn events_v1() -> Kind {
    const AS_CORE: StoredAs = StoredAs {
        group: "",
        plural: "events",
        renames: &[
            ("regarding", "involvedObject"),
            ("note", "message"),
            ("reportingController", "reportingComponent"),
            ("deprecatedSource", "source"),
            ("deprecatedFirstTimestamp", "firstTimestamp"),
            ("deprecatedLastTimestamp", "lastTimestamp"),
            ("deprecatedCount", "count"),
        ],
    };
    Kind { stored_as: Some(&AS_CORE), group: "events.k8s.io".into(), ..event() }
}

fn lease() -> Kind {
    Kind {
        unconditional_update: false,
        create_on_update: true,
        ..named("coordination.k8s.io", "Lease", "leases")
    }
}

const POD_FIELDS: &[FieldLabel] = &[
    label("spec.nodeName", &["spec.nodeName"]),
    label("spec.restartPolicy", &["spec.restartPolicy"]),
    label("spec.schedulerName", &["spec.schedulerName"]),
    label("spec.serviceAccountName", &["spec.serviceAccountName"]),
    FieldLabel { label: "spec.hostNetwork", paths: &["spec.hostNetwork"], missing: "false" },
    label("status.phase", &["status.phase"]),
    label("status.podIP", &["status.podIP"]),
    label("status.nominatedNodeName", &["status.nominatedNodeName"]),
];

const EVENT_FIELDS: &[FieldLabel] = &[
    label("involvedObject.kind", &["involvedObject.kind"]),
    label("involvedObject.namespace", &["involvedObject.namespace"]),
    label("involvedObject.name", &["involvedObject.name"]),
    label("involvedObject.uid", &["involvedObject.uid"]),
    label("involvedObject.apiVersion", &["involvedObject.apiVersion"]),
    label("involvedObject.resourceVersion", &["involvedObject.resourceVersion"]),
    label("involvedObject.fieldPath", &["involvedObject.fieldPath"]),
    label("reason", &["reason"]),
    label("reportingComponent", &["reportingComponent"]),
    label("source", &["source.component", "reportingComponent"]),
    label("type", &["type"]),
];

const POD_SPEC: &[(&str, DefaultValue)] = &[
    ("restartPolicy", Json("\"Always\"")),
    ("terminationGracePeriodSeconds", Json("30")),
    ("dnsPolicy", Json("\"ClusterFirst\"")),
    ("securityContext", Json("{}")),
    ("schedulerName", Json("\"default-scheduler\"")),
    ("containers[].resources", Json("{}")),
    ("containers[].terminationMessagePath", Json("\"/dev/termination-log\"")),
    ("containers[].terminationMessagePolicy", Json("\"File\"")),
    ("containers[].imagePullPolicy", From(pod::pull_policy)),
    ("containers[].ports[].protocol", Json("\"TCP\"")),
    ("containers[].env[].valueFrom.fieldRef.apiVersion", Json("\"v1\"")),
    ("initContainers[].resources", Json("{}")),
    ("initContainers[].terminationMessagePath", Json("\"/dev/termination-log\"")),
    ("initContainers[].terminationMessagePolicy", Json("\"File\"")),
    ("initContainers[].imagePullPolicy", From(pod::pull_policy)),
];

const fn label(label: &'static str, paths: &'static [&'static str]) -> FieldLabel {
    FieldLabel { label, paths, missing: "" }
}
