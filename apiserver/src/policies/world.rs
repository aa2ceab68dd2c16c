//! The other objects that policies read.

use homeostat_core::LabelSelector;
use homeostat_schema::Authorizer;
use serde_json::Value;

use super::attributes::{Attributes, Matched};
use super::param_kind::ParamKind;

/// The other objects that policies read.
pub(crate) trait World {
    /// Returns a namespace; `None` if it does not exist.
    fn namespace(&self, name: &str) -> Option<Value>;

    /// Returns the other versions of the resource of a request, with the types of their objects.
    fn equivalents(&self, request: &Attributes<'_>) -> Vec<Matched>;

    /// Returns an object of the request in another version.
    ///
    /// # Errors
    ///
    /// Returns the reason why the webhook of a definition does not convert it.
    fn converted(&self, object: &Value, to: &Matched) -> Result<Value, String>;

    /// Returns true if objects of a kind are in a namespace; `None` if the kind is unknown.
    fn is_namespaced(&self, kind: &ParamKind) -> Option<bool>;

    /// Returns an object of a kind; `None` if it does not exist.
    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value>;

    /// Returns the objects of a kind that a selector matches, in the order of their names.
    fn params(&self, kind: &ParamKind, namespace: &str, selector: &LabelSelector) -> Vec<Value>;

    /// Returns the permissions of the user.
    fn authorizer(&self) -> &dyn Authorizer;
}
