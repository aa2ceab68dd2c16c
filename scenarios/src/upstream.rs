//! Counterparts of upstream's integration tests of v1.37.1, `test/integration/replicaset` and
//! `test/integration/replicationcontroller`. Each scenario names its test.
//!
//! `TestRSSelectorImmutability` is about the API server alone, and the conformance suite of
//! `homeostat-apiserver` has it.

mod adoption;
mod cluster;
mod scaling;
mod status;

use crate::Scenario;

/// The tests that upstream has for both kinds.
pub const UPSTREAM: &[Scenario] = &[
    Scenario {
        name: "orphans_are_adopted_and_pods_of_another_controller_are_not",
        play: |world| Box::pin(adoption::orphans(world)),
    },
    Scenario {
        name: "changed_replicas_and_generation_are_observed",
        play: |world| Box::pin(scaling::spec_replicas_change(world)),
    },
    Scenario {
        name: "youngest_pod_by_magnitude_of_age_is_deleted",
        play: |world| Box::pin(scaling::logarithmic_scale_down(world)),
    },
    Scenario {
        name: "deleting_and_failed_pods_are_replaced_and_kept",
        play: |world| Box::pin(scaling::deleting_and_failed_pods(world)),
    },
    Scenario {
        name: "owners_with_equal_selectors_keep_their_own_pods",
        play: |world| Box::pin(adoption::overlapping_selectors(world)),
    },
    Scenario {
        name: "relabelled_pod_is_released_and_adopted_back",
        play: |world| Box::pin(adoption::labels_change(world)),
    },
    Scenario {
        name: "reference_that_does_not_control_is_completed",
        play: |world| Box::pin(adoption::general_pod_adoption(world)),
    },
    Scenario {
        name: "ready_and_available_pods_are_counted",
        play: |world| Box::pin(status::ready_and_available_replicas(world)),
    },
    Scenario {
        name: "scale_subresource_changes_the_pods",
        play: |world| Box::pin(scaling::scale_subresource(world)),
    },
    Scenario {
        name: "surplus_orphan_is_adopted_then_deleted",
        play: |world| Box::pin(adoption::extra_pods(world)),
    },
    Scenario {
        name: "fully_labelled_pods_are_counted",
        play: |world| Box::pin(status::fully_labeled_replicas(world)),
    },
];

/// The tests that upstream has for `ReplicaSet`s only.
pub const UPSTREAM_REPLICA_SETS: &[Scenario] = &[
    Scenario {
        name: "deletion_cost_decides_if_its_gate_is_on",
        play: |world| Box::pin(scaling::pod_deletion_cost(world)),
    },
    Scenario {
        name: "deletion_without_a_policy_adds_no_finalizer",
        play: |world| Box::pin(scaling::default_deletion_policy(world)),
    },
    Scenario {
        name: "terminating_pods_are_counted_if_the_gate_is_on",
        play: |world| Box::pin(status::terminating_replicas(world)),
    },
];
