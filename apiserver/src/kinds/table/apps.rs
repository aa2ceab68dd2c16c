//! The group `apps`.

use super::pod_spec::POD_SPEC;
use super::{ALL, KEEPS_SPEC, OF_SPEC, REPLICAS, SPEC_TEMPLATE, named};
use crate::kinds::DefaultValue::{From, Json, Merge};
use crate::kinds::{Defaults, Generation, Kind, OnCreate, Status, checks, warnings, workload};
use crate::names;

const TEMPLATE: Defaults = Defaults { under: "spec.template.spec", rules: POD_SPEC };

pub(super) fn rows() -> Vec<Kind> {
    vec![replica_set(), deployment(), stateful_set(), daemon_set(), controller_revision()]
}

fn workload(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        categories: ALL,
        status: KEEPS_SPEC,
        generation: OF_SPEC,
        immutable: &["spec.selector"],
        secured: SPEC_TEMPLATE,
        ..named("apps", kind, plural)
    }
}

fn replica_set() -> Kind {
    Kind {
        short_names: &["rs"],
        scale: Some(REPLICAS),
        defaults: &[Defaults { under: "spec", rules: &[("replicas", Json("1"))] }, TEMPLATE],
        validate: checks::workloads::replica_set,
        warn: warnings::namesake,
        convert_empty: workload::convert_no_replicas,
        ..workload("ReplicaSet", "replicasets")
    }
}

fn deployment() -> Kind {
    const KEPT: &[&str] = &["spec", "metadata.labels"];
    Kind {
        short_names: &["deploy"],
        status: Status::Subresource { kept: KEPT, on_create: OnCreate::Drop },
        generation: Generation::Of(&["spec", "metadata.annotations"]),
        scale: Some(REPLICAS),
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[
                    ("replicas", Json("1")),
                    ("strategy.type", Json("\"RollingUpdate\"")),
                    ("strategy", Merge(workload::rolling_deployment)),
                    ("revisionHistoryLimit", Json("10")),
                    ("progressDeadlineSeconds", Json("600")),
                ],
            },
            TEMPLATE,
        ],
        validate: checks::workloads::deployment,
        warn: warnings::namesake,
        convert_empty: workload::convert_no_replicas,
        ..workload("Deployment", "deployments")
    }
}

fn stateful_set() -> Kind {
    const RETENTION: &str = "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}";
    Kind {
        short_names: &["sts"],
        scale: Some(REPLICAS),
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[
                    ("podManagementPolicy", Json("\"OrderedReady\"")),
                    ("updateStrategy.rollingUpdate", From(workload::rolling_by_default)),
                    ("updateStrategy.type", Json("\"RollingUpdate\"")),
                    ("updateStrategy", Merge(workload::rolling_sets)),
                    ("persistentVolumeClaimRetentionPolicy", Json(RETENTION)),
                    ("persistentVolumeClaimRetentionPolicy.whenDeleted", Json("\"Retain\"")),
                    ("persistentVolumeClaimRetentionPolicy.whenScaled", Json("\"Retain\"")),
                    ("replicas", Json("1")),
                    ("revisionHistoryLimit", Json("10")),
                    ("volumeClaimTemplates[].apiVersion", Json("\"v1\"")),
                    ("volumeClaimTemplates[].kind", Json("\"PersistentVolumeClaim\"")),
                    ("volumeClaimTemplates[].spec.volumeMode", Json("\"Filesystem\"")),
                    ("volumeClaimTemplates[].status.phase", Json("\"Pending\"")),
                ],
            },
            TEMPLATE,
        ],
        validate: checks::stateful_set::stateful_set,
        warn: warnings::stateful_set,
        convert_empty: workload::convert_no_replicas,
        immutable: &[],
        name: names::dns_label,
        ..workload("StatefulSet", "statefulsets")
    }
}

fn daemon_set() -> Kind {
    Kind {
        short_names: &["ds"],
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[
                    ("updateStrategy.type", Json("\"RollingUpdate\"")),
                    ("updateStrategy", Merge(workload::rolling_daemons)),
                    ("revisionHistoryLimit", Json("10")),
                ],
            },
            TEMPLATE,
        ],
        derive: workload::default_template_generation,
        prepare: workload::set_first_template_generation,
        inherits: workload::increment_template_generation,
        // The check of its selector comes before the others.
        immutable: &[],
        validate: checks::workloads::daemon_set,
        warn: warnings::daemon_set,
        convert_empty: workload::default_template_generation,
        ..workload("DaemonSet", "daemonsets")
    }
}

fn controller_revision() -> Kind {
    Kind {
        immutable: &["data"],
        validate: checks::workloads::controller_revision,
        ..named("apps", "ControllerRevision", "controllerrevisions")
    }
}
