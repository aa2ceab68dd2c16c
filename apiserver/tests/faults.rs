//! The fault layer on every target server: faults affect the requests and replies, and the state of
//! the server is as expected.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "support/targets.rs"]
mod targets;

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use homeostat_faults::{ApiError, Calls, Faults, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube_client::{Api, Error};
use kube_core::WatchEvent;
use kube_core::params::WatchParams;
use serde_json::json;

use self::targets::{World, wait_until_ok};

fn main() {
    targets::run(&[
        ("request_is_processed_when_its_reply_is_lost", |world| lost_reply(world).boxed_local()),
        ("refused_request_is_not_processed", |world| refused(world).boxed_local()),
        ("torn_watch_resumes_without_loss", |world| torn_watch(world).boxed_local()),
        ("expired_watch_gets_410_in_the_stream", |world| expired_watch(world).boxed_local()),
        ("held_watch_loses_no_event", |world| held_watch(world).boxed_local()),
    ]);
}

async fn lost_reply(world: World) {
    let faults = Faults::new();
    let maps = maps(&world, &faults);
    faults.lose_reply(Calls::create("configmaps"));
    maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    let retry = maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    assert!(matches!(&retry, Error::Api(status) if status.is_already_exists()), "{retry}");

    faults.lose_reply(Calls::patch("configmaps").named("a"));
    let patch = Patch::Merge(json!({ "data": { "key": "value" } }));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap_err();
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["key"], "value");

    faults.lose_reply(Calls::delete("configmaps"));
    maps.delete("a", &DeleteParams::default()).await.unwrap_err();
    assert!(maps.get_opt("a").await.unwrap().is_none());
    let namespace = &world.namespace;
    assert_eq!(
        faults.trace().messages(),
        [
            format!("create configmaps in {namespace}: reply lost (201 Created)"),
            format!("patch configmaps {namespace}/a: reply lost (200 OK)"),
            format!("delete configmaps {namespace}/a: reply lost (200 OK)"),
        ]
    );
}

async fn refused(world: World) {
    let faults = Faults::new();
    let maps = maps(&world, &faults);
    faults.refuse(Calls::create("configmaps"), ApiError::unavailable());
    faults.drop_request(Calls::create("configmaps").nth(2));
    maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    assert!(maps.get_opt("a").await.unwrap().is_none());
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let requests = faults.requests();
    assert_eq!(requests[&(Verb::Create, "configmaps".to_owned())], 3);
    assert_eq!(requests[&(Verb::Get, "configmaps".to_owned())], 1);
}

async fn torn_watch(world: World) {
    let faults = Faults::new();
    let maps = maps(&world, &faults);
    let version =
        maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut watch = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let seen = name_of(watch.try_next().await.unwrap());
    assert_eq!(seen, "a");
    assert_eq!(faults.tear_watches("configmaps"), 1);
    assert!(matches!(watch.next().await, Some(Err(Error::ReadEvents(_)))));

    // No event is lost: the next watch resumes at the last version.
    maps.create(&PostParams::default(), &map("b")).await.unwrap();
    let version = maps.get("a").await.unwrap().metadata.resource_version.unwrap();
    let mut watch = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    assert_eq!(name_of(watch.try_next().await.unwrap()), "b");
    faults.end_watches("configmaps");
    assert!(watch.next().await.is_none(), "not ended");
}

async fn expired_watch(world: World) {
    let faults = Faults::new();
    let maps = maps(&world, &faults);
    let version =
        maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut watch = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    assert_eq!(name_of(watch.try_next().await.unwrap()), "a");
    assert_eq!(faults.expire_watches("configmaps"), 1);
    let expired = watch.try_next().await.unwrap();
    assert!(matches!(expired, Some(WatchEvent::Error(status)) if status.code == 410));
    assert!(watch.next().await.is_none());
}

async fn held_watch(world: World) {
    let faults = Faults::new();
    let maps = maps(&world, &faults);
    let version =
        maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let held = faults.hold_watches("configmaps");
    let mut watch = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    wait_until_ok(async || match faults.open_watches("configmaps") {
        1 => Ok(()),
        open => Err(format!("{open} watches are open")),
    })
    .await;
    assert!(watch.next().now_or_never().is_none());
    drop(held);
    for name in ["a", "b"] {
        assert_eq!(name_of(watch.try_next().await.unwrap()), name);
    }
}

fn maps(world: &World, faults: &Faults) -> Api<ConfigMap> {
    Api::namespaced(faults.client(world.client.clone()), &world.namespace)
}

fn map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn name_of(event: Option<WatchEvent<ConfigMap>>) -> String {
    match event {
        Some(WatchEvent::Added(map)) => map.metadata.name.unwrap(),
        other => panic!("not an Added: {other:?}"),
    }
}
