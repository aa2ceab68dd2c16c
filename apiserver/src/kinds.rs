//! The table of kinds, with a row for each kind. No other module names a kind.

mod annotations;
mod app_armor;
mod author;
mod autoscaler_v1;
mod checks;
mod claim;
mod columns;
pub(crate) mod crd;
mod cron;
mod custom;
mod defaults;
mod defined_kinds;
mod definition;
pub(crate) mod disruption;
mod embedded;
mod external_addresses;
mod image_name;
mod ingress_class;
mod job;
mod kind;
mod label_keys;
mod label_selector;
pub(crate) mod limit_range;
mod limits;
mod namespace;
mod network_warnings;
mod node;
mod node_features;
mod node_selector;
mod pem;
mod pod;
mod pod_inherit;
mod pod_level;
mod pod_update;
mod pod_warnings;
mod priority_class;
mod protection;
mod registry;
mod resize;
mod runtime_class;
mod scale;
mod secret;
mod service;
mod service_account;
mod shared;
mod signer;
mod storage_class;
mod table;
mod topology;
mod url;
mod volume_claim;
mod warnings;
mod workload;

pub use kind::Kind;

pub(crate) use author::{Author, StatusWrite};
pub(crate) use checks::paths::of_domain as check_domain_path;
pub(crate) use checks::{managers, metadata, selectors};
pub(crate) use claim::admin_access;
pub(crate) use columns::{
    Action, ActionError, Admission, AdmitError, CompleteBody, DefaultValue, Defaults, Dependents,
    Effect, Generation, Guard, GuardedWrite, OnCreate, Operations, Part, Protected, Relay, Review,
    Scale, Secured, Status, StoredAs,
};
pub(crate) use definition::{Names, PrinterColumn, version_rank};
pub(crate) use label_selector::read as selector_of;
pub(crate) use registry::{Kinds, Served};
pub(crate) use service::{Allocations, Allocator};
pub(crate) use service_account::RunAs;
pub(crate) use shared::{in_version, other_versions};
pub(crate) use signer::Issue;
#[cfg(test)]
pub(crate) use table::built_in;
pub(crate) use table::{BUILT_IN_OBJECTS, BUILT_IN_ROLES, BUILT_IN_SETTINGS};
