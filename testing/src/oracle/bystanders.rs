//! [`Bystanders`]: the objects that a controller must not touch.

use kube_client::api::ApiResource;

use super::versions::{Versions, difference, versions};
use crate::Simulation;

/// Objects that a controller must not touch, and their versions; made by [`bystanders`].
#[derive(Debug, Clone)]
pub struct Bystanders {
    kinds: Vec<ApiResource>,
    versions: Versions,
}

/// Remembers the present objects of some kinds: those that a controller must not touch.
///
/// # Errors
///
/// Fails if a list fails.
///
/// # Examples
///
/// ```
/// use homeostat_testing::{Simulation, in_virtual_time, oracle};
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube_client::api::ApiResource;
///
/// in_virtual_time(async {
///     let simulation = Simulation::start(7);
///     let namespaces = [ApiResource::erase::<Namespace>(&())];
///     let others = oracle::bystanders(&simulation, &namespaces).await?;
///     // … run the controller …
///     oracle::are_untouched(&simulation, &others).await.unwrap();
///     Ok::<_, kube_client::Error>(())
/// })?;
/// # Ok::<_, kube_client::Error>(())
/// ```
pub async fn bystanders(
    simulation: &Simulation,
    kinds: &[ApiResource],
) -> Result<Bystanders, kube_client::Error> {
    let versions = versions(simulation, kinds).await?;
    Ok(Bystanders { kinds: kinds.to_vec(), versions })
}

/// Checks that no bystander was changed, deleted or replaced. Objects that are new do not count.
///
/// # Errors
///
/// Returns a message that names the objects, or the failure of a list. Bystanders that do not exist
/// are an error, too: such a check would find nothing.
pub async fn are_untouched(simulation: &Simulation, bystanders: &Bystanders) -> Result<(), String> {
    if bystanders.versions.is_empty() {
        return Err("there are no bystanders, so nothing was checked".to_owned());
    }
    let now = versions(simulation, &bystanders.kinds).await.map_err(|error| error.to_string())?;
    let before = &bystanders.versions;
    let now = now.into_iter().filter(|(name, _)| before.contains_key(name)).collect();
    match difference(before, &now) {
        changed if changed.is_empty() => Ok(()),
        changed => Err(format!("objects of others were touched: {changed}")),
    }
}
