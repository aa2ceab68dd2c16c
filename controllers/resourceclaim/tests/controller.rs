//! The controller against an API server in this process, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "controller/schedules.rs"]
mod schedules;
#[path = "controller/witness.rs"]
mod witness;
#[path = "controller/world.rs"]
mod world;

use std::time::Duration;

use homeostat::kube_client::api::{DeleteParams, ListParams};
use homeostat_faults::{ApiError, Calls, Verb};
use homeostat_resourceclaim::{Options, run};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::json;

use self::world::{FINALIZER, World, claim, on_node, pod, pod_with};

#[tokio::test(start_paused = true)]
async fn claim_lives_from_template_to_finished_pod() {
    let world = World::new().await;
    world.create_template("t").await;
    let created = world.create::<Pod>(&pod("web", &["t"])).await;
    let names = world.wait_for_names("web", 1).await;
    assert!(names[0].starts_with("web-e0-"), "{names:?}");
    let claim = world.claims().get(&names[0]).await.unwrap();
    assert_eq!(claim.metadata.labels.unwrap()["app"], "web");
    let annotations = claim.metadata.annotations.unwrap();
    assert_eq!(annotations["note"], "kept");
    assert_eq!(annotations["resource.kubernetes.io/pod-claim-name"], "e0");
    let owner = &claim.metadata.owner_references.unwrap()[0];
    assert_eq!((&owner.kind, &owner.uid), (&"Pod".to_owned(), &created.metadata.uid.unwrap()));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), None));
    assert_eq!(claim.spec.unwrap().devices.unwrap().requests.unwrap()[0].name, "r");

    world.allocate(&names[0]).await;
    world.rest().await;
    assert!(world.consumers(&names[0]).await.is_empty(), "the scheduler reserves");
    let uid = world.pods().get("web").await.unwrap().metadata.uid;
    let consumer = json!({"resource": "pods", "name": "web", "uid": uid});
    world.patch_claim_status(&names[0], &json!({"reservedFor": [consumer]})).await;
    world.rest().await;
    assert_eq!(world.consumers(&names[0]).await, ["web"]);

    world.set_phase("web", "Succeeded").await;
    world.until(async || world.claim_names().await.is_empty()).await;
    world.rest().await;
    assert!(world.claim_names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn allocated_claim_is_reserved_for_pod_that_reached_a_node_without_the_scheduler() {
    let world = World::new().await;
    world.create::<ResourceClaim>(&claim("shared")).await;
    world.allocate("shared").await;
    let entry = json!([{"name": "e", "resourceClaimName": "shared"}]);
    for name in ["a", "b"] {
        world.create::<Pod>(&on_node(pod_with(name, &entry))).await;
    }
    world.until(async || world.consumers("shared").await.len() == 2).await;

    world.kill("a").await;
    world.until(async || world.consumers("shared").await == ["b"]).await;
    world.kill("b").await;
    let is_deallocated = async || {
        let claim = world.claims().get("shared").await.unwrap();
        claim.status.is_none_or(|status| status.allocation.is_none())
            && claim.metadata.finalizers.unwrap_or_default().is_empty()
    };
    world.until(is_deallocated).await;
    assert_eq!(world.claim_names().await, ["shared"], "the user's claim stays");
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_stays_until_its_consumer_is_gone() {
    let world = World::new().await;
    world.create::<ResourceClaim>(&claim("mine")).await;
    world.allocate("mine").await;
    let entry = json!([{"name": "e", "resourceClaimName": "mine"}]);
    world.create::<Pod>(&on_node(pod_with("web", &entry))).await;
    world.until(async || world.consumers("mine").await == ["web"]).await;
    drop(world.claims().delete("mine", &DeleteParams::default()).await.unwrap());
    world.rest().await;
    let claim = world.claims().get("mine").await.unwrap();
    assert_eq!(claim.metadata.finalizers.unwrap(), [FINALIZER]);
    world.set_phase("web", "Failed").await;
    world.until(async || world.claim_names().await.is_empty()).await;
    let pods = world.pods().list(&ListParams::default()).await.unwrap();
    assert_eq!(pods.items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn template_after_the_pod_ends_the_wait() {
    let mut world = World::new().await;
    world.create::<Pod>(&pod("web", &["late"])).await;
    let reason = "FailedResourceClaimCreation";
    world.until(async || !world.events(reason).await.is_empty()).await;
    assert_eq!(
        world.events(reason).await[0],
        "PodResourceClaim e0: resource claim template \"late\": \
         resourceclaimtemplate.resource.k8s.io \"late\" not found"
    );
    world.create_template("late").await;
    world.wait_for_names("web", 1).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn server_without_claims_is_reported_in_words() {
    let world = World::without_controller().await;
    for resource in ["resourceclaims", "resourceclaimtemplates"] {
        world.faults.refuse(Calls::on(resource).always(), ApiError::not_found());
    }
    let options = Options { sync_timeout: Duration::from_secs(30), ..Options::default() };
    let client = world.faults.client(world.client.clone());
    let error = run(client, options, std::future::pending()).await.unwrap_err().to_string();
    let start = "failed to sync caches within 30s: ";
    assert!(error.starts_with(start), "{error}");
    for words in ["resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"] {
        assert!(error.contains(words), "{words} is not in {error}");
    }
    assert!(error.contains("its definition or its API group may be missing"), "{error}");
    assert!(!error.contains("pods"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn missing_permission_to_list_is_reported_in_words() {
    let world = World::without_controller().await;
    let refused = ApiError::new(
        http::StatusCode::FORBIDDEN,
        "Forbidden",
        "resourceclaims.resource.k8s.io is forbidden: User \"jane\" cannot list resource",
    );
    world.faults.refuse(Calls::on("resourceclaims").always(), refused);
    let options = Options { sync_timeout: Duration::from_secs(30), ..Options::default() };
    let client = world.faults.client(world.client.clone());
    let error = run(client, options, std::future::pending()).await.unwrap_err().to_string();
    assert!(error.contains("User \"jane\" cannot list resource"), "{error}");
    assert!(!error.contains("pods"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn template_that_the_server_refuses_is_retried_less_and_less() {
    let mut world = World::new().await;
    let refused = ApiError::new(http::StatusCode::UNPROCESSABLE_ENTITY, "Invalid", "no such class");
    world.faults.refuse(Calls::create("resourceclaims").always(), refused);
    world.create_template("t").await;
    world.create::<Pod>(&pod("web", &["t"])).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    // 5 ms, doubled at each failure: 17 attempts in the first 327 s, the next one after 655 s.
    let attempts = world.faults.count(Verb::Create, "resourceclaims");
    assert!((15..=19).contains(&attempts), "{attempts} attempts");
    let message = "PodResourceClaim e0: create ResourceClaim : no such class";
    assert_eq!(world.events("FailedResourceClaimCreation").await, [message], "one event, counted");
    world.faults.heal();
    tokio::time::sleep(Duration::from_secs(660)).await;
    world.wait_for_names("web", 1).await;
    world.stop().await;
}
