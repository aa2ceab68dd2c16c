//! Admission of pods by service accounts (the plugin `ServiceAccount` of kube-apiserver).

use crate::admission::meta_text;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Kind, RunAs, Served};
use crate::status::{Failure, Result};

/// Adds its service account to a new object that runs as one, and checks one that does not.
pub(super) fn complete(
    core: &Core,
    served: &Served,
    namespace: &str,
    object: &mut Fields,
) -> Result<()> {
    let Some(run_as) = rules(core, served) else { return Ok(()) };
    let Some(name) = (run_as.name)(object) else {
        let checked = (run_as.check_without)(object);
        return checked.map_err(|detail| Failure::forbidden(&served.kind, given(object), &detail));
    };
    let account = find(core, &served.kind, (namespace, &name), object)?;
    (run_as.complete)(object, &account, &core.chance.name_suffix());
    Ok(())
}

/// Checks that a new object may use the secrets that it names.
pub(super) fn check(core: &Core, served: &Served, new: &Fields) -> Result<()> {
    let Some(run_as) = rules(core, served) else { return Ok(()) };
    let Some(name) = (run_as.name)(new) else { return Ok(()) };
    let account = find(core, &served.kind, (meta_text(new, "namespace"), &name), new)?;
    let checked = (run_as.check)(new, &account);
    checked.map_err(|detail| Failure::forbidden(&served.kind, meta_text(new, "name"), &detail))
}

fn rules(core: &Core, served: &Served) -> Option<RunAs> {
    served.home.run_as.filter(|_| core.admits_service_accounts())
}

fn find(
    core: &Core,
    kind: &Kind,
    (namespace, name): (&str, &str),
    object: &Fields,
) -> Result<Fields> {
    if let Some(stored) = core.find("serviceaccounts", namespace, name) {
        return Ok(stored.fields());
    }
    let detail = format!(
        "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
    );
    Err(Failure::forbidden(kind, given(object), &detail))
}

/// Returns the name that the client has given to a new object, or the start of it.
fn given(object: &Fields) -> &str {
    let given = ["name", "generateName"].map(|member| meta_text(object, member));
    given.into_iter().find(|given| !given.is_empty()).unwrap_or("Unknown")
}
