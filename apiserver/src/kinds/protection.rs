//! Finalizers that protect a new object until a controller finds that nothing uses it.

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::plugin::{Addition, AdmissionPlugin, At};

/// Returns the admission of a new object that gets a finalizer.
pub(super) const fn of_new(apply: fn(&mut Fields, Option<&Fields>)) -> Addition {
    Addition { plugin: AdmissionPlugin::StorageObjectInUseProtection, at: At::Create, apply }
}

/// Adds a finalizer, which a controller removes when the object is in use no more.
pub(super) fn protect(object: &mut Fields, finalizer: &str) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&json!(finalizer))) {
        list.push(json!(finalizer));
    }
}
