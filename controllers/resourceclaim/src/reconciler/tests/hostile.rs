//! Objects that the API server refuses, and that the controller sees nevertheless.

use super::*;

#[tokio::test(start_paused = true)]
async fn empty_recorded_name_is_replaced() {
    let world = World::new();
    world.template().await;
    let mut pod = world.pod(from_template(), json!({})).await;
    pod["status"] = recorded("");
    pod["metadata"]["resourceVersion"] = json!("900");
    world.cache_pod(&pod);
    world.pod_pass().await.unwrap();
    let names = world.claim_names().await;
    assert_eq!(world.recorded().await, json!([{"name": "e", "resourceClaimName": names[0]}]));
    assert_eq!(names.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn entry_that_chooses_the_empty_name_is_left_alone() {
    let world = World::new();
    let mut pod = world.pod_on("n", json!([]), json!({})).await;
    pod["spec"]["resourceClaims"] = json!([{"name": "e", "resourceClaimName": ""}]);
    pod["metadata"]["resourceVersion"] = json!("900");
    world.cache_pod(&pod);
    world.pod_pass().await.unwrap();
    assert_eq!((world.writes(), world.faults.count(Verb::Get, CLAIMS)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn entries_of_one_name_get_one_claim() {
    let world = World::new();
    world.template().await;
    let mut pod = world.pod(from_template(), json!({})).await;
    let entry = json!({"name": "e", "resourceClaimTemplateName": "t"});
    pod["spec"]["resourceClaims"] = json!([entry, entry, entry]);
    pod["metadata"]["resourceVersion"] = json!("900");
    world.cache_pod(&pod);
    world.pod_pass().await.unwrap();
    let names = world.claim_names().await;
    assert_eq!(names.len(), 1);
    assert_eq!(world.recorded().await, json!([{"name": "e", "resourceClaimName": names[0]}]));
}

#[tokio::test(start_paused = true)]
async fn recorded_entry_that_the_spec_lacks_is_not_applied() {
    let world = World::new();
    world.template().await;
    let mut pod = world.pod(from_template(), json!({})).await;
    pod["status"] = json!({"resourceClaimStatuses": [
        {"name": "removed", "resourceClaimName": "x"}, {"name": "not-needed"},
    ]});
    pod["metadata"]["resourceVersion"] = json!("900");
    world.cache_pod(&pod);
    world.pod_pass().await.unwrap();
    let names = world.claim_names().await;
    assert_eq!(world.recorded().await, json!([{"name": "e", "resourceClaimName": names[0]}]));
}

#[tokio::test(start_paused = true)]
async fn consumer_that_doubles_is_removed_once() {
    let world = World::new();
    let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
    let mut claim = world.allocated(json!({"name": "c"}), json!([gone])).await;
    claim["status"]["reservedFor"] = json!([gone, gone]);
    world.cache_claim(&claim);
    world.claim_pass().await.unwrap();
    assert_eq!(world.get(CLAIMS, "c").await.unwrap()["status"], json!({}));
}
