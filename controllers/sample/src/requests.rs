//! [`Requests`]: the writes of the controller. Each may be repeated.

use homeostat::kube_client::api::{Patch, PatchParams, PostParams};
use homeostat::kube_client::{Api, Client, Error};
use homeostat::outcome::{self, Outcome};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

use crate::foo::{Foo, FooStatus};
use crate::plan::Scale;

/// The field manager of every write.
const FIELD_MANAGER: &str = "sample-controller";

/// Sends the controller's writes.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
}

// === impl Requests ===

impl Requests {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates `new`. If an object has its name, or if the outcome of the create is unknown,
    /// returns the Deployment that the server has.
    pub(crate) async fn create(&self, new: &Deployment) -> Result<Deployment, Error> {
        let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), namespace);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), dry_run: false };
        match deployments.create(&params, new).await {
            Err(error) if may_exist(&error) => {
                let name = new.metadata.name.as_deref().unwrap_or_default();
                deployments.get_opt(name).await?.ok_or(error)
            }
            result => result,
        }
    }

    /// Changes the number of replicas, and nothing else. Fails with 409 if the Deployment is not
    /// the one of the plan.
    pub(crate) async fn scale(&self, scale: &Scale) -> Result<Deployment, Error> {
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), &scale.namespace);
        let patch = Patch::Merge(json!({
            "metadata": { "uid": scale.uid, "resourceVersion": scale.resource_version },
            "spec": { "replicas": scale.replicas },
        }));
        deployments.patch(&scale.name, &patch_params(), &patch).await
    }

    /// Writes the status of `foo`, and of no other Foo of its name.
    pub(crate) async fn write_status(&self, foo: &Foo, status: &FooStatus) -> Result<Foo, Error> {
        let namespace = foo.metadata.namespace.as_deref().unwrap_or_default();
        let name = foo.metadata.name.as_deref().unwrap_or_default();
        let foos = Api::<Foo>::namespaced(self.client.clone(), namespace);
        let patch = Patch::Merge(json!({
            "metadata": { "uid": foo.metadata.uid },
            "status": status,
        }));
        foos.patch_status(name, &patch_params(), &patch).await
    }
}

/// Returns true if an object of the name may exist after a create with this error: the server says
/// so, or it has not said what it did.
fn may_exist(error: &Error) -> bool {
    outcome::has_code(error, 409) || outcome::of(error) == Outcome::Unknown
}

fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
