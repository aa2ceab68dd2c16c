//! [`status_update`]: the request that writes the status of a quota.

use homeostat::ObjectMeta;
use homeostat::kube_client::Error;
use homeostat::kube_client::api::PostParams;
use homeostat::kube_client::core::Request;
use homeostat_quantity::ResourceList;
use serde::Serialize;

use crate::plan::NewStatus;
use crate::quota::CachedQuota;

/// The body of a status update.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdate<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: &'a ObjectMeta,
    spec: SpecOfUpdate<'a>,
    status: StatusOfUpdate<'a>,
}

/// The spec, which the server does not change.
#[derive(Serialize)]
struct SpecOfUpdate<'a> {
    hard: &'a ResourceList,
}

#[derive(Serialize)]
struct StatusOfUpdate<'a> {
    hard: &'a ResourceList,
    used: &'a ResourceList,
}

/// Returns the request. The server refuses it if the quota has changed since.
///
/// # Errors
///
/// Fails if the quota's name or namespace fits no path.
pub(crate) fn status_update(
    quota: &CachedQuota,
    new: &NewStatus,
) -> Result<http::Request<Vec<u8>>, Error> {
    let update = StatusUpdate {
        api_version: "v1",
        kind: "ResourceQuota",
        metadata: &quota.metadata,
        spec: SpecOfUpdate { hard: &quota.spec.hard },
        status: StatusOfUpdate { hard: &new.hard, used: &new.used },
    };
    let body = serde_json::to_vec(&update).map_err(Error::SerdeError)?;
    let name = quota.metadata.name.as_deref().unwrap_or_default();
    Request::new(format!("/api/v1/namespaces/{}/resourcequotas", quota.namespace()))
        .replace_subresource("status", name, &PostParams::default(), body)
        .map_err(Error::BuildRequest)
}
