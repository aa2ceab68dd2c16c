//! The defaults of a pod's spec, in pods and templates.

use crate::kinds::DefaultValue::{self, From, Json, Merge};
use crate::kinds::pod;

/// Defaults in pods and templates.
pub(super) const POD_SPEC: &[(&str, DefaultValue)] = &[
    ("serviceAccountName", From(pod::service_account)),
    ("serviceAccount", From(pod::service_account_name)),
    ("restartPolicy", Json("\"Always\"")),
    ("terminationGracePeriodSeconds", Json("30")),
    ("dnsPolicy", Json("\"ClusterFirst\"")),
    ("securityContext", Json("{}")),
    ("schedulerName", Json("\"default-scheduler\"")),
    (
        "containers|initContainers|ephemeralContainers[].terminationMessagePath",
        Json("\"/dev/termination-log\""),
    ),
    ("containers|initContainers|ephemeralContainers[].terminationMessagePolicy", Json("\"File\"")),
    ("containers|initContainers|ephemeralContainers[].imagePullPolicy", From(pod::pull_policy)),
    ("containers|initContainers|ephemeralContainers[].ports[].protocol", Json("\"TCP\"")),
    (
        "containers|initContainers|ephemeralContainers[].env[].valueFrom.fieldRef.apiVersion",
        Json("\"v1\""),
    ),
    ("containers|initContainers[].livenessProbe|readinessProbe|startupProbe", Merge(pod::probe)),
    (
        "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.httpGet.path",
        Json("\"/\""),
    ),
    (
        "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.httpGet.scheme",
        Json("\"HTTP\""),
    ),
    (
        "containers|initContainers[].livenessProbe|readinessProbe|startupProbe.grpc.service",
        Json("\"\""),
    ),
    ("containers|initContainers[].lifecycle.postStart|preStop.httpGet.path", Json("\"/\"")),
    ("containers|initContainers[].lifecycle.postStart|preStop.httpGet.scheme", Json("\"HTTP\"")),
    ("volumes[]", Merge(pod::volume)),
    ("volumes[].secret|configMap|downwardAPI|projected.defaultMode", Json("420")),
    ("volumes[].hostPath.type", Json("\"\"")),
    (
        "containers|initContainers|ephemeralContainers[].env[].valueFrom.fileKeyRef.optional",
        Json("false"),
    ),
    ("volumes[].iscsi.iscsiInterface", Json("\"default\"")),
    ("volumes[].rbd.pool", Json("\"rbd\"")),
    ("volumes[].rbd.user", Json("\"admin\"")),
    ("volumes[].rbd.keyring", Json("\"/etc/ceph/keyring\"")),
    ("volumes[].azureDisk.cachingMode", Json("\"ReadWrite\"")),
    ("volumes[].azureDisk.fsType", Json("\"ext4\"")),
    ("volumes[].azureDisk.readOnly", Json("false")),
    ("volumes[].azureDisk.kind", Json("\"Shared\"")),
    ("volumes[].scaleIO.storageMode", Json("\"ThinProvisioned\"")),
    ("volumes[].scaleIO.fsType", Json("\"xfs\"")),
    ("volumes[].image.pullPolicy", From(pod::volume_pull_policy)),
    ("volumes[].downwardAPI.items[].fieldRef.apiVersion", Json("\"v1\"")),
    ("volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion", Json("\"v1\"")),
    ("volumes[].projected.sources[].serviceAccountToken.expirationSeconds", Json("3600")),
    ("volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode", Json("\"Filesystem\"")),
];

/// Defaults only in pods.
pub(super) const POD: &[(&str, DefaultValue)] =
    &[("enableServiceLinks", Json("true")), ("containers|initContainers[]", Merge(pod::requests))];
