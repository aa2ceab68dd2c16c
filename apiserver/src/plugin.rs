//! The admission plugins that can be switched off and on.

use std::collections::BTreeSet;

use crate::fields::Fields;

/// An admission plugin of kube-apiserver whose work this API server does, too.
///
/// [`Builder::without_plugin`](crate::Builder::without_plugin) switches one off, and
/// [`Builder::with_plugin`](crate::Builder::with_plugin) one on that is off by default, here as in
/// kube-apiserver. `ResourceQuota` and `ServiceAccount` are none of these: they are off by default
/// here only, and [`Builder::quota_admission`](crate::Builder::quota_admission) and
/// [`Builder::service_account_admission`](crate::Builder::service_account_admission) switch them
/// on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AdmissionPlugin {
    /// Pulls the images of each pod at each start of a container. Off by default.
    AlwaysPullImages,
    /// Refuses the approval of a request for a certificate by a user without the right.
    CertificateApproval,
    /// Refuses the certificate of a request by a user without the right to sign.
    CertificateSigning,
    /// Refuses requests for a client certificate of the group `system:masters`.
    CertificateSubjectRestriction,
    /// Refuses bundles of a signer by a user without the right to attest for it.
    ClusterTrustBundleAttest,
    /// Gives an ingress that names no class the default one.
    DefaultIngressClass,
    /// Gives a claim that names no class the default one.
    DefaultStorageClass,
    /// Lets pods stay on a node that is not ready or cannot be reached, for five minutes.
    DefaultTolerationSeconds,
    /// Refuses new external addresses of services. Off by default.
    DenyServiceExternalIPs,
    /// Fills in the defaults of limit ranges, and refuses what exceeds them.
    LimitRanger,
    /// Changes objects as the policies of this kind say.
    MutatingAdmissionPolicy,
    /// Asks webhooks that may change the object of a request.
    MutatingAdmissionWebhook,
    /// Creates the namespace of a new object if it is missing. Off by default.
    NamespaceAutoProvision,
    /// Refuses new objects in a namespace that is missing or being deleted, and the deletion of
    /// `default`, `kube-system` and `kube-public`.
    NamespaceLifecycle,
    /// Refuses the resize of a pod that needs a feature which its node does not declare.
    NodeDeclaredFeatureValidator,
    /// Refuses changes of the owners of an object by a user without the right to delete it, and
    /// owners that wait for the object by a user without the right to set their finalizers. Off by
    /// default.
    OwnerReferencesPermissionEnforcement,
    /// Refuses to resize a claim whose class does not permit it.
    PersistentVolumeClaimResize,
    /// Gives a pod the node selector that an annotation of its namespace names,
    /// `scheduler.alpha.kubernetes.io/node-selector`, and refuses one that contradicts it. Off by
    /// default.
    PodNodeSelector,
    /// Refuses to resize a pod on a node that cannot do so.
    PodResizeValidator,
    /// Refuses pods that the labels of their namespace do not permit, and warns about templates.
    PodSecurity,
    /// Gives a pod that gets a node the labels of its zone and region.
    PodTopologyLabels,
    /// Gives a pod the number of its priority class.
    Priority,
    /// Gives a pod the overhead, the node selector and the tolerations of its runtime class, and
    /// refuses one whose class is missing.
    RuntimeClass,
    /// Gives claims, volumes and volume attributes classes the finalizer that keeps them while they
    /// are in use.
    StorageObjectInUseProtection,
    /// Taints a new node as not ready.
    TaintNodesByCondition,
    /// Refuses what the policies of this kind refuse.
    ValidatingAdmissionPolicy,
    /// Asks webhooks that may refuse a request.
    ValidatingAdmissionWebhook,
}

/// The members that a plugin adds to each object of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addition {
    pub(crate) plugin: AdmissionPlugin,
    pub(crate) at: At,
    /// Changes the new object; the second one is the stored object of an update.
    pub(crate) apply: fn(&mut Fields, Option<&Fields>),
}

/// The writes to which a plugin adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Create,
    /// Creates and updates.
    Write,
}

/// The plugins that are off.
pub(crate) type Off = BTreeSet<AdmissionPlugin>;

// === impl AdmissionPlugin ===

impl AdmissionPlugin {
    /// The plugins, in the order of their names.
    pub const ALL: [Self; 27] = [
        Self::AlwaysPullImages,
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::CertificateSubjectRestriction,
        Self::ClusterTrustBundleAttest,
        Self::DefaultIngressClass,
        Self::DefaultStorageClass,
        Self::DefaultTolerationSeconds,
        Self::DenyServiceExternalIPs,
        Self::LimitRanger,
        Self::MutatingAdmissionPolicy,
        Self::MutatingAdmissionWebhook,
        Self::NamespaceAutoProvision,
        Self::NamespaceLifecycle,
        Self::NodeDeclaredFeatureValidator,
        Self::OwnerReferencesPermissionEnforcement,
        Self::PersistentVolumeClaimResize,
        Self::PodNodeSelector,
        Self::PodResizeValidator,
        Self::PodSecurity,
        Self::PodTopologyLabels,
        Self::Priority,
        Self::RuntimeClass,
        Self::StorageObjectInUseProtection,
        Self::TaintNodesByCondition,
        Self::ValidatingAdmissionPolicy,
        Self::ValidatingAdmissionWebhook,
    ];

    /// Returns true if the plugin is on by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::AdmissionPlugin;
    ///
    /// assert!(AdmissionPlugin::LimitRanger.is_default());
    /// assert!(!AdmissionPlugin::AlwaysPullImages.is_default());
    /// ```
    #[must_use]
    pub fn is_default(self) -> bool {
        !matches!(
            self,
            Self::AlwaysPullImages
                | Self::DenyServiceExternalIPs
                | Self::NamespaceAutoProvision
                | Self::OwnerReferencesPermissionEnforcement
                | Self::PodNodeSelector
        )
    }

    /// Returns the name that kube-apiserver's `--disable-admission-plugins` takes.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::AdmissionPlugin;
    ///
    /// assert_eq!(AdmissionPlugin::LimitRanger.name(), "LimitRanger");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AlwaysPullImages => "AlwaysPullImages",
            Self::CertificateApproval => "CertificateApproval",
            Self::CertificateSigning => "CertificateSigning",
            Self::CertificateSubjectRestriction => "CertificateSubjectRestriction",
            Self::ClusterTrustBundleAttest => "ClusterTrustBundleAttest",
            Self::DefaultIngressClass => "DefaultIngressClass",
            Self::DefaultStorageClass => "DefaultStorageClass",
            Self::DefaultTolerationSeconds => "DefaultTolerationSeconds",
            Self::DenyServiceExternalIPs => "DenyServiceExternalIPs",
            Self::LimitRanger => "LimitRanger",
            Self::MutatingAdmissionPolicy => "MutatingAdmissionPolicy",
            Self::MutatingAdmissionWebhook => "MutatingAdmissionWebhook",
            Self::NamespaceAutoProvision => "NamespaceAutoProvision",
            Self::NamespaceLifecycle => "NamespaceLifecycle",
            Self::NodeDeclaredFeatureValidator => "NodeDeclaredFeatureValidator",
            Self::OwnerReferencesPermissionEnforcement => "OwnerReferencesPermissionEnforcement",
            Self::PersistentVolumeClaimResize => "PersistentVolumeClaimResize",
            Self::PodNodeSelector => "PodNodeSelector",
            Self::PodResizeValidator => "PodResizeValidator",
            Self::PodSecurity => "PodSecurity",
            Self::PodTopologyLabels => "PodTopologyLabels",
            Self::Priority => "Priority",
            Self::RuntimeClass => "RuntimeClass",
            Self::StorageObjectInUseProtection => "StorageObjectInUseProtection",
            Self::TaintNodesByCondition => "TaintNodesByCondition",
            Self::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
            Self::ValidatingAdmissionWebhook => "ValidatingAdmissionWebhook",
        }
    }
}
