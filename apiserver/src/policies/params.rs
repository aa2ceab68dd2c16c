//! The parameters of a policy: objects that a binding names.

use homeostat_core::LabelSelector;
use serde_json::Value;

use super::attributes::Attributes;
use super::param_kind::ParamKind;
use super::world::World;
use crate::kinds::selector_of;

/// The reference of a binding to parameters.
#[derive(Debug)]
pub(super) struct ParamRef {
    name: String,
    namespace: String,
    /// None for a reference by name.
    selector: Option<LabelSelector>,
    is_required: bool,
}

const IN_CLUSTER: &str =
    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
const WITH_NAMESPACE: &str =
    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
const NONE: &str = "no params found for policy binding with `Deny` parameterNotFoundAction";

// === impl ParamRef ===

impl ParamRef {
    pub(super) fn read(of: &Value) -> Option<Self> {
        let text = |name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let selector = of.get("selector").filter(|selector| !selector.is_null());
        (!of.is_null()).then(|| Self {
            name: text("name"),
            namespace: text("namespace"),
            selector: selector.map(|selector| selector_of(selector).unwrap_or_default()),
            is_required: of["parameterNotFoundAction"] == "Deny",
        })
    }

    /// Returns the parameters for a request.
    ///
    /// # Errors
    ///
    /// Returns the reason if the reference does not fit the kind or the request, or if there are no
    /// parameters and they are required.
    pub(super) fn find(
        &self,
        kind: &ParamKind,
        request: &Attributes<'_>,
        world: &dyn World,
    ) -> Result<Vec<Value>, String> {
        let namespace = match world.is_namespaced(kind) {
            Some(false) if !self.namespace.is_empty() => return Err(WITH_NAMESPACE.to_owned()),
            Some(true) if !self.namespace.is_empty() => &self.namespace,
            Some(true) if request.namespace.is_empty() => return Err(IN_CLUSTER.to_owned()),
            Some(true) => request.namespace,
            _ => "",
        };
        let found = match &self.selector {
            None => world.param(kind, namespace, &self.name).into_iter().collect(),
            Some(selector) => world.params(kind, namespace, selector),
        };
        if found.is_empty() && self.is_required { Err(NONE.to_owned()) } else { Ok(found) }
    }
}
