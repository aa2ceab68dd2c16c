use homeostat::informer::testing::Store;
use std::time::Duration;

use homeostat::{EventRecorder, GroupResource};
use serde_json::{Value, json};

use super::*;
use crate::events::COMPONENT;
use crate::script::{self, Answer, Asked, Log, refusal};
use crate::wiring::{controller_uid, orphan_in, owner_of};

const FIRST_LOOK: Duration = Duration::from_secs(5);
const STATUS: &str = "PUT /apis/apps/v1/namespaces/shop/replicasets/web/status";
const CREATE: &str = "POST /api/v1/namespaces/shop/pods";

/// A controller whose caches are filled by hand, and whose server answers as told.
struct World {
    sets: Store<ReplicaSet>,
    pods: Store<Pod>,
    controller: ReplicaSetController,
    asked: Log,
}

impl World {
    fn new(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let (sets, pods) = (Store::new(), Store::new());
        let (client, asked) = script::server(answer);
        let (events, _) = script::server(|_, asked| Answer::Said(201, asked.body.clone()));
        let caches = Caches {
            sets: sets.lister(),
            pods: pods.lister(),
            owned: pods.index_by_metadata(owner_of),
            orphans: pods.index_by_metadata(orphan_in),
            siblings: sets.index_by_metadata(controller_uid),
        };
        let controller = ReplicaSetController {
            requests: Requests::new(client),
            events: Events::new(EventRecorder::new(events, COMPONENT)),
            caches,
            expectations: UidTrackingExpectations::default(),
            consistency: ConsistencyStore::new("test", [sets_resource(), pods_resource()]),
            rules: Rules { burst: 500, heed_costs: true },
            report_terminating: true,
            clock: Clock::new(Some("2026-06-01T12:00:00Z".parse().unwrap())),
            age_ratio: metrics::Histogram::noop(),
        };
        Self { sets, pods, controller, asked }
    }

    /// A server that agrees to everything.
    fn agreeing() -> Self {
        Self::new(|n, asked| {
            let name = format!("made-{n}");
            match asked.line.split(' ').next() {
                Some("GET") => Answer::Said(200, json!({"items": []})),
                _ => Answer::Said(200, json!({"metadata": {"name": name}})),
            }
        })
    }

    async fn reconcile(&self, name: &str) -> Result<Action, String> {
        let request = Request::<ReplicaSet>::new(ObjectKey::namespaced("shop", name));
        let reconciled = self.controller.reconcile(&request).await;
        reconciled.map_err(|error| error.to_string())
    }

    /// A pass that succeeds, whatever it wants next.
    async fn pass(&self, name: &str) {
        let action = self.reconcile(name).await;
        assert!(action.is_ok(), "{action:?}");
    }

    fn key() -> (ObjectKey<Kind>, Uid) {
        (ObjectKey::namespaced("shop", "web"), Uid::from("uid-web"))
    }
}

fn set(name: &str, replicas: i32, change: impl FnOnce(&mut Value)) -> ReplicaSet {
    let mut value = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"),
                     "resourceVersion": "10", "generation": 1},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                 "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": []}}},
    });
    change(&mut value);
    serde_json::from_str(&value.to_string()).unwrap()
}

fn pod(name: &str, owner: Option<&str>, change: impl FnOnce(&mut Value)) -> Pod {
    let mut value = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"),
                     "resourceVersion": "5", "labels": {"app": owner.unwrap_or("web")}},
        "status": {"phase": "Running"},
    });
    if let Some(owner) = owner {
        value["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner,
             "uid": format!("uid-{owner}"), "controller": true}]);
    }
    change(&mut value);
    serde_json::from_str(&value.to_string()).unwrap()
}

fn plain(_: &mut Value) {}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_made_and_the_status_is_what_was_seen_before() {
    let world = World::agreeing();
    world.sets.apply(set("web", 3, plain));
    world.pods.apply(pod("a", Some("web"), plain));
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    assert_eq!(world.asked.lines(), [CREATE, CREATE, STATUS]);
    let status = &world.asked.all()[2].body;
    assert_eq!(status["status"]["replicas"], json!(1));
    assert_eq!(
        status["spec"]["template"]["spec"],
        json!({"containers": []}),
        "the whole object is sent"
    );
}

#[tokio::test(start_paused = true)]
async fn while_writes_are_awaited_nothing_is_made_but_the_status_is_written() {
    let world = World::agreeing();
    world.sets.apply(set("web", 3, plain));
    let (key, uid) = World::key();
    let expected = world.controller.expectations.expect_creations(&key, &uid, 3);
    (0..3).for_each(|_| expected.start().sent());
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    assert_eq!(world.asked.lines(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn writes_that_the_server_knows_nothing_of_are_made_again() {
    let world = World::agreeing();
    let status = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    world.sets.apply(set("web", 1, |set| set["status"] = status));
    let (key, uid) = World::key();
    world.controller.expectations.expect_creations(&key, &uid, 1).start().sent();
    world.pass("web").await;
    assert!(world.asked.lines().is_empty());
    tokio::time::sleep(FIRST_LOOK).await;
    world.pass("web").await;
    assert_eq!(world.asked.lines(), ["GET /api/v1/namespaces/shop/pods", CREATE]);
}

#[tokio::test(start_paused = true)]
async fn writes_that_the_server_knows_of_are_waited_for() {
    let list = json!({"items": [{"metadata": {
        "name": "lost", "uid": "lost", "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                             "uid": "uid-web", "controller": true}]}}]});
    let world = World::new(move |_, _| Answer::Said(200, list.clone()));
    let status = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    world.sets.apply(set("web", 1, |set| set["status"] = status));
    let (key, uid) = World::key();
    world.controller.expectations.expect_creations(&key, &uid, 1).start().sent();
    world.pass("web").await;
    tokio::time::sleep(FIRST_LOOK).await;
    let wait = Action::RequeueAfter(2 * FIRST_LOOK);
    assert_eq!(world.reconcile("web").await, Ok(wait));
    assert_eq!(world.asked.lines(), ["GET /api/v1/namespaces/shop/pods"]);
    world.controller.expectations.creation_observed(&key, &uid);
    let mut shown = pod("lost", Some("web"), plain);
    shown.metadata.uid = Some("lost".to_owned());
    world.pods.apply(shown);
    world.pass("web").await;
    assert_eq!(world.asked.lines().len(), 2, "settled: the status, and no pod");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_decode_leaves_its_owner_as_it_is() {
    let world = World::agreeing();
    world.sets.apply(set("web", 3, plain));
    world.sets.apply(set("db", 0, |set| set["metadata"]["generation"] = json!(null)));
    world.pods.apply_opaque(pod("bad", Some("web"), plain).metadata);
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.asked.lines().is_empty());
    world.pass("db").await;
    assert_eq!(world.asked.lines().len(), 1, "others go on");
    world
        .pods
        .apply(pod("bad", Some("web"), |pod| pod["metadata"]["resourceVersion"] = json!("6")));
    world.pass("web").await;
    assert_eq!(world.asked.lines()[1..], [CREATE, CREATE, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_that_does_not_decode_forgets_nothing() {
    let world = World::agreeing();
    world.sets.apply_opaque(set("web", 3, plain).metadata);
    let (key, uid) = World::key();
    world.controller.expectations.expect_creations(&key, &uid, 1).start().sent();
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.controller.expectations.outstanding(&key, &uid).is_some());
    assert!(world.asked.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_that_is_gone_is_forgotten() {
    let world = World::agreeing();
    let (key, uid) = World::key();
    world.controller.expectations.expect_creations(&key, &uid, 1).start().sent();
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.controller.expectations.outstanding(&key, &uid).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_unusable_selector_is_no_error_to_try_again() {
    let world = World::agreeing();
    world.sets.apply(set("web", 3, |set| {
        set["spec"]["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    }));
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.asked.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn when_nobody_knows_what_counts_nothing_is_made_and_nothing_reported() {
    let world = World::new(|_, _| refusal(500, "no answer"));
    world.sets.apply(set("web", 3, plain));
    world.pods.apply(pod("stray", None, plain));
    let error = world.reconcile("web").await.unwrap_err();
    assert!(error.starts_with("can't adopt Pod shop/stray"), "{error}");
    assert_eq!(world.asked.lines(), ["GET /apis/apps/v1/namespaces/shop/replicasets/web"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_create_is_reported_in_the_status_and_then_returned() {
    let world = World::new(|_, asked| {
        if asked.line == CREATE { refusal(403, "no quota") } else { Answer::Said(200, json!({})) }
    });
    world.sets.apply(set("web", 3, plain));
    assert_eq!(world.reconcile("web").await, Err("no quota".to_owned()));
    assert_eq!(world.asked.lines(), [CREATE, STATUS]);
    let condition = &world.asked.all()[1].body["status"]["conditions"][0];
    assert_eq!(condition["message"], json!("no quota"));
    assert_eq!(condition["lastTransitionTime"], json!("2026-06-01T12:00:00Z"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_stays_reported_while_nothing_can_be_tried_and_goes_with_the_next_success() {
    let world = World::new(|n, asked| match asked.line.split(' ').next() {
        Some("POST") if n == 0 => refusal(500, "the webhook did not answer"),
        Some("GET") => Answer::Said(200, json!({"items": []})),
        _ => Answer::Said(200, json!({})),
    });
    world.sets.apply(set("web", 1, plain));
    world.reconcile("web").await.unwrap_err();
    let reported = world.asked.all()[1].body["status"].clone();
    assert_eq!(reported["conditions"][0]["reason"], json!("FailedCreate"));
    world.sets.apply(set("web", 1, |set| {
        set["metadata"]["resourceVersion"] = json!("11");
        set["status"] = reported;
    }));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [CREATE, STATUS], "the pod may be there: nothing is said");
    tokio::time::sleep(FIRST_LOOK).await;
    world.pass("web").await;
    assert_eq!(world.asked.lines()[2..], ["GET /api/v1/namespaces/shop/pods", CREATE, STATUS]);
    assert_eq!(world.asked.all()[4].body["status"].get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_tried_twice_on_what_is_there_and_then_returned() {
    let live = serde_json::to_value(json!({
        "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web", "resourceVersion": "11"},
        "spec": {"replicas": 9}}))
    .unwrap();
    let world = World::new(move |_, asked| match asked.line.split(' ').next() {
        Some("GET") => Answer::Said(200, live.clone()),
        _ => refusal(409, "the object has been modified"),
    });
    world.sets.apply(set("web", 0, plain));
    let error = world.reconcile("web").await.unwrap_err();
    assert_eq!(error, "failed to write the status: the object has been modified");
    let get = "GET /apis/apps/v1/namespaces/shop/replicasets/web";
    assert_eq!(world.asked.lines(), [STATUS, get, STATUS]);
    let second = &world.asked.all()[2].body;
    assert_eq!(second["metadata"]["resourceVersion"], json!("11"));
    assert_eq!(second["status"]["observedGeneration"], json!(1), "what the decision was based on");
}

#[tokio::test(start_paused = true)]
async fn the_status_of_another_one_under_its_name_is_left_alone() {
    let world = World::new(|_, asked| match asked.line.split(' ').next() {
        Some("GET") => Answer::Said(200, json!({"metadata": {"uid": "newer"}})),
        _ => refusal(409, "the object has been modified"),
    });
    world.sets.apply(set("web", 0, plain));
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert_eq!(world.asked.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_another_namespace_is_nobodys_whatever_it_names() {
    let world = World::agreeing();
    world.sets.apply(set("web", 1, plain));
    world.pods.apply(pod("far", Some("web"), |pod| pod["metadata"]["namespace"] = json!("else")));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [CREATE, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn the_most_crowded_node_of_all_siblings_loses_a_pod() {
    let world = World::agreeing();
    let deployed = |set: &mut Value| {
        set["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment",
            "name": "d", "uid": "uid-d", "controller": true}]);
    };
    world.sets.apply(set("web", 1, deployed));
    world.sets.apply(set("older", 3, deployed));
    world.sets.apply(set("stranger", 3, plain));
    let on = |node: &'static str| move |pod: &mut Value| pod["spec"] = json!({"nodeName": node});
    world.pods.apply(pod("a", Some("web"), on("quiet")));
    world.pods.apply(pod("z", Some("web"), on("crowded")));
    world.pods.apply(pod("o", Some("older"), on("crowded")));
    for name in ["s1", "s2", "s3"] {
        world.pods.apply(pod(name, Some("stranger"), on("quiet")));
    }
    world.pass("web").await;
    assert_eq!(world.asked.lines()[0], "DELETE /api/v1/namespaces/shop/pods/z");
    assert_eq!(world.asked.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_looked_for_after_its_time_although_statuses_are_written_meanwhile() {
    let world = World::new(|n, asked| match asked.line.split(' ').next() {
        Some("GET") => Answer::Said(200, json!({"items": []})),
        _ => Answer::Said(200, json!({"metadata": {"resourceVersion": (12 + n).to_string()}})),
    });
    world.reached(&sets_resource(), "10", &[]);
    world.sets.apply(set("web", 2, plain));
    let (key, uid) = World::key();
    world.controller.expectations.expect_creations(&key, &uid, 1).start().sent();
    let start = tokio::time::Instant::now();
    for version in 12..15 {
        // Another pod that comes and goes.
        let name = format!("pod-{version}");
        world.pods.apply(pod(&name, Some("web"), |pod| {
            pod["metadata"]["resourceVersion"] = json!(version.to_string());
        }));
        let left = FIRST_LOOK.saturating_sub(start.elapsed());
        assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(left)));
        world.reached(&sets_resource(), &version.to_string(), &[]);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(world.asked.lines(), [STATUS; 3]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.pass("web").await;
    assert_eq!(world.asked.lines()[3], "GET /api/v1/namespaces/shop/pods");
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_looked_for_in_time_although_the_pass_has_failed() {
    let world = World::new(|_, asked| match asked.line.split(' ').next() {
        Some("POST") => refusal(500, "the webhook did not answer"),
        Some("GET") => Answer::Said(200, json!({"items": []})),
        _ => refusal(409, "the object has been modified"),
    });
    world.sets.apply(set("web", 1, plain));
    world.reconcile("web").await.unwrap_err();
    // The back-off may have grown by then.
    tokio::time::sleep(FIRST_LOOK).await;
    world.reconcile("web").await.unwrap_err();
    let asked = world.asked.lines();
    assert_eq!(asked.iter().filter(|line| **line == CREATE).count(), 2, "{asked:?}");
}

/// A world in which every write gets version 12, and the caches are at 10.
fn writing_at_12(answer: impl Fn(&Asked) -> Option<Value> + Send + Sync + 'static) -> World {
    let world = World::new(move |_, asked| {
        let agreed = || json!({"metadata": {"name": "made", "resourceVersion": "12"}});
        Answer::Said(200, answer(asked).unwrap_or_else(agreed))
    });
    world.reached(&sets_resource(), "10", &[]);
    world.reached(&pods_resource(), "10", &[]);
    world
}

impl World {
    /// An informer has come so far: these keys are asked for.
    fn reached(&self, resource: &GroupResource, version: &str, woken: &[&str]) {
        let keys = self.controller.consistency.reached(resource, version);
        let keys: Vec<_> = keys.iter().map(|key| key.name().to_owned()).collect();
        assert_eq!(keys, woken);
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_the_cache_does_not_show_yet_is_waited_for() {
    let world = writing_at_12(|_| None);
    world.sets.apply(set("web", 0, plain));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [STATUS]);
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    world.sets.apply(set("web", 0, |set| {
        set["metadata"]["resourceVersion"] = json!("12");
        set["status"] = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    }));
    world.reached(&sets_resource(), "12", &["web"]);
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert_eq!(world.asked.lines(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn pods_that_the_cache_does_not_show_yet_are_waited_for_and_then_the_server_is_asked() {
    let live = json!({"items": [{"metadata": {
        "name": "made", "uid": "uid-made", "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                             "uid": "uid-web", "controller": true}]}}]});
    let world = writing_at_12(move |asked| asked.line.starts_with("GET").then(|| live.clone()));
    world.sets.apply(set("web", 1, plain));
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    assert_eq!(world.asked.lines(), [CREATE, STATUS]);
    world.reached(&sets_resource(), "12", &[]);
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    tokio::time::sleep(FIRST_LOOK).await;
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(2 * FIRST_LOOK)));
    let pods = "GET /api/v1/namespaces/shop/pods";
    assert_eq!(world.asked.lines()[2..], [pods], "it has a pod that the cache does not show");
    world.pods.apply(pod("made", Some("web"), plain));
    tokio::time::sleep(2 * FIRST_LOOK).await;
    world.pass("web").await;
    assert_eq!(world.asked.lines()[3..], [pods, STATUS], "asked once, and there is a pod by now");
    assert!(world.controller.expectations.satisfied(&World::key().0, &World::key().1));
}

#[tokio::test(start_paused = true)]
async fn a_set_that_stays_late_is_compared_with_the_servers() {
    for (live, goes_on) in [("10", true), ("12", false)] {
        let world = writing_at_12(move |asked| match asked.line.as_str() {
            "GET /api/v1/namespaces/shop/pods" => Some(json!({"items": []})),
            line if line.starts_with("GET") => {
                Some(json!({"metadata": {"uid": "uid-web", "resourceVersion": live}}))
            }
            _ => None,
        });
        world.sets.apply(set("web", 0, plain));
        world.pass("web").await;
        tokio::time::sleep(FIRST_LOOK).await;
        world.pass("web").await;
        let asked = world.asked.lines();
        assert_eq!(asked[1], "GET /apis/apps/v1/namespaces/shop/replicasets/web");
        assert_eq!(asked[2..].contains(&STATUS.to_owned()), goes_on, "{asked:?}");
    }
}
