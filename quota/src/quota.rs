//! The projection of a quota.

use homeostat_quantity::{ResourceList, ResourceName};
use serde::Deserialize;
use smol_str::SmolStr;

use crate::charge::Charge;
use crate::device_class::DeviceClassMapping;
use crate::evaluator::Evaluator;
use crate::json;
use crate::object::Meta;
use crate::scope::{ScopeError, ScopeRequirement, Scopes};

/// A quota (`v1.ResourceQuota`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Quota {
    /// Its metadata.
    #[serde(deserialize_with = "json::or_default")]
    pub metadata: Meta,
    /// Its specification.
    #[serde(deserialize_with = "json::or_default")]
    pub spec: QuotaSpec,
    /// Its status.
    #[serde(deserialize_with = "json::or_default")]
    pub status: QuotaStatus,
}

/// The specification of a quota.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct QuotaSpec {
    /// The limits.
    #[serde(deserialize_with = "json::or_default")]
    pub hard: ResourceList,
    /// The scopes. Each has to match.
    #[serde(deserialize_with = "json::or_default")]
    pub scopes: Vec<SmolStr>,
    /// Further requirements. Each has to match.
    #[serde(deserialize_with = "json::or_default")]
    pub scope_selector: ScopeSelector,
}

/// The scope selector of a quota.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ScopeSelector {
    /// The requirements.
    #[serde(deserialize_with = "json::or_default")]
    pub match_expressions: Vec<ScopeRequirement>,
}

/// The status of a quota. Before the first count both lists are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct QuotaStatus {
    /// The limits that are enforced.
    pub hard: Option<ResourceList>,
    /// The usage.
    pub used: Option<ResourceList>,
}

// === impl Quota ===

impl Quota {
    /// Returns all scope requirements of the quota.
    pub fn scopes(&self) -> Scopes {
        let spec = &self.spec;
        let expressions = spec.scope_selector.match_expressions.iter().cloned();
        Scopes::new(spec.scopes.iter().map(SmolStr::as_str), expressions)
    }

    /// Returns the names among the enforced limits that `evaluator` counts.
    pub fn enforced(
        &self,
        evaluator: &Evaluator,
        classes: &DeviceClassMapping,
    ) -> Vec<ResourceName> {
        let hard: Vec<_> = self.status.hard.iter().flat_map(ResourceList::names).cloned().collect();
        evaluator.matching_resources(&hard, classes)
    }

    /// Returns true if the quota enforces a name that `evaluator` counts, and the object is in all
    /// its scopes (`Matches`).
    ///
    /// # Errors
    ///
    /// Returns an error if a scope cannot be evaluated.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_quota::object::Object;
    /// use homeostat_quota::{DeviceClassMapping, Evaluator, Gates, Quota};
    /// use serde_json::json;
    ///
    /// let quota: Quota = serde_json::from_value(json!({
    ///     "spec": {"scopes": ["BestEffort"]}, "status": {"hard": {"pods": "2"}},
    /// }))?;
    /// let pods = Evaluator::pods(Gates::default());
    /// let classes = DeviceClassMapping::default();
    /// let pod = Object::read(pods.resource(), &json!({"spec": {"containers": [{"name": "a"}]}}))?;
    /// assert!(quota.matches(&pods, &pods.charge(&pod, &classes)?, &classes)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn matches(
        &self,
        evaluator: &Evaluator,
        charge: &Charge,
        classes: &DeviceClassMapping,
    ) -> Result<bool, ScopeError> {
        let in_scope = self.scopes().matches(charge.scopes())?;
        Ok(in_scope && !self.enforced(evaluator, classes).is_empty())
    }
}
