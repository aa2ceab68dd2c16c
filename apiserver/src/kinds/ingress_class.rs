//! The default ingress class.

use serde_json::Value;

use super::storage_class::find_marked;
use crate::fields::{Fields, read_path};

/// The annotation that marks a default class.
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
/// The annotation that names the class of an ingress, from before there was a field.
const CLASS: &str = "kubernetes.io/ingress.class";

/// Gives an ingress that names no class the default one (the plugin `DefaultIngressClass`).
#[expect(clippy::unnecessary_wraps, reason = "the type of an admission")]
pub(super) fn set_default(
    ingress: &mut Fields,
    _: &dyn Fn(&str) -> Option<Fields>,
    all: &dyn Fn() -> Vec<Fields>,
) -> Result<(), String> {
    let is_named = read_path(ingress, "spec.ingressClassName").is_some_and(|name| !name.is_null());
    let annotations = read_path(ingress, "metadata.annotations");
    if is_named || annotations.is_some_and(|all| all.get(CLASS).is_some()) {
        return Ok(());
    }
    let classes = all();
    let Some(at) = find_marked(&classes, &[IS_DEFAULT]) else { return Ok(()) };
    let name = read_path(&classes[at], "metadata.name").cloned();
    if let (Some(Value::Object(spec)), Some(name)) = (ingress.get_mut("spec"), name) {
        spec.insert("ingressClassName".to_owned(), name);
    }
    Ok(())
}
