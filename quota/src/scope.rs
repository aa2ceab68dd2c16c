//! Scopes: the objects of a namespace to which a quota is limited.

use std::collections::BTreeSet;

use serde::Deserialize;
use smol_str::SmolStr;

use crate::json;
use crate::names::{is_label, is_label_text};

/// A requirement of a quota's scopes (`v1.ScopedResourceSelectorRequirement`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ScopeRequirement {
    /// The scope: `Terminating`, `PriorityClass` and so on.
    #[serde(deserialize_with = "json::or_default")]
    pub scope_name: SmolStr,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(deserialize_with = "json::or_default")]
    pub operator: SmolStr,
    /// The values of `In` and `NotIn`.
    #[serde(deserialize_with = "json::or_default")]
    pub values: Vec<SmolStr>,
}

/// All requirements of a quota: an object is counted if it meets every one of them.
///
/// # Examples
///
/// ```
/// use homeostat_quota::{PodScopes, ScopeFacts, ScopeRequirement, Scopes};
///
/// let high = ScopeRequirement::new("PriorityClass", "In", ["high"]);
/// let scopes = Scopes::new(["NotTerminating"], [high]);
/// let mut pod = PodScopes::default();
/// assert_eq!(scopes.matches(&ScopeFacts::Pod(pod.clone())), Ok(false));
/// pod.priority_class_name = "high".into();
/// assert_eq!(scopes.matches(&ScopeFacts::Pod(pod)), Ok(true));
/// // A secret is in no scope.
/// assert_eq!(scopes.matches(&ScopeFacts::None), Ok(false));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(Vec<ScopeRequirement>);

/// The facts about an object that decide in which scopes it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ScopeFacts {
    /// The object is in no scope.
    #[default]
    None,
    /// The object is a pod.
    Pod(PodScopes),
    /// The object is a claim to storage, with these volume attributes classes.
    VolumeAttributesClasses(BTreeSet<SmolStr>),
}

/// The facts about a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodScopes {
    /// The pod has an active deadline.
    pub terminating: bool,
    /// The pod has the quality of service `BestEffort`.
    pub best_effort: bool,
    /// The pod has an affinity to pods of other namespaces.
    pub cross_namespace_pod_affinity: bool,
    /// The priority class; empty if there is none.
    pub priority_class_name: SmolStr,
}

/// A requirement that cannot be evaluated. The text is upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error on matching scope {requirement}: failed to parse and convert selector: {reason}")]
pub struct ScopeError {
    /// The requirement, as Go prints it: `{PriorityClass In [high]}`.
    requirement: String,
    reason: String,
}

// === impl ScopeRequirement ===

impl ScopeRequirement {
    /// Returns a requirement.
    pub fn new<V: Into<SmolStr>>(
        scope_name: &str,
        operator: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self {
            scope_name: scope_name.into(),
            operator: operator.into(),
            values: values.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns true if an object with these facts meets the requirement.
    ///
    /// # Errors
    ///
    /// Returns an error if the scope takes values and the operator or the values are not valid.
    pub fn matches(&self, facts: &ScopeFacts) -> Result<bool, ScopeError> {
        match facts {
            ScopeFacts::None => Ok(false),
            ScopeFacts::Pod(pod) => match self.scope_name.as_str() {
                "Terminating" => Ok(pod.terminating),
                "NotTerminating" => Ok(!pod.terminating),
                "BestEffort" => Ok(pod.best_effort),
                "NotBestEffort" => Ok(!pod.best_effort),
                "CrossNamespacePodAffinity" => Ok(pod.cross_namespace_pod_affinity),
                "PriorityClass" => {
                    let name = &pod.priority_class_name;
                    self.selects(std::slice::from_ref(name).iter().filter(|name| !name.is_empty()))
                }
                _ => Ok(false),
            },
            ScopeFacts::VolumeAttributesClasses(names) => match self.scope_name.as_str() {
                "VolumeAttributesClass" => self.selects(names),
                _ => Ok(false),
            },
        }
    }

    /// Returns true if one of the names meets the requirement, or the absence of names does.
    fn selects<'a>(
        &self,
        names: impl IntoIterator<Item = &'a SmolStr>,
    ) -> Result<bool, ScopeError> {
        let mut names = names.into_iter().peekable();
        if self.operator == "Exists" {
            return Ok(names.peek().is_some());
        }
        self.check()?;
        let has_names = names.peek().is_some();
        let is_listed = |name: &SmolStr| self.values.contains(name);
        Ok(match self.operator.as_str() {
            "In" => names.any(is_listed),
            "NotIn" => !has_names || names.any(|name| !is_listed(name)),
            _ => !has_names,
        })
    }

    /// Checks a requirement that is evaluated as a label selector (`labels.NewRequirement`).
    fn check(&self) -> Result<(), ScopeError> {
        let values = format!("{:?}", self.values).replace("\", \"", "\",\"");
        let mut causes = Vec::new();
        match self.operator.as_str() {
            "In" | "NotIn" if self.values.is_empty() => causes.push(
                "values: Invalid value: null: for 'in', 'notin' operators, \
                 values set can't be empty"
                    .to_owned(),
            ),
            "DoesNotExist" if !self.values.is_empty() => causes.push(format!(
                "values: Invalid value: {values}: \
                 values set must be empty for exists and does not exist"
            )),
            "In" | "NotIn" | "DoesNotExist" => {}
            other => {
                return Err(self.error(format!("{other:?} is not a valid scope selector operator")));
            }
        }
        for (at, value) in self.values.iter().enumerate().filter(|(_, value)| !is_label(value)) {
            let place = format!("values[{at}][{}]: Invalid value: {value:?}", self.scope_name);
            let fault = if is_label_text(value) { LABEL_LENGTH } else { LABEL_RULE };
            causes.push(format!("{place}: {fault}"));
        }
        match causes.as_slice() {
            [] => Ok(()),
            [cause] => Err(self.error(cause.clone())),
            causes => Err(self.error(format!("[{}]", causes.join(", ")))),
        }
    }

    fn error(&self, reason: String) -> ScopeError {
        let Self { scope_name, operator, values } = self;
        let requirement = format!("{{{scope_name} {operator} [{}]}}", values.join(" "));
        ScopeError { requirement, reason }
    }
}

const LABEL_LENGTH: &str = "must be no more than 63 bytes";
const LABEL_RULE: &str = concat!(
    "a valid label must be an empty string or consist of alphanumeric characters, ",
    "'-', '_' or '.', and must start and end with an alphanumeric character ",
    "(e.g. 'MyValue',  or 'my_value',  or '12345', ",
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
);

// === impl Scopes ===

impl Scopes {
    /// Returns the requirements of a quota. A plain scope has the operator `Exists`.
    pub fn new<'a>(
        scopes: impl IntoIterator<Item = &'a str>,
        expressions: impl IntoIterator<Item = ScopeRequirement>,
    ) -> Self {
        let plain = |name| ScopeRequirement::new(name, "Exists", [""; 0]);
        Self(scopes.into_iter().map(plain).chain(expressions).collect())
    }

    /// Returns true if there is no requirement.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the requirements.
    pub fn requirements(&self) -> &[ScopeRequirement] {
        &self.0
    }

    /// Returns true if an object with these facts meets every requirement.
    ///
    /// # Errors
    ///
    /// Returns the first requirement that cannot be evaluated, also if another one is not met.
    pub fn matches(&self, facts: &ScopeFacts) -> Result<bool, ScopeError> {
        self.0.iter().try_fold(true, |met, requirement| Ok(requirement.matches(facts)? && met))
    }
}
