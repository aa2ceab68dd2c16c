//! Admission of pods by service accounts (the plugin `ServiceAccount` of kube-apiserver).

use std::time::Duration;

use crate::admission::meta_text;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Kind, RunAs, Served};
use crate::request::ApiCall;
use crate::status::{Failure, Result};

/// The time in which a controller makes the account `default` of a new namespace. Upstream
/// looks ten times, every 100 to 200 ms.
const PATIENCE: Duration = Duration::from_millis(1350);

/// Waits until the account `default` exists, if the new object runs as it, in a namespace that
/// exists. If the account is not made in time, the create is refused as without this.
pub(super) async fn wait_for_default(core: &Core, call: &ApiCall) {
    let (served, namespace) = (&call.target.served, call.namespace());
    let Some(run_as) = rules(core, served) else { return };
    let exists = || core.find("serviceaccounts", namespace, run_as.default).is_some();
    if exists() || core.find("namespaces", "", namespace).is_none() {
        return;
    }
    // Like the create itself, which reports what is wrong with the object.
    let Ok(options) = call.params.write_options("CreateOptions") else { return };
    let Ok(object) = call.object(&core.kinds(), options.validation) else { return };
    if (run_as.name)(&object).as_deref() == Some(run_as.default) {
        let made = tokio::time::timeout(PATIENCE, core.wait_until(exists));
        made.await.unwrap_or_default();
    }
}

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
