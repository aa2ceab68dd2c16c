//! The requests that the controller sends.

use std::collections::BTreeMap;

use homeostat::apply::Apply;
use homeostat::kube_client::api::{Api, Patch, PatchParams};
use homeostat::kube_client::core::Request;
use homeostat::kube_client::core::params::{DeleteParams, GetParams, PostParams, Preconditions};
use homeostat::kube_client::{Client, Error};
use homeostat::outcome::{is_not_found, is_uid_conflict};
use homeostat::{ObjectMeta, Uid};
use k8s_openapi::api::core::v1 as core;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::claim::{Claim, FINALIZER};
use crate::pod::{Pod, is_terminal};

/// The field manager of the pods' statuses: upstream's name, so that each of the two controllers
/// takes over the fields of the other.
const FIELD_MANAGER: &str = "ResourceClaimController";

/// Sends the controller's requests.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

/// The part of a pod that is read from the server.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct LivePod {
    metadata: ObjectMeta,
    spec: LiveSpec,
    status: LiveStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LiveSpec {
    node_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LiveStatus {
    phase: Option<String>,
}

// === impl Requests ===

impl Requests {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates a claim. Returns `None` if the server has created it and its answer does not decode.
    pub(crate) async fn create_claim(
        &self,
        namespace: &str,
        body: Vec<u8>,
    ) -> Result<Option<Claim>, Error> {
        let answer = self.send(claims(namespace).create(&PostParams::default(), body)).await?;
        Ok(serde_json::from_str(&answer).ok())
    }

    /// Reads a claim from the server; `None` if there is none.
    pub(crate) async fn live_claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Claim>, Error> {
        self.live(claims(namespace).get(name, &GetParams::default())).await
    }

    /// Reads a pod from the server; `None` if there is none.
    pub(crate) async fn live_pod(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<LivePod>, Error> {
        let request = Request::new(format!("/api/v1/namespaces/{namespace}/pods"));
        self.live(request.get(name, &GetParams::default())).await
    }

    /// Patches the status of a claim. The server refuses it (409) if its object has another
    /// resourceVersion than the patch.
    pub(crate) async fn patch_claim_status(
        &self,
        claim: &Claim,
        patch: Value,
    ) -> Result<Claim, Error> {
        let patch = Patch::Strategic(patch);
        let request = claims(claim.namespace());
        let params = PatchParams::default();
        decode(
            &self.send(request.patch_subresource("status", claim.name(), &params, &patch)).await?,
        )
    }

    /// Removes the scheduler's finalizer. The server refuses it (409) if its object has another
    /// resourceVersion than `claim`.
    pub(crate) async fn remove_finalizer(&self, claim: &Claim) -> Result<Claim, Error> {
        let version = &claim.metadata.resource_version;
        let patch = Patch::Strategic(json!({"metadata": {
            "resourceVersion": version,
            "$deleteFromPrimitiveList/finalizers": [FINALIZER],
        }}));
        let request = claims(claim.namespace());
        decode(&self.send(request.patch(claim.name(), &PatchParams::default(), &patch)).await?)
    }

    /// Deletes the claim with this UID, and no other claim of its name. A claim that is gone is no
    /// error.
    pub(crate) async fn delete_claim(&self, claim: &Claim) -> Result<(), Error> {
        let uid = claim.metadata.uid.clone();
        let preconditions = Preconditions { resource_version: None, uid };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.send(claims(claim.namespace()).delete(claim.name(), &params)).await {
            Err(error) if is_not_found(&error) || is_uid_conflict(&error) => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Applies the names of all generated claims to the status of this pod, and to no other pod of
    /// its name. Returns false if the pod is gone.
    pub(crate) async fn record(
        &self,
        pod: &Pod,
        statuses: BTreeMap<String, String>,
    ) -> Result<bool, Error> {
        let statuses = statuses.into_iter().map(|(name, claim)| core::PodResourceClaimStatus {
            name,
            resource_claim_name: Some(claim),
        });
        let applied = core::Pod {
            metadata: ObjectMeta {
                namespace: pod.metadata.namespace.clone(),
                name: pod.metadata.name.clone(),
                ..ObjectMeta::default()
            },
            spec: None,
            status: Some(core::PodStatus {
                resource_claim_statuses: Some(statuses.collect()),
                ..core::PodStatus::default()
            }),
        };
        let api = Api::<core::Pod>::namespaced(self.client.clone(), pod.namespace());
        let apply = Apply::by(FIELD_MANAGER).force().if_uid(&Uid::from(pod.uid()));
        match apply.subresource(&api, "status", &applied).await {
            Ok(_) => Ok(true),
            Err(error) if is_not_found(&error) || is_other_uid(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn live<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, homeostat::kube_client::core::request::Error>,
    ) -> Result<Option<T>, Error> {
        match self.send(request).await {
            Ok(answer) => decode(&answer).map(Some),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, homeostat::kube_client::core::request::Error>,
    ) -> Result<String, Error> {
        self.client.request_text(request.map_err(Error::BuildRequest)?).await
    }
}

// === impl LivePod ===

impl LivePod {
    /// Returns true if the pod has this UID and needs its claims ([`Pod::is_done`]).
    pub(crate) fn may_use_claims(&self, uid: &str) -> bool {
        let is_terminal = self.status.phase.as_deref().is_some_and(is_terminal);
        let is_unscheduled = self.spec.node_name.as_deref().unwrap_or_default().is_empty();
        let is_being_deleted = self.metadata.deletion_timestamp.is_some();
        let is_done = is_terminal || is_being_deleted && is_unscheduled;
        self.metadata.uid.as_deref() == Some(uid) && !is_done
    }
}

/// Returns true if another object has the name of the one that a patch names by its UID: a patch
/// cannot change the UID.
fn is_other_uid(error: &Error) -> bool {
    let Error::Api(status) = error else { return false };
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    match status.code {
        409 => status.message.contains("uid mismatch") || is_uid_conflict(error),
        422 => causes.iter().any(|cause| cause.field == "metadata.uid"),
        _ => false,
    }
}

fn decode<T: DeserializeOwned>(answer: &str) -> Result<T, Error> {
    serde_json::from_str(answer).map_err(Error::SerdeError)
}

fn claims(namespace: &str) -> Request {
    Request::new(format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"))
}
