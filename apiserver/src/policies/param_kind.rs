//! The kind of the objects that are parameters of a policy.

use serde_json::Value;

use super::attributes::GroupKind;

/// The kind of a policy's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamKind(pub(crate) GroupKind);

// === impl ParamKind ===

impl ParamKind {
    pub(super) fn read(of: &Value) -> Option<Self> {
        let text = |name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, version) =
            text("apiVersion").split_once('/').unwrap_or_else(|| ("", text("apiVersion")));
        (!of.is_null()).then(|| Self(GroupKind::new(group, version, text("kind"))))
    }

    /// Returns the error for a kind that the server does not have.
    pub(super) fn unknown(&self) -> String {
        let GroupKind { group, version, kind } = &self.0;
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    }
}
