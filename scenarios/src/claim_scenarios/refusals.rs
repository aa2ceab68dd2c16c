//! Requests that the server refuses, and the permissions of the controller.

use anyhow::ensure;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use homeostat_apiserver::cluster::ClaimScheduler;
use homeostat_faults::Verb;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};

use super::REST;
use crate::logged::has_line;
use crate::resource_claims::{ResourceClaims, on_node, pod, pod_using};
use crate::{Running, World};

/// The label of a namespace whose users may ask for admin access.
const ADMIN_ACCESS: &str = "resource.kubernetes.io/admin-access";

/// The roles of the controller.
const ROLES: &str = include_str!("../../../controllers/resourceclaim/rbac.yaml");

pub(super) async fn admin_access(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let exactly = json!({"deviceClassName": "gpu", "adminAccess": true});
    let spec = json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}});
    ensure!(user.create_template_for(&spec).await.is_err(), "the namespace has no label");
    label_default(world.user(), &json!("true")).await?;
    user.create_template_for(&spec).await?;
    let controller = world.run_claim_controller();
    user.create_pod(&pod("web", 1)).await?;
    user.wait_for_names("web", 1).await?;
    // The server refuses the next claim: the label is gone.
    label_default(world.user(), &Value::Null).await?;
    user.create_pod(&pod("late", 1)).await?;
    let refused = format!("admin access to devices requires the `{ADMIN_ACCESS}: true` label");
    user.wait("the event names the reason", async || {
        Ok(user.events().await?.iter().any(|message| message.contains(&refused)))
    })
    .await?;
    label_default(world.user(), &json!("true")).await?;
    user.wait_for_names("late", 1).await?;
    ensure!(user.names().await?.len() == 2, "one claim per entry");
    controller.stop().await
}

/// Sets the label for admin access on the namespace `default`, or removes it.
async fn label_default(client: &Client, value: &Value) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"labels": {ADMIN_ACCESS: value}}}));
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.patch("default", &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(super) async fn terminating_namespace(world: &mut World) -> anyhow::Result<()> {
    let namespaces = Api::<Namespace>::all(world.user().clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "ends"}}))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let ends = ResourceClaims::in_namespace(world.user(), "ends");
    ends.create_template().await?;
    ends.create_pod(&pod("web", 1)).await?;
    // It stays: no controller of namespaces runs.
    namespaces.delete("ends", &DeleteParams::default()).await?;
    let controller = world.run_claim_controller();
    let is_logged = async || Ok(has_line(&["ends/web", "it is being terminated"]));
    ends.wait("the refusal is logged", is_logged).await?;
    tokio::time::sleep(REST).await;
    ensure!(world.faults().count(Verb::Create, "resourceclaims") == 1, "it is not retried");
    // Other namespaces go on.
    let user = ResourceClaims::new(world.user());
    user.create_template().await?;
    user.create_pod(&pod("web", 1)).await?;
    user.wait_for_names("web", 1).await?;
    controller.stop().await
}

/// The permissions of `rbac.yaml` that the story need not request. Lists are for servers without
/// streaming lists, `get` is for a recorded claim that the cache does not have, and `patch` for an
/// event that occurs again. The API server asks for the binding when a status is written.
const SPARE: [&str; 6] = [
    "get resourceclaims.resource.k8s.io",
    "list pods",
    "list resourceclaims.resource.k8s.io",
    "list resourceclaimtemplates.resource.k8s.io",
    "patch events",
    "patch resourceclaims/binding.resource.k8s.io",
];

/// The full story, as a service account with the roles of `rbac.yaml` alone.
pub(super) async fn service_account(world: &mut World) -> anyhow::Result<()> {
    let _scheduler = ClaimScheduler::start(world.user().clone());
    let user = ResourceClaims::new(world.user());
    let client = world.service_account(ROLES, "homeostat-resourceclaim").await?;
    let controller = Running::of_claims(client, homeostat_resourceclaim::Options::default());
    // An event.
    user.create_pod(&pod("web", 2)).await?;
    user.wait("the event is there", async || Ok(!user.events().await?.is_empty())).await?;
    user.create_template().await?;
    let names = user.wait_for_names("web", 2).await?;
    user.wait_for_consumers(&names[0], &["web"]).await?;
    user.create_claim(&json!({"name": "shared"})).await?;
    user.allocate("shared").await?;
    user.create_pod(&on_node(pod_using("other", "shared"))).await?;
    user.wait_for_consumers("shared", &["other"]).await?;
    user.kill("other").await?;
    user.wait_for_deallocation("shared").await?;
    user.finish("web").await?;
    user.wait_for_claims(&["shared"]).await?;
    // A consumer that the cache never had: it is read from the server.
    let gone = json!({"resource": "pods", "name": "ghost", "uid": "ghost"});
    user.allocate("shared").await?;
    user.patch_claim_status("shared", &json!({"reservedFor": [gone]})).await?;
    user.wait_for_deallocation("shared").await?;
    controller.stop().await?;
    Ok(world.requested().compare(&[ROLES], &SPARE)?)
}

/// A service account without the permission that servers since 1.36 ask for.
pub(super) async fn missing_permission(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_claim(&json!({"name": "unbindable"})).await?;
    user.allocate("unbindable").await?;
    user.create_pod(&on_node(pod_using("web", "unbindable"))).await?;
    let binding = "resources: [\"resourceclaims/binding\"]";
    ensure!(ROLES.contains(binding), "the roles have the permission");
    let roles = ROLES.replace(binding, "resources: [\"none\"]");
    let client = world.service_account(&roles, "homeostat-resourceclaim").await?;
    let controller = Running::of_claims(client, homeostat_resourceclaim::Options::default());
    let advice = ["default/unbindable", "grant update and patch on resourceclaims/binding"];
    user.wait("the permission is named", async || Ok(has_line(&advice))).await?;
    ensure!(user.consumers("unbindable").await?.is_empty(), "nothing is reserved");
    // The retries find the permission without a restart.
    let roles = Api::<ClusterRole>::all(world.user().clone());
    let mut role = roles.get("homeostat-resourceclaim").await?;
    role.rules.get_or_insert_default().push(serde_json::from_value(json!({
        "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/binding"],
        "verbs": ["patch"],
    }))?);
    roles.replace("homeostat-resourceclaim", &PostParams::default(), &role).await?;
    user.wait_for_consumers("unbindable", &["web"]).await?;
    controller.stop().await
}
