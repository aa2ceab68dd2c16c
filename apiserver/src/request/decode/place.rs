//! The place of an object: its namespace and name must be those of the request.

use http::Method;
use serde_json::{Value, json};

use crate::admission::metadata_mut;
use crate::fields::Fields;
use crate::kinds::Kind;
use crate::request::ApiCall;
use crate::status::{Failure, Result};

// === impl ApiCall ===

impl ApiCall {
    /// Checks the name and namespace of an object against the path, and completes its namespace.
    pub(super) fn check_place(&self, kind: &Kind, object: &mut Fields) -> Result<()> {
        let (namespace, name) = (self.namespace(), self.target.info.name.as_deref());
        let metadata = metadata_mut(object);
        let text = |metadata: &Fields, key: &str| {
            metadata.get(key).and_then(Value::as_str).unwrap_or("").to_owned()
        };
        if kind.namespaced {
            let own = text(metadata, "namespace");
            check_same_namespace(&own, namespace)?;
            metadata.insert("namespace".to_owned(), json!(namespace));
        } else {
            metadata.remove("namespace");
        }
        // A create ignores the name in the path: only that of a custom resource can have one.
        let Some(name) = name.filter(|_| self.method != Method::POST) else { return Ok(()) };
        match text(metadata, "name").as_str() {
            own if own == name => Ok(()),
            "" => {
                let message = format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be \
                     provided"
                );
                Err(Failure::bad_request(message))
            }
            own => {
                let message = format!(
                    "the name of the object ({own}) does not match the name on the URL ({name})"
                );
                Err(Failure::bad_request(message))
            }
        }
    }
}

/// Fails if the client sent another namespace than that of the request or of the object.
pub(crate) fn check_same_namespace(namespace: &str, expected: &str) -> Result<()> {
    // A cluster-scoped object has none, and loses the one that the client sent.
    if !namespace.is_empty() && !expected.is_empty() && namespace != expected {
        let message =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    Ok(())
}
