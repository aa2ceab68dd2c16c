//! What the fault layer promises, on every server there is: what it breaks is the conversation, and
//! the server is what it was asked to become.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "support/targets.rs"]
mod targets;

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use homeostat_apiserver::faults::{Calls, Faults, Refusal, Verb};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_client::{
    Api, Error,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_core::{WatchEvent, params::WatchParams};
use serde_json::json;

use self::targets::{World, eventually};

fn main() {
    targets::run(&[
        ("a_lost_reply_was_a_request", |world| lost_reply(world).boxed_local()),
        ("a_refused_request_was_none", |world| refused(world).boxed_local()),
        ("a_torn_watch_goes_on_where_it_was", |world| torn_watch(world).boxed_local()),
        ("an_expired_watch_says_410_in_the_stream", |world| expired_watch(world).boxed_local()),
        ("a_held_watch_is_only_late", |world| held_watch(world).boxed_local()),
    ]);
}

async fn lost_reply(world: World) {
    let faults = Faults::new();
    let maps = maps(&world, &faults);
    faults.lose_reply(Calls::create("configmaps"));
    maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    let again = maps.create(&PostParams::default(), &map("a")).await.unwrap_err();
    assert!(matches!(&again, Error::Api(status) if status.is_already_exists()), "{again}");

    faults.lose_reply(Calls::patch("configmaps").named("a"));
    let patch = Patch::Merge(json!({ "data": { "key": "value" } }));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap_err();
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["key"], "value");

    faults.lose_reply(Calls::delete("configmaps"));
    maps.delete("a", &DeleteParams::default()).await.unwrap_err();
    assert!(maps.get_opt("a").await.unwrap().is_none());
    let namespace = &world.namespace;
    assert_eq!(
        faults.trace().words(),
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
    faults.refuse(Calls::create("configmaps"), Refusal::unavailable());
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

    // Nothing is lost: the next watch goes on from the last good version.
    maps.create(&PostParams::default(), &map("b")).await.unwrap();
    let version = maps.get("a").await.unwrap().metadata.resource_version.unwrap();
    let mut watch = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    assert_eq!(name_of(watch.try_next().await.unwrap()), "b");
    faults.end_watches("configmaps");
    assert!(watch.next().await.is_none(), "a clean end");
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
    eventually(async || match faults.open_watches("configmaps") {
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
