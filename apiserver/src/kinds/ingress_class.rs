//! The default ingress class.

use super::annotations::INGRESS_CLASS;
use super::columns::AdmitError;
use super::storage_class::{find_marked, name_default};
use crate::fields::Fields;

/// The annotation that marks a default class.
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Gives an ingress that names no class the default one (the plugin `DefaultIngressClass`).
#[expect(clippy::unnecessary_wraps, reason = "the type of an admission")]
pub(super) fn set_default(
    ingress: &mut Fields,
    _: &dyn Fn(&str) -> Option<Fields>,
    all: &dyn Fn() -> Vec<Fields>,
) -> Result<(), AdmitError> {
    let find = |classes: &[Fields]| find_marked(classes, &[IS_DEFAULT]);
    name_default(ingress, ("ingressClassName", INGRESS_CLASS), all, find);
    Ok(())
}
