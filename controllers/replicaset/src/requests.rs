//! The requests that the controller sends, with the parts of the answers that it reads.

use std::borrow::Cow;
use std::fmt;

use homeostat::client::metadata_only;
use homeostat::kube_client::core::Request;
use homeostat::kube_client::core::params::{
    DeleteParams, GetParams, ListParams, PostParams, Preconditions,
};
use homeostat::kube_client::{self, Client, Error, Resource};
use homeostat_json::Reader;
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use k8s_openapi::api::core::v1::Pod as PodKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::kind::WorkloadKind;
use crate::pod::Pod;
use crate::workload::Workload;

/// The number of pods in one page of a list: client-go's.
const PAGE: u32 = 500;

/// The space for metadata and status in the body of an update, in bytes. Longer ones make the body
/// grow.
const BESIDE_SPEC: usize = 1 << 10;

/// Sends the controller's requests.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

/// The part of a written object that is read.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) resource_version: String,
}

/// A request, or the error of its construction.
type Built = Result<http::Request<Vec<u8>>, kube_client::core::request::Error>;

/// A pod of a list: its metadata alone if the rest does not decode.
pub(crate) type Listed = Result<Pod, ObjectMeta>;

#[derive(Deserialize)]
struct PodList<'a> {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Outline {
    metadata: ObjectMeta,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    token: Option<String>,
}

/// The complete object: the server takes labels and annotations from a status update.
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

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn create_pod(&self, ns: &str, body: Vec<u8>) -> Result<Stored, Error> {
        let request = pods(ns).create(&PostParams::default(), body);
        let answer = self.write(request).await?;
        // The server has created the pod, even if the answer does not decode.
        Ok(Stored::read(&answer))
    }

    /// Deletes the pod with this UID, and no other pod of its name.
    pub(crate) async fn delete_pod(&self, ns: &str, name: &str, uid: &str) -> Result<(), Error> {
        let preconditions = Preconditions { resource_version: None, uid: Some(uid.to_owned()) };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        self.write(pods(ns).delete(name, &params)).await.map(drop)
    }

    /// Lists the server's current pods that match `selector`, page by page.
    pub(crate) async fn list_pods(&self, ns: &str, selector: &str) -> Result<Vec<Listed>, Error> {
        let mut params = ListParams::default().labels(selector).limit(PAGE);
        let mut found = Vec::new();
        loop {
            let answer = self.send(pods(ns).list(&params)).await?;
            let page: PodList<'_> = serde_json::from_str(&answer).map_err(Error::SerdeError)?;
            for pod in page.items.unwrap_or_default() {
                found.push(listed(pod.get()).map_err(Error::SerdeError)?);
            }
            match page.metadata.token.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    pub(crate) async fn workload<K: WorkloadKind>(
        &self,
        ns: &str,
        name: &str,
    ) -> Result<Workload<K>, Error> {
        let answer = self.send(collection::<K>(ns).get(name, &GetParams::default())).await?;
        serde_json::from_str(&answer).map_err(Error::SerdeError)
    }

    /// Writes `status`. The server refuses it (409) if its object has another resourceVersion than
    /// `set`.
    pub(crate) async fn put_status<K: WorkloadKind>(
        &self,
        set: &Workload<K>,
        status: &ReplicaSetStatus,
    ) -> Result<Stored, Error> {
        let object = WithStatus {
            api_version: K::API_VERSION,
            kind: K::KIND,
            metadata: &set.metadata,
            spec: &set.spec.json,
            status,
        };
        let mut body = Vec::with_capacity(set.spec.json.get().len() + BESIDE_SPEC);
        serde_json::to_writer(&mut body, &object).map_err(Error::SerdeError)?;
        let request = collection::<K>(set.namespace());
        let request =
            request.replace_subresource("status", set.name(), &PostParams::default(), body);
        let answer = self.write(request).await?;
        Ok(Stored::read(&answer))
    }

    /// Sends a write. Its answer has the metadata of the object alone.
    async fn write(&self, request: Built) -> Result<String, Error> {
        self.send(request.map(metadata_only)).await
    }

    async fn send(&self, request: Built) -> Result<String, Error> {
        self.client.request_text(request.map_err(Error::BuildRequest)?).await
    }
}

// === impl Stored ===

impl Stored {
    /// Reads an answer up to the second of the two fields. What follows them, such as the owners of
    /// fields, is longer than what precedes them.
    ///
    /// A field that the answer does not have is empty.
    fn read(answer: &str) -> Self {
        let mut stored = Self::default();
        // It ends with an error where the rest is not read.
        drop(stored.deserialize(&mut Reader::new(answer)));
        stored
    }

    fn is_complete(&self) -> bool {
        !self.name.is_empty() && !self.resource_version.is_empty()
    }
}

impl<'de> DeserializeSeed<'de> for &mut Stored {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// Visits the object, and its metadata.
impl<'de> Visitor<'de> for &mut Stored {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with metadata")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            match &*name {
                "metadata" => members.next_value_seed(&mut *self)?,
                "name" => self.name = members.next_value()?,
                "resourceVersion" => self.resource_version = members.next_value()?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
            if self.is_complete() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn listed(pod: &str) -> serde_json::Result<Listed> {
    serde_json::from_str(pod).map(Ok).or_else(|_| {
        let Outline { metadata } = serde_json::from_str(pod)?;
        Ok(Err(metadata))
    })
}

fn pods(namespace: &str) -> Request {
    collection::<PodKind>(namespace)
}

/// Returns the requests for objects of `K` in a namespace.
fn collection<K: Resource<DynamicType = ()>>(namespace: &str) -> Request {
    Request::new(K::url_path(&(), Some(namespace)))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use serde_json::json;

    use super::*;
    use crate::scripted_server::{Answer, server, web};

    #[test]
    fn answer_is_read_up_to_the_fields_that_are_used() {
        let read = |answer: &str| {
            let Stored { name, resource_version } = Stored::read(answer);
            (name, resource_version)
        };
        let both = ("web-a".to_owned(), "7".to_owned());
        let start = r#"{"kind":"Pod","metadata":{"labels":{"name":"db"},"name":"web-a","#;
        assert_eq!(read(&format!(r#"{start}"resourceVersion":"7","uid":"u"}}}}"#)), both);
        assert_eq!(read(&format!(r#"{start}"resourceVersion":"7",cut"#)), both);
        assert_eq!(read(&format!(r#"{start}"uid":"u"}}}}"#)), (both.0, String::new()));
        assert_eq!(read("[]"), Default::default());
    }

    #[tokio::test]
    async fn writes_are_answered_with_metadata_and_reads_with_the_object() {
        let stored = json!({"metadata": {"name": "web-a", "resourceVersion": "7"}});
        let (client, log) = server(move |_, _| Answer::Said(200, stored.clone()));
        let requests = Requests::new(client);
        let created = requests.create_pod("shop", b"{}".to_vec()).await.unwrap();
        assert_eq!((created.name.as_str(), created.resource_version.as_str()), ("web-a", "7"));
        requests.put_status(&web(1), &ReplicaSetStatus::default()).await.unwrap();
        requests.delete_pod("shop", "web-a", "u").await.unwrap();
        requests.workload::<ReplicaSet>("shop", "web").await.unwrap();
        let forms: Vec<_> = log.all().into_iter().map(|asked| asked.accept).collect();
        let metadata =
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(forms, [metadata, metadata, metadata, ""]);
    }
}
