//! Every request that this controller sends, and no more of each answer than it reads.

use homeostat::kube_client::core::Request;
use homeostat::kube_client::core::params::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use homeostat::kube_client::{self, Client, Error};
use homeostat::owner::OwnerPatch;
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::pod::Pod;
use crate::replica_set::ReplicaSet;

/// How many pods one page of a list holds: client-go's number.
const PAGE: u32 = 500;

/// The API server, as this controller uses it.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

/// What is read of a live `ReplicaSet` before it adopts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Liveness {
    #[serde(default)]
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) deletion_timestamp: Option<Time>,
}

/// What is read of an object that was just written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) resource_version: String,
}

#[derive(Deserialize)]
struct WithMetadata<M> {
    metadata: M,
}

#[derive(Deserialize)]
struct PodList {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default)]
    items: Option<Vec<Pod>>,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    token: Option<String>,
}

/// The whole object: the server takes labels and annotations over from what is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WithStatus<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: &'a ObjectMeta,
    spec: &'a RawValue,
    status: &'a ReplicaSetStatus,
}

// === impl Requests ===

impl Requests {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) async fn create_pod(&self, ns: &str, body: Vec<u8>) -> Result<Stored, Error> {
        let request = pods(ns).create(&PostParams::default(), body);
        let answer = self.send(request).await?;
        // The server has made the pod, whatever it says about it.
        Ok(metadata(&answer).unwrap_or_default())
    }

    /// Deletes this very pod: not another one that has come to bear its name.
    pub(crate) async fn delete_pod(&self, ns: &str, name: &str, uid: &str) -> Result<(), Error> {
        let preconditions = Preconditions { resource_version: None, uid: Some(uid.to_owned()) };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        self.send(pods(ns).delete(name, &params)).await.map(drop)
    }

    pub(crate) async fn patch_pod(
        &self,
        ns: &str,
        name: &str,
        patch: &OwnerPatch,
    ) -> Result<Stored, Error> {
        let request = pods(ns).patch(name, &PatchParams::default(), &Patch::Strategic(patch));
        let answer = self.send(request).await?;
        Ok(metadata(&answer).unwrap_or_default())
    }

    /// The pods that the server has now, not as some cache remembers them. `selector` narrows what is sent.
    pub(crate) async fn list_pods(&self, ns: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        let mut params = ListParams::default().labels(selector).limit(PAGE);
        let mut found = Vec::new();
        loop {
            let answer = self.send(pods(ns).list(&params)).await?;
            let page: PodList = serde_json::from_str(&answer).map_err(Error::SerdeError)?;
            found.extend(page.items.unwrap_or_default());
            match page.metadata.token.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    pub(crate) async fn liveness(&self, ns: &str, name: &str) -> Result<Liveness, Error> {
        let answer = self.send(sets(ns).get(name, &GetParams::default())).await?;
        metadata(&answer)
    }

    pub(crate) async fn replica_set(&self, ns: &str, name: &str) -> Result<ReplicaSet, Error> {
        let answer = self.send(sets(ns).get(name, &GetParams::default())).await?;
        serde_json::from_str(&answer).map_err(Error::SerdeError)
    }

    /// Puts `status` on `set`, if it is still at the resource version that `set` has.
    pub(crate) async fn put_status(
        &self,
        set: &ReplicaSet,
        status: &ReplicaSetStatus,
    ) -> Result<Stored, Error> {
        let body = WithStatus {
            api_version: "apps/v1",
            kind: "ReplicaSet",
            metadata: &set.metadata,
            spec: serde_json::from_str(&set.spec.json).map_err(Error::SerdeError)?,
            status,
        };
        let body = serde_json::to_vec(&body).map_err(Error::SerdeError)?;
        let request = sets(set.namespace());
        let request =
            request.replace_subresource("status", set.name(), &PostParams::default(), body);
        let answer = self.send(request).await?;
        Ok(metadata(&answer).unwrap_or_default())
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube_client::core::request::Error>,
    ) -> Result<String, Error> {
        self.client.request_text(request.map_err(Error::BuildRequest)?).await
    }
}

fn metadata<'a, M: Deserialize<'a>>(answer: &'a str) -> Result<M, Error> {
    let object: WithMetadata<M> = serde_json::from_str(answer).map_err(Error::SerdeError)?;
    Ok(object.metadata)
}

fn pods(namespace: &str) -> Request {
    Request::new(format!("/api/v1/namespaces/{namespace}/pods"))
}

fn sets(namespace: &str) -> Request {
    Request::new(format!("/apis/apps/v1/namespaces/{namespace}/replicasets"))
}
