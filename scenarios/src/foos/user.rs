//! Operations of a user on Foos and their Deployments, with waits for their results.

use std::time::Duration;

use anyhow::Context as _;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use homeostat_sample::{Foo, FooSpec};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use crate::replica_sets::poll_until;

/// The Foos, Deployments and events of the namespace `default`.
#[derive(Clone, Debug)]
pub struct Foos {
    api: Api<Foo>,
    untyped: Api<DynamicObject>,
    pub(crate) deployments: Api<Deployment>,
    events: Api<Event>,
    definitions: Api<CustomResourceDefinition>,
}

/// The state of one Foo and of the Deployment that it names.
#[derive(Debug)]
struct State {
    is_owned: bool,
    desired: Option<i32>,
    available: Option<i32>,
}

// === impl Foos ===

impl Foos {
    /// Returns the operations of the user of `client`.
    pub fn new(client: &Client) -> Self {
        Self {
            api: Api::namespaced(client.clone(), "default"),
            untyped: Api::namespaced_with(
                client.clone(),
                "default",
                &ApiResource::erase::<Foo>(&()),
            ),
            deployments: Api::namespaced(client.clone(), "default"),
            events: Api::namespaced(client.clone(), "default"),
            definitions: Api::all(client.clone()),
        }
    }

    /// Creates the Foo `name` with the Deployment `deployment`.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create(&self, name: &str, deployment: &str, replicas: i32) -> anyhow::Result<()> {
        let spec = FooSpec { deployment_name: deployment.to_owned(), replicas: Some(replicas) };
        self.api.create(&PostParams::default(), &Foo::new(name, spec)).await?;
        Ok(())
    }

    /// Creates a Foo with any `spec`, also with one that does not decode.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create_untyped(&self, name: &str, spec: &serde_json::Value) -> anyhow::Result<()> {
        let kind = ApiResource::erase::<Foo>(&());
        let object = DynamicObject::new(name, &kind).data(json!({ "spec": spec }));
        self.untyped.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Changes the number of replicas of a Foo.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn scale(&self, name: &str, replicas: i32) -> anyhow::Result<()> {
        self.patch(name, json!({ "spec": { "replicas": replicas } })).await
    }

    /// Gives a Foo another Deployment.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn rename(&self, name: &str, deployment: &str) -> anyhow::Result<()> {
        self.patch(name, json!({ "spec": { "deploymentName": deployment } })).await
    }

    /// Merges a patch into a Foo. It may not decode any more.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn patch(&self, name: &str, patch: serde_json::Value) -> anyhow::Result<()> {
        self.untyped.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Deletes a Foo. Its Deployment is left to the garbage collector.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn delete(&self, name: &str) -> anyhow::Result<()> {
        self.api.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Deletes a Foo in the foreground: it goes after everything below it.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn delete_in_foreground(&self, name: &str) -> anyhow::Result<()> {
        self.api.delete(name, &DeleteParams::foreground()).await?;
        Ok(())
    }

    /// Creates a Deployment without an owner.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn create_deployment(&self, name: &str) -> anyhow::Result<()> {
        let labels = json!({ "app": name });
        let deployment = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
                },
            },
        }))?;
        self.deployments.create(&PostParams::default(), &deployment).await?;
        Ok(())
    }

    /// Deletes a Deployment.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn delete_deployment(&self, name: &str) -> anyhow::Result<()> {
        self.deployments.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Deletes the definition of Foo and with it every Foo, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server, or an error after `timeout`.
    pub async fn delete_definition(&self, timeout: Duration) -> anyhow::Result<()> {
        let name = "foos.samplecontroller.k8s.io";
        self.definitions.delete(name, &DeleteParams::default()).await?;
        let read = async || Ok(self.definitions.get_opt(name).await?.is_some());
        poll_until(timeout, read, |is_there| !is_there, |_| "the definition is left".to_owned())
            .await
    }

    /// Waits until the Deployment of a Foo is its own and has `replicas`, and its status shows that
    /// all of them are available.
    ///
    /// # Errors
    ///
    /// Returns an error with the actual state if that is not so after `timeout`.
    pub async fn wait_for(
        &self,
        name: &str,
        replicas: i32,
        timeout: Duration,
    ) -> anyhow::Result<()> {
        let is = |state: &State| {
            state.is_owned && state.desired == Some(replicas) && state.available == Some(replicas)
        };
        let late = |state: &State| format!("Foo {name} does not have {replicas}: {state:?}");
        poll_until(timeout, async || self.state(name).await, is, late).await
    }

    /// Waits until there is no Foo of this name and no Deployment of that one.
    ///
    /// # Errors
    ///
    /// Returns an error if one is left after `timeout`.
    pub async fn wait_for_deletion(
        &self,
        name: &str,
        deployment: &str,
        timeout: Duration,
    ) -> anyhow::Result<()> {
        let read = async || {
            let is_foo_left = self.api.get_opt(name).await?.is_some();
            Ok((is_foo_left, self.deployments.get_opt(deployment).await?.is_some()))
        };
        let late = |left: &_| format!("(Foo, Deployment) are left: {left:?}");
        poll_until(timeout, read, |left| *left == (false, false), late).await
    }

    /// Waits until a Foo has an event with this reason. Returns its message.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none after `timeout`.
    pub async fn wait_for_event(
        &self,
        name: &str,
        reason: &str,
        timeout: Duration,
    ) -> anyhow::Result<String> {
        let is_there = |found: &Option<String>| found.is_some();
        let late = |_: &_| format!("Foo {name} has no event {reason}");
        poll_until(timeout, async || self.event(name, reason).await, is_there, late).await?;
        self.event(name, reason).await?.context("the event is gone again")
    }

    /// Returns the UID of a Deployment.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn deployment_uid(&self, name: &str) -> anyhow::Result<String> {
        let deployment = self.deployments.get(name).await?;
        deployment.metadata.uid.context("the server gives each object a UID")
    }

    /// Returns the number of Deployments that a Foo controls.
    ///
    /// # Errors
    ///
    /// Returns the error of the API server.
    pub async fn owned_deployments(&self) -> anyhow::Result<usize> {
        let deployments = self.deployments.list(&ListParams::default()).await?.items;
        let owners = |it: &Deployment| it.metadata.owner_references.clone().unwrap_or_default();
        let is_owned = |it: &&Deployment| owners(it).iter().any(|owner| owner.kind == "Foo");
        Ok(deployments.iter().filter(is_owned).count())
    }

    async fn event(&self, name: &str, reason: &str) -> anyhow::Result<Option<String>> {
        let events = self.events.list(&ListParams::default()).await?.items;
        let event = events.into_iter().find(|event| {
            event.involved_object.name.as_deref() == Some(name)
                && event.reason.as_deref() == Some(reason)
        });
        Ok(event.map(|event| event.message.unwrap_or_default()))
    }

    async fn state(&self, name: &str) -> anyhow::Result<State> {
        let found = self.api.get(name).await.context("cannot get the Foo")?;
        let deployment = self.deployments.get_opt(&found.spec.deployment_name).await?;
        let owners = |it: &Deployment| it.metadata.owner_references.clone().unwrap_or_default();
        let is_owned = deployment.as_ref().is_some_and(|deployment| {
            owners(deployment).iter().any(|owner| Some(&owner.uid) == found.metadata.uid.as_ref())
        });
        Ok(State {
            is_owned,
            desired: deployment.and_then(|deployment| deployment.spec.replicas),
            available: found.status.map(|status| status.available_replicas),
        })
    }
}
