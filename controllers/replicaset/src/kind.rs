//! The two kinds that keep a number of equal pods, with all that differs between them.
//!
//! Upstream has one controller for both as well, and converts each `ReplicationController` to a
//! `ReplicaSet` and back. Here the controller is generic over the kind.

use std::collections::BTreeMap;

use homeostat::kube_client::Resource;
use homeostat_core::{LabelSelector, LabelSelectorError};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ReplicationController;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use serde::de::DeserializeOwned;

/// A kind of object that keeps a number of equal pods.
///
/// The controller's names are upstream's, so that dashboards and filters of events keep working.
pub trait WorkloadKind:
    Resource<DynamicType = ()> + k8s_openapi::Resource + Send + Sync + 'static
{
    /// The name of the controller: of its queue, its expectations and its log lines.
    const CONTROLLER: &'static str;

    /// The source of the controller's events.
    const COMPONENT: &'static str;

    /// The prefix of the controller's metrics. The age ratio of deleted pods has that of
    /// `ReplicaSet`s for both kinds, as upstream.
    const METRICS: &'static str;

    /// True if the status has the field `terminatingReplicas`.
    const REPORTS_TERMINATING: bool;

    /// The form of `spec.selector`.
    type Selector: DeserializeOwned;

    /// Returns the selector of pods, empty if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the selector is invalid.
    fn selector(
        selector: Option<Self::Selector>,
        template_labels: &BTreeMap<String, String>,
    ) -> Result<LabelSelector, LabelSelectorError>;
}

impl WorkloadKind for ReplicaSet {
    const CONTROLLER: &'static str = "replicaset";
    const COMPONENT: &'static str = "replicaset-controller";
    const METRICS: &'static str = "replicaset_controller";
    const REPORTS_TERMINATING: bool = true;

    type Selector = metav1::LabelSelector;

    fn selector(
        selector: Option<metav1::LabelSelector>,
        _: &BTreeMap<String, String>,
    ) -> Result<LabelSelector, LabelSelectorError> {
        selector.as_ref().map_or_else(|| Ok(LabelSelector::default()), TryFrom::try_from)
    }
}

impl WorkloadKind for ReplicationController {
    const CONTROLLER: &'static str = "replicationmanager";
    const COMPONENT: &'static str = "replication-controller";
    const METRICS: &'static str = "replication_controller";
    const REPORTS_TERMINATING: bool = false;

    type Selector = BTreeMap<String, String>;

    /// Without a selector, the labels of the template select: the API server's default.
    fn selector(
        selector: Option<BTreeMap<String, String>>,
        template_labels: &BTreeMap<String, String>,
    ) -> Result<LabelSelector, LabelSelectorError> {
        let labels = selector.filter(|labels| !labels.is_empty());
        let match_labels = labels.unwrap_or_else(|| template_labels.clone());
        LabelSelector::try_from(&metav1::LabelSelector {
            match_labels: Some(match_labels),
            match_expressions: None,
        })
    }
}
