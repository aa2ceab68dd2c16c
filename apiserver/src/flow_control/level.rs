//! A priority level, as far as it names requests and their share of the server.

use serde::Deserialize;

use super::schema::Meta;

/// A priority level.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PriorityLevel {
    pub(super) metadata: Meta,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    limited: Option<Limits>,
    exempt: Option<Limits>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limits {
    nominal_concurrency_shares: u32,
}

// === impl PriorityLevel ===

impl PriorityLevel {
    /// Returns the level's weight among all levels.
    pub(super) fn shares(&self) -> u64 {
        let limits = self.spec.limited.as_ref().or(self.spec.exempt.as_ref());
        limits.map_or(0, |limits| limits.nominal_concurrency_shares.into())
    }
}
