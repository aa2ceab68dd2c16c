//! The groups `storage.k8s.io` and `storagemigration.k8s.io`, and the core kind `PersistentVolume`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{KEEPS_METADATA, KEEPS_SPEC, PLAIN, named};
use crate::fields::{Fields, read_path};
use crate::kinds::DefaultValue::{Json, Unset};
use crate::kinds::{Defaults, Generation, Kind, checks, protection, storage_class, warnings};
use crate::plugin::Addition;

pub(super) fn rows() -> Vec<Kind> {
    vec![
        csi_driver(),
        csi_node(),
        csi_storage_capacity(),
        storage_class(),
        volume_attachment(),
        volume_attributes_class(),
        persistent_volume(),
        migration(),
    ]
}

fn of_group(kind: &'static str, plural: &'static str) -> Kind {
    Kind { namespaced: false, returns_deleted: true, ..named("storage.k8s.io", kind, plural) }
}

fn csi_driver() -> Kind {
    Kind {
        unconditional_update: false,
        defaults: &[Defaults {
            under: "spec",
            rules: &[
                ("attachRequired", Json("true")),
                ("podInfoOnMount", Json("false")),
                ("storageCapacity", Json("false")),
                ("fsGroupPolicy", Unset("\"ReadWriteOnceWithFSType\"")),
                ("volumeLifecycleModes", Json("[\"Persistent\"]")),
                ("requiresRepublish", Json("false")),
                ("seLinuxMount", Json("false")),
                ("preventPodSchedulingIfMissing", Json("false")),
            ],
        }],
        generation: Generation::Later(&["spec"]),
        validate: checks::csi::driver,
        warn: checks::csi::warn_driver,
        ..of_group("CSIDriver", "csidrivers")
    }
}

fn csi_node() -> Kind {
    Kind {
        unconditional_update: false,
        status: KEEPS_METADATA,
        derive: hide_no_drivers,
        null_if_empty: &["spec.drivers"],
        validate: checks::csi::node,
        ..of_group("CSINode", "csinodes")
    }
}

/// Shows an empty list of drivers as null, as the real server does.
fn hide_no_drivers(node: &mut Fields) {
    if let Some(Value::Object(spec)) = node.get_mut("spec")
        && let Some(drivers) = spec.get_mut("drivers")
        && drivers.as_array().is_some_and(Vec::is_empty)
    {
        *drivers = Value::Null;
    }
}

fn csi_storage_capacity() -> Kind {
    Kind {
        namespaced: true,
        unconditional_update: false,
        returns_deleted: false,
        validate: checks::storage::capacity,
        warn: warnings::storage_capacity,
        immutable: &["nodeTopology", "storageClassName"],
        ..of_group("CSIStorageCapacity", "csistoragecapacities")
    }
}

fn storage_class() -> Kind {
    Kind {
        short_names: &["sc"],
        defaults: &[Defaults {
            under: "",
            rules: &[
                ("reclaimPolicy", Unset("\"Delete\"")),
                ("volumeBindingMode", Unset("\"Immediate\"")),
            ],
        }],
        find_default: Some(storage_class::find_default),
        validate: checks::storage::class,
        warn: warnings::storage_class,
        ..of_group("StorageClass", "storageclasses")
    }
}

fn volume_attachment() -> Kind {
    Kind {
        unconditional_update: false,
        status: KEEPS_METADATA,
        validate: checks::attachments::attachment,
        ..of_group("VolumeAttachment", "volumeattachments")
    }
}

fn volume_attributes_class() -> Kind {
    Kind {
        short_names: &["vac"],
        additions: Cow::Borrowed(&ATTRIBUTES_CLASS_PROTECTION),
        validate: checks::storage::attributes_class,
        ..of_group("VolumeAttributesClass", "volumeattributesclasses")
    }
}

fn persistent_volume() -> Kind {
    Kind {
        short_names: &["pv"],
        namespaced: false,
        returns_deleted: true,
        status: KEEPS_SPEC,
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[
                    ("persistentVolumeReclaimPolicy", Json("\"Retain\"")),
                    ("volumeMode", Json("\"Filesystem\"")),
                    ("hostPath.type", Json("\"\"")),
                    ("iscsi.iscsiInterface", Json("\"default\"")),
                    ("rbd.pool", Json("\"rbd\"")),
                    ("rbd.user", Json("\"admin\"")),
                    ("rbd.keyring", Json("\"/etc/ceph/keyring\"")),
                    ("azureDisk.cachingMode", Json("\"ReadWrite\"")),
                    ("azureDisk.fsType", Json("\"ext4\"")),
                    ("azureDisk.readOnly", Json("false")),
                    ("azureDisk.kind", Json("\"Shared\"")),
                    ("scaleIO.storageMode", Json("\"ThinProvisioned\"")),
                    ("scaleIO.fsType", Json("\"xfs\"")),
                ],
            },
            Defaults { under: "status", rules: &[("phase", Json("\"Pending\""))] },
        ],
        prepare: set_first_phase,
        additions: Cow::Borrowed(&VOLUME_PROTECTION),
        record_time: date_phase,
        inherits: keep_phase_time,
        validate: checks::persistent_volume::volume,
        warn: warnings::persistent_volume,
        ..named("", "PersistentVolume", "persistentvolumes")
    }
}

const PHASE_TIME: &str = "status.lastPhaseTransitionTime";

/// A new volume is in its first phase.
fn set_first_phase(volume: &mut Fields) {
    let now = read_path(volume, "metadata.creationTimestamp").cloned().unwrap_or_default();
    let status = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
    volume.insert("status".to_owned(), status);
}

/// Records the time at which a volume enters another phase.
fn date_phase(volume: &mut Fields, old: &Fields, now: &str) {
    let sent = read_path(volume, PHASE_TIME);
    let is_dated = sent.is_some() && sent != read_path(old, PHASE_TIME);
    if is_dated || read_path(volume, "status.phase") == read_path(old, "status.phase") {
        return;
    }
    set_phase_time(volume, json!(now));
}

/// Restores the time of the phase if a client omits it in the same phase.
fn keep_phase_time(volume: &mut Fields, old: &Fields) {
    let same_phase = read_path(volume, "status.phase") == read_path(old, "status.phase");
    if let Some(before) = read_path(old, PHASE_TIME)
        && same_phase
        && read_path(volume, PHASE_TIME).is_none()
    {
        set_phase_time(volume, before.clone());
    }
}

fn set_phase_time(volume: &mut Fields, time: Value) {
    if let Some(Value::Object(status)) = volume.get_mut("status") {
        status.insert("lastPhaseTransitionTime".to_owned(), time);
    }
}

/// A volume stays until no claim uses it.
const VOLUME_PROTECTION: [Addition; 1] =
    [protection::of_new(|volume, _| protection::protect(volume, "kubernetes.io/pv-protection"))];

/// A volume attributes class stays until no claim uses it.
const ATTRIBUTES_CLASS_PROTECTION: [Addition; 1] =
    [protection::of_new(|class, _| protection::protect(class, "kubernetes.io/vac-protection"))];

fn migration() -> Kind {
    Kind {
        namespaced: false,
        status: KEEPS_METADATA,
        generation: Generation::None,
        unconditional_update: false,
        validate: checks::migrations::migration,
        group: "storagemigration.k8s.io".into(),
        kind: "StorageVersionMigration".into(),
        plural: "storageversionmigrations".into(),
        ..PLAIN
    }
}
