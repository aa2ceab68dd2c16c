//! The sweep of events finds a bug of each pattern, and names the first plan that shows it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select;
use homeostat_apiserver::Kind;
use homeostat_testing::{
    Disturbance, Outcome, Plan, Simulation, SweepBuilder, SweepFailure, crash_at_every_call,
    disturb_every_event, oracle,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube_client::{Api, Client, ResourceExt as _};
use kube_runtime::watcher::{self, Event, watcher};
use serde_json::json;

const PERIOD: Duration = Duration::from_secs(6);

/// Plays the user: a config map whose text changes twice. Returns the secrets.
async fn three_texts(simulation: &Simulation) -> Outcome {
    let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
    tokio::time::sleep(PERIOD).await;
    for text in ["one", "two", "three"] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a"}, "data": {"text": text}});
        maps.patch("a", &PatchParams::apply("user"), &Patch::Apply(map)).await?;
        tokio::time::sleep(PERIOD).await;
    }
    tokio::time::sleep(5 * PERIOD).await;
    Ok(oracle::end_state(simulation, &[ApiResource::erase::<Secret>(&())]).await?)
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

fn secrets(client: &Client) -> Api<Secret> {
    Api::default_namespaced(client.clone())
}

/// Creates a secret, or fails to.
async fn create(client: &Client, metadata: serde_json::Value) {
    let secret: Secret = serde_json::from_value(json!({"metadata": metadata})).expect("a secret");
    drop(secrets(client).create(&PostParams::default(), &secret).await);
}

fn text(map: &ConfigMap) -> String {
    map.data.as_ref().and_then(|data| data.get("text").cloned()).unwrap_or_default()
}

/// Creates a secret for each map that has none in the cache, under a generated name.
async fn trusts_its_cache(client: Client) {
    enum Seen {
        Map(Event<ConfigMap>),
        Secret(Event<Secret>),
    }
    let config = watcher::Config::default;
    let maps = watcher(maps(&client), config()).filter_map(|event| async { event.ok() });
    let owned = watcher(secrets(&client), config()).filter_map(|event| async { event.ok() });
    let mut events = Box::pin(select(maps.map(Seen::Map), owned.map(Seen::Secret)));
    let (mut wanted, mut known, mut ready) = (BTreeSet::new(), BTreeSet::new(), 0);
    while let Some(event) = events.next().await {
        match event {
            Seen::Map(Event::Apply(map) | Event::InitApply(map)) => {
                wanted.insert(map.name_any());
            }
            Seen::Secret(Event::Apply(secret) | Event::InitApply(secret)) => {
                known.extend(secret.labels().get("for").cloned());
            }
            Seen::Map(Event::InitDone) | Seen::Secret(Event::InitDone) => ready += 1,
            _ => {}
        }
        if ready < 2 {
            continue;
        }
        for name in wanted.difference(&known) {
            create(&client, json!({"generateName": "for-", "labels": {"for": name}})).await;
        }
    }
}

/// Creates a secret for each event.
async fn counts_events(client: Client) {
    let mut events = Box::pin(watcher(maps(&client), watcher::Config::default()));
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(_)) = event {
            create(&client, json!({"generateName": "change-"})).await;
        }
    }
}

/// Creates a secret for each text that it sees.
async fn observes_each_state(client: Client) {
    let mut events = Box::pin(watcher(maps(&client), watcher::Config::default()));
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(map) | Event::InitApply(map)) = event {
            create(&client, json!({"name": text(&map)})).await;
        }
    }
}

/// Creates one secret if the watch cache of the server has none.
async fn reads_the_watch_cache(client: Client) {
    loop {
        let any = ListParams::default().match_any();
        if secrets(&client).list(&any).await.is_ok_and(|list| list.items.is_empty()) {
            create(&client, json!({"generateName": "single-"})).await;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Creates one secret with a fixed name. It looks at the server, and watches the maps.
async fn is_correct(client: Client) {
    let mut events = Box::pin(watcher(maps(&client), watcher::Config::default()));
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(map) | Event::InitApply(map)) = event {
            create(&client, json!({"name": map.name_any()})).await;
        }
    }
}

#[track_caller]
fn assert_plan(failure: &SweepFailure, expected: &Plan, fault: &str) {
    assert_eq!(failure.plan().as_ref(), Some(expected), "{failure}");
    let message = failure.to_string();
    assert!(message.contains(fault), "{message}");
    let test = std::thread::current().name().map(str::to_owned);
    let test = test.expect("libtest names the thread of each test");
    let command = format!("HOMEOSTAT_PLAN=\"{expected}\" cargo test -- --exact {test}");
    assert!(message.ends_with(&format!("repeat it: {command}")), "{message}");
}

fn event(how: Disturbance, nth: u64, resource: &str) -> Plan {
    Plan::Event { resource: resource.to_owned(), nth, how }
}

#[test]
fn controller_that_trusts_its_cache_fails_when_events_are_held() {
    crash_at_every_call(3, three_texts, trusts_its_cache).unwrap();
    let failure = disturb_every_event(3, three_texts, trusts_its_cache).unwrap_err();
    // All three events of the map arrive before the first one of its secret.
    assert_plan(&failure, &event(Disturbance::Held, 1, "configmaps"), "holds event 1 for 10s");
}

#[test]
fn controller_that_counts_events_fails_when_one_is_repeated() {
    let failure = disturb_every_event(3, three_texts, counts_events).unwrap_err();
    let plan = event(Disturbance::Repeated, 1, "configmaps");
    assert_plan(&failure, &plan, "watch starts 1 revisions earlier");
}

#[test]
fn events_of_one_plural_in_two_groups_are_disturbed_apart() {
    fn resource() -> ApiResource {
        let kind = GroupVersionKind::gvk("example.com", "v1", "Foo");
        ApiResource::from_gvk_with_plural(&kind, "configmaps")
    }
    fn foos(client: &Client) -> Api<DynamicObject> {
        Api::default_namespaced_with(client.clone(), &resource())
    }
    /// Watches the config maps, and creates a secret for each event of a Foo.
    async fn counts_foos(client: Client) {
        let maps = maps(&client);
        let maps = watcher(maps, watcher::Config::default()).for_each(async |_| {});
        let events = watcher(foos(&client), watcher::Config::default()).for_each(async |event| {
            if let Ok(Event::Apply(_)) = event {
                create(&client, json!({"generateName": "change-"})).await;
            }
        });
        futures::join!(maps, events);
    }
    async fn one_of_each(simulation: &Simulation) -> Outcome {
        tokio::time::sleep(PERIOD).await;
        let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
        maps(simulation.user()).create(&PostParams::default(), &map).await?;
        tokio::time::sleep(PERIOD).await;
        let foo = DynamicObject::new("a", &resource());
        foos(simulation.user()).create(&PostParams::default(), &foo).await?;
        tokio::time::sleep(5 * PERIOD).await;
        Ok(oracle::end_state(simulation, &[ApiResource::erase::<Secret>(&())]).await?)
    }
    let kind = || Kind::custom("example.com", "v1", "Foo", "configmaps");
    let builder = SweepBuilder::new(3).server(|server| server.kind(kind()));
    let failure = builder.disturb_every_event(one_of_each, counts_foos).unwrap_err();
    let plan = event(Disturbance::Repeated, 1, "configmaps.example.com");
    assert_plan(&failure, &plan, "watch starts 1 revisions earlier");
}

#[test]
fn controller_that_must_observe_each_state_fails_when_one_is_lost() {
    let failure = disturb_every_event(3, three_texts, observes_each_state).unwrap_err();
    let plan = event(Disturbance::Lost, 1, "configmaps");
    assert_plan(&failure, &plan, "loses event 1 and those of the next 10s");
}

#[test]
fn controller_that_reads_the_watch_cache_fails_after_a_crash() {
    crash_at_every_call(3, three_texts, reads_the_watch_cache).unwrap();
    let failure = disturb_every_event(3, three_texts, reads_the_watch_cache).unwrap_err();
    assert_plan(&failure, &Plan::StaleSuccessor(1), "moves to a server that is at");
}

#[test]
fn correct_controller_passes_each_disturbance_of_each_event() {
    let sweep = disturb_every_event(3, three_texts, is_correct).unwrap();
    // Three calls, and three events: each is held, repeated and lost.
    assert_eq!((sweep.calls, sweep.runs, sweep.missed), (3, 1 + 3 + 9, 0));
}

#[test]
fn watch_cache_catches_up_for_a_successor_that_leaves_its_work_to_a_task() {
    /// Creates a secret for each map in the watch cache.
    async fn copy(client: &Client) {
        let cached = maps(client).list(&ListParams::default().match_any()).await;
        for map in cached.into_iter().flatten() {
            let name = format!("of-{}", map.name_any());
            if secrets(client).get_opt(&name).await.is_ok_and(|secret| secret.is_none()) {
                create(client, json!({"name": name})).await;
            }
        }
    }
    #[expect(clippy::disallowed_methods, reason = "controllers do so")]
    async fn copies_from_the_cache(client: Client) {
        drop(tokio::task::spawn(async move {
            loop {
                copy(&client).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }));
    }
    async fn maps_until_the_end(simulation: &Simulation) -> Outcome {
        let params = PostParams::default();
        for name in ["a", "b", "c"] {
            let map = json!({"metadata": {"name": name}});
            let map: ConfigMap = serde_json::from_value(map)?;
            let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
            maps.create(&params, &map).await?;
            tokio::time::sleep(PERIOD).await;
        }
        tokio::time::sleep(5 * PERIOD).await;
        Ok(oracle::end_state(simulation, &[ApiResource::erase::<Secret>(&())]).await?)
    }
    let sweep = disturb_every_event(5, maps_until_the_end, copies_from_the_cache).unwrap();
    assert_eq!(sweep.calls, 3);
}

#[test]
fn faults_of_the_story_do_not_hide_that_an_event_was_missed() {
    /// Opens a second watch for what it has not seen in the first one.
    async fn two_watches(client: Client) {
        for version in ["0", "1"] {
            let params = kube_client::api::WatchParams::default().disable_bookmarks();
            let Ok(watch) = maps(&client).watch(&params, version).await else { continue };
            let _ends = tokio::time::timeout(PERIOD, watch.for_each(async |_| {})).await;
        }
        std::future::pending::<()>().await;
    }
    async fn noted(simulation: &Simulation) -> Outcome {
        simulation.faults().note("the story begins");
        simulation.server().expire_history();
        let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
        let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
        maps.create(&PostParams::default(), &map).await?;
        tokio::time::sleep(10 * PERIOD).await;
        Ok(serde_json::Value::Null)
    }
    let sweep = disturb_every_event(5, noted, two_watches).unwrap();
    assert_eq!((sweep.runs, sweep.missed > 0), (1 + 3 * 2, true), "{sweep:?}");
}
