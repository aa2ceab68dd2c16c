//! The group `apiextensions.k8s.io`.

use super::{KEEPS_SPEC, OF_SPEC, named};
use crate::kinds::{Dependents, Kind, crd};

pub(super) fn rows() -> Vec<Kind> {
    vec![definition()]
}

fn definition() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        status: KEEPS_SPEC,
        generation: OF_SPEC,
        unconditional_update: false,
        dependents: Dependents::CollectedLater,
        derive: crd::derive,
        validate: crd::validate,
        on_mark: crd::mark,
        warn: crd::warnings,
        prepare: crd::record_storage,
        inherits: crd::record_new_storage,
        ..named("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions")
    }
}
