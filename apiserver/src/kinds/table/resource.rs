//! The group `resource.k8s.io`.

use super::{KEEPS_METADATA, OF_SPEC, label, named};
use crate::kinds::DefaultValue::{Json, Merge};
use crate::kinds::{DefaultValue, Defaults, Kind, checks, claim};

const REQUESTS: &[(&str, DefaultValue)] = &[
    ("requests[].exactly", Merge(claim::default_device_count)),
    ("requests[].firstAvailable[]", Merge(claim::default_device_count)),
    ("requests[].exactly.tolerations[].operator", Json("\"Equal\"")),
    ("requests[].firstAvailable[].tolerations[].operator", Json("\"Equal\"")),
];
const RESULTS: &[(&str, DefaultValue)] = &[("results[].tolerations[].operator", Json("\"Equal\""))];

pub(super) fn rows() -> Vec<Kind> {
    vec![
        resource_claim(),
        resource_claim_template(),
        device_class(),
        resource_slice(),
        device_taint_rule(),
    ]
}

fn of_group(kind: &'static str, plural: &'static str) -> Kind {
    Kind { returns_deleted: true, ..named("resource.k8s.io", kind, plural) }
}

fn resource_claim() -> Kind {
    Kind {
        status: KEEPS_METADATA,
        defaults: &[
            Defaults { under: "spec.devices", rules: REQUESTS },
            Defaults { under: "status.allocation.devices", rules: RESULTS },
        ],
        inherits: claim::drop_deallocated_devices,
        null_if_empty: &["spec.devices.requests"],
        validate: claim::validate,
        permits: claim::check_permissions,
        ..of_group("ResourceClaim", "resourceclaims")
    }
}

fn resource_claim_template() -> Kind {
    Kind {
        defaults: &[Defaults { under: "spec.spec.devices", rules: REQUESTS }],
        null_if_empty: &["spec.spec.devices.requests"],
        validate: claim::validate_template,
        ..of_group("ResourceClaimTemplate", "resourceclaimtemplates")
    }
}

fn device_class() -> Kind {
    Kind {
        namespaced: false,
        generation: OF_SPEC,
        validate: checks::device_classes::class,
        ..of_group("DeviceClass", "deviceclasses")
    }
}

fn resource_slice() -> Kind {
    Kind {
        namespaced: false,
        generation: OF_SPEC,
        fields: const {
            &[
                label("spec.nodeName", &["spec.nodeName"]),
                label("spec.driver", &["spec.driver"]),
                label("spec.pool.name", &["spec.pool.name"]),
            ]
        },
        prepare: claim::set_taint_times,
        inherits: claim::inherit_times,
        validate: checks::device_slices::slice,
        warn: checks::device_slices::warn,
        ..of_group("ResourceSlice", "resourceslices")
    }
}

fn device_taint_rule() -> Kind {
    Kind {
        namespaced: false,
        status: KEEPS_METADATA,
        generation: OF_SPEC,
        unconditional_update: false,
        returns_deleted: false,
        prepare: claim::set_taint_time,
        record_time: claim::date_new_effect,
        validate: checks::device_taints::rule,
        ..of_group("DeviceTaintRule", "devicetaintrules")
    }
}
