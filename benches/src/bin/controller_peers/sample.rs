//! Foos created, and all of them scaled.

use std::collections::BTreeSet;
use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat::kube_client::api::{
    Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams, WatchEvent,
};
use homeostat::kube_client::core::GroupVersionKind;
use homeostat_benches::controllers::{Bench, Leg, Peer, all, watch_until};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use tokio::time::sleep;

/// Measures `count` Foos.
pub(crate) async fn measure(peer: &Peer, count: usize) -> anyhow::Result<Vec<(&'static str, Leg)>> {
    let mut bench = Bench::start(peer, async |client| define(client).await).await?;
    // The first Foo warms the program up: after it, lists, watches and connections exist.
    let client = bench.client.clone();
    tokio::try_join!(wait_for_deployments(&client, 1, 1), create(&client, "warm"))?;
    sleep(Duration::from_secs(2)).await;

    let work = async |client: &Client| {
        let created = all((0..count).map(|at| {
            let client = client.clone();
            async move { create(&client, &name(at)).await }
        }));
        tokio::try_join!(wait_for_deployments(client, count + 1, 1), created).map(drop)
    };
    bench.leg("created", work).await?;
    let work = async |client: &Client| {
        let scaled = all((0..count).map(|at| {
            let foos = foos(client);
            async move {
                let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
                foos.patch(&name(at), &PatchParams::default(), &patch).await?;
                Ok(())
            }
        }));
        tokio::try_join!(wait_for_deployments(client, count, 2), scaled).map(drop)
    };
    bench.leg("scaled", work).await?;
    bench.finish().await
}

/// Creates the definition of Foo, with upstream's schema, and waits until it is served.
async fn define(client: &Client) -> anyhow::Result<()> {
    let replicas = json!({"type": "integer", "minimum": 1, "maximum": 10});
    let properties = json!({
        "spec": {"type": "object", "properties": {
            "deploymentName": {"type": "string"}, "replicas": replicas,
        }},
        "status": {"type": "object", "properties": {"availableReplicas": {"type": "integer"}}},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "foos.samplecontroller.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a benchmark"},
        },
        "spec": {
            "group": "samplecontroller.k8s.io", "scope": "Namespaced",
            "names": {"kind": "Foo", "plural": "foos"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                "subresources": {"status": {}},
            }],
        },
    });
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    api.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    while foos(client)
        .list_metadata(&homeostat::kube_client::api::ListParams::default())
        .await
        .is_err()
    {
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn foos(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("samplecontroller.k8s.io", "v1alpha1", "Foo");
    let resource = ApiResource::from_gvk_with_plural(&kind, "foos");
    Api::namespaced_with(client.clone(), "default", &resource)
}

fn name(at: usize) -> String {
    format!("foo-{at:04}")
}

async fn create(client: &Client, name: &str) -> anyhow::Result<()> {
    let object: Value = json!({
        "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
        "metadata": {"name": name}, "spec": {"deploymentName": name, "replicas": 1},
    });
    foos(client).create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

/// Waits until `count` Deployments have this number of replicas.
async fn wait_for_deployments(client: &Client, count: usize, replicas: i32) -> anyhow::Result<()> {
    let mut found = BTreeSet::new();
    let api = Api::<Deployment>::namespaced(client.clone(), "default");
    watch_until(&api, |event| {
        if let WatchEvent::Added(it) | WatchEvent::Modified(it) = event
            && it.spec.replicas == Some(replicas)
        {
            found.insert(it.metadata.name.clone());
        }
        found.len() >= count
    })
    .await
}
