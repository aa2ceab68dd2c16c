//! Events in both of their groups, and leases.

use std::borrow::Cow;

use super::{PLAIN, label, named};
use crate::kinds::DefaultValue::Json;
use crate::kinds::{
    Defaults, Dependents, Generation, Kind, Protected, StoredAs, checks, priority_class,
};
use crate::names;
use crate::object::FieldLabel;

pub(super) fn rows() -> Vec<Kind> {
    vec![event(), events_v1(), lease(), priority_class()]
}

fn event() -> Kind {
    Kind {
        short_names: &["ev"],
        create_on_update: true,
        dependents: Dependents::None,
        cached: false,
        name: names::path_segment,
        lax_metadata: true,
        fields: EVENT_FIELDS,
        validate: checks::small::event,
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
        convert: |_| {},
        convert_back: |_| {},
    };
    Kind {
        stored_as: Some(&AS_CORE),
        group: "events.k8s.io".into(),
        name: names::dns_subdomain,
        lax_metadata: false,
        fields: NEW_EVENT_FIELDS,
        validate: checks::small::new_event,
        ..event()
    }
}

fn lease() -> Kind {
    Kind {
        unconditional_update: false,
        create_on_update: true,
        validate: checks::small::lease,
        ..named("coordination.k8s.io", "Lease", "leases")
    }
}

fn priority_class() -> Kind {
    const DEFAULTS: &[Defaults] =
        &[Defaults { under: "", rules: &[("preemptionPolicy", Json("\"PreemptLowerPriority\""))] }];
    Kind {
        short_names: &["pc"],
        namespaced: false,
        // Always 1: no update increments it.
        generation: Generation::Of(&[]),
        defaults: DEFAULTS,
        validate: checks::small::priority_class,
        immutable: &["preemptionPolicy"],
        guards: Cow::Borrowed(priority_class::GUARDS),
        protected: Some(Protected {
            names: &["system-node-critical", "system-cluster-critical"],
            detail: "this is a system priority class and cannot be deleted",
            plugin: None,
        }),
        group: "scheduling.k8s.io".into(),
        kind: "PriorityClass".into(),
        plural: "priorityclasses".into(),
        ..PLAIN
    }
}

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

/// The same field labels, in the same order, for `events.k8s.io`: the values are those of the
/// stored form.
const NEW_EVENT_FIELDS: &[FieldLabel] = &[
    label("regarding.kind", &["involvedObject.kind"]),
    label("regarding.namespace", &["involvedObject.namespace"]),
    label("regarding.name", &["involvedObject.name"]),
    label("regarding.uid", &["involvedObject.uid"]),
    label("regarding.apiVersion", &["involvedObject.apiVersion"]),
    label("regarding.resourceVersion", &["involvedObject.resourceVersion"]),
    label("regarding.fieldPath", &["involvedObject.fieldPath"]),
    label("reason", &["reason"]),
    label("reportingController", &["reportingComponent"]),
    label("source", &["source.component", "reportingComponent"]),
    label("type", &["type"]),
];
