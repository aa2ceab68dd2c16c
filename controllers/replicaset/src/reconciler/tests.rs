use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::informer::testing::Store;
use homeostat::kube_client::Client;
use homeostat::{ConsistencyStore, EventRecorder, GroupResource, Uid};
use homeostat_testing::OnePass;
use http::Request as HttpRequest;
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::caches::{controller_uid, orphan_in, owner_of};
use crate::scripted_server::{self, Answer, Asked, Log, refusal};
use crate::workload::ReplicaSet;

const FIRST_LOOK: Duration = Duration::from_secs(5);
const STATUS: &str = "PUT /apis/apps/v1/namespaces/shop/replicasets/web/status";
const CREATE: &str = "POST /api/v1/namespaces/shop/pods";

/// A controller whose caches the test fills, with a scripted server.
struct World {
    sets: Store<ReplicaSet>,
    pods: Arc<Store<Pod>>,
    controller: ReplicaController<Kind>,
    asked: Log,
    /// The requests of the event recorder.
    recorded: Log,
    /// The counter of passes that a pod that does not decode has stopped.
    blocked: Arc<AtomicU64>,
}

impl World {
    fn new(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let (client, asked) = scripted_server::server(answer);
        Self { asked, ..Self::with_client(client) }
    }

    /// Returns a world with this client, and with empty caches.
    fn with_client(client: Client) -> Self {
        let (sets, pods) = (Store::new(), Arc::new(Store::new()));
        let (events, recorded) =
            scripted_server::server(|_, asked| Answer::Said(201, asked.body.clone()));
        let blocked = Arc::new(AtomicU64::new(0));
        let caches = Caches {
            sets: sets.lister(),
            pods: pods.lister(),
            owned: pods.index_by_metadata(owner_of::<Kind>),
            orphans: pods.index_by_metadata(orphan_in),
            siblings: sets.index_by_metadata(controller_uid),
        };
        let requests = Requests::new(client);
        let controller = ReplicaController {
            requests: requests.clone(),
            events: Events::new(EventRecorder::new(events, Kind::COMPONENT)),
            own_writes: OwnWrites {
                expectations: UidTrackingExpectations::default(),
                consistency: ConsistencyStore::new(
                    "test",
                    [group_resource::<Kind>(), pods_resource()],
                ),
                requests,
                owned: caches.owned.clone(),
            },
            left_statuses: LeftStatuses::default(),
            caches,
            rules: Rules { burst: 500, use_deletion_costs: true },
            report_terminating: true,
            compare_versions: true,
            clock: WallClock::new(Some("2026-06-01T12:00:00Z".parse().unwrap())),
            age_ratio: metrics::Histogram::noop(),
            blocked: metrics::Counter::from_arc(Arc::clone(&blocked)),
        };
        Self { sets, pods, controller, asked: Log::default(), recorded, blocked }
    }

    /// Returns a world whose server accepts each request.
    fn accepting() -> Self {
        Self::new(|n, asked| {
            let name = format!("made-{n}");
            match asked.line.split(' ').next() {
                Some("GET") => Answer::Said(200, json!({"items": []})),
                _ => Answer::Said(200, json!({"metadata": {"name": name}})),
            }
        })
    }

    async fn reconcile(&self, name: &str) -> Result<Action, String> {
        self.reconcile_request(&request(name)).await
    }

    async fn reconcile_request(&self, request: &Request<ReplicaSet>) -> Result<Action, String> {
        let reconciled = self.controller.reconcile(request).await;
        reconciled.map_err(|error| error.to_string())
    }

    /// Runs a pass that must succeed.
    async fn pass(&self, name: &str) {
        let action = self.reconcile(name).await;
        assert!(action.is_ok(), "{action:?}");
    }

    /// Makes the next pass over `shop/web` write the status, also if it creates pods.
    fn owes_the_status(&self) {
        assert!(self.controller.left_statuses.leave(&Self::key().0));
    }

    fn key() -> (ObjectKey<Kind>, Uid) {
        (ObjectKey::namespaced("shop", "web"), Uid::from("uid-web"))
    }
}

fn request(name: &str) -> Request<ReplicaSet> {
    Request::new(ObjectKey::namespaced("shop", name))
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

/// Creates `object` on the server, and returns it as stored.
async fn created<K: DeserializeOwned>(user: &Client, path: &str, object: &Value) -> K {
    let request = HttpRequest::post(path).header("content-type", "application/json");
    let stored = user.request_text(request.body(object.to_string().into_bytes()).unwrap()).await;
    serde_json::from_str(&stored.unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn orphan_is_adopted_before_the_others_are_created() {
    let pass = OnePass::start();
    let user = pass.server().client();
    created::<Value>(&user, "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await;
    let template = json!({"metadata": {"labels": {"app": "web"}},
                          "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let web = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    let world = World::with_client(pass.client());
    let sets = "/apis/apps/v1/namespaces/shop/replicasets";
    world.sets.apply(created::<ReplicaSet>(&user, sets, &web).await);
    let orphan = json!({"metadata": {"name": "orphan", "labels": {"app": "web"}},
                        "spec": template["spec"]});
    let pods = "/api/v1/namespaces/shop/pods";
    world.pods.apply(created::<Pod>(&user, pods, &orphan).await);
    let ((), calls) = pass.run(world.pass("web")).await;
    let owner = &calls[1].body["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["name"], &owner["controller"]), (&json!("web"), &json!(true)));
    let calls: Vec<_> = calls.iter().map(ToString::to_string).collect();
    let expected = [
        "200 get replicasets shop/web",
        "200 patch pods shop/orphan",
        "201 create pods in shop",
        "201 create pods in shop",
    ];
    assert_eq!(calls, expected);
}

#[tokio::test(start_paused = true)]
async fn missing_pods_are_created_and_counted_in_the_status() {
    let world = World::accepting();
    world.sets.apply(set("web", 3, plain));
    world.pods.apply(pod("a", Some("web"), plain));
    world.owes_the_status();
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    assert_eq!(world.asked.lines(), [CREATE, CREATE, STATUS]);
    let status = &world.asked.all()[2].body;
    let counts = ["replicas", "fullyLabeledReplicas", "readyReplicas"];
    assert_eq!(counts.map(|count| &status["status"][count]), [&json!(3), &json!(3), &json!(null)]);
    assert_eq!(
        status["spec"]["template"]["spec"],
        json!({"containers": []}),
        "the complete object is sent"
    );
}

#[tokio::test(start_paused = true)]
async fn replaced_pod_causes_no_write_of_the_status() {
    let world = World::accepting();
    let status = json!({"replicas": 3, "fullyLabeledReplicas": 3, "observedGeneration": 1,
                        "terminatingReplicas": 0});
    world.sets.apply(set("web", 3, |set| set["status"] = status));
    world.pods.apply(pod("a", Some("web"), plain));
    world.pods.apply(pod("b", Some("web"), plain));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [CREATE]);
}

#[tokio::test(start_paused = true)]
async fn status_is_left_once_to_a_pass_that_follows_at_once() {
    let world = World::accepting();
    world.sets.apply(set("web", 1, plain));
    world.pods.apply(pod("a", Some("web"), plain));
    let changing = request("web").requested_again();
    for lines in [&[][..], &[STATUS], &[STATUS]] {
        assert_eq!(world.reconcile_request(&changing).await, Ok(Action::AwaitChange));
        assert_eq!(world.asked.lines(), lines);
    }
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [STATUS, STATUS], "no change is on its way");
}

#[tokio::test(start_paused = true)]
async fn status_is_left_to_the_pass_that_sees_the_created_pods() {
    let world = World::accepting();
    world.sets.apply(set("web", 1, plain));
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    assert_eq!(world.asked.lines(), [CREATE]);
    let (key, uid) = World::key();
    world.controller.own_writes.expectations.creation_observed(&key, &uid);
    world.pods.apply(pod("made", Some("web"), plain));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [CREATE, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn failure_is_in_the_status_before_a_pass_that_follows_at_once() {
    let world = World::new(|_, asked| match asked.line.split(' ').next() {
        Some("POST") => refusal(403, "exceeded quota"),
        _ => Answer::Said(200, json!({"metadata": {"name": "web"}})),
    });
    world.sets.apply(set("web", 1, plain));
    let reconciled = world.reconcile_request(&request("web").requested_again()).await;
    assert!(reconciled.is_err(), "{reconciled:?}");
    assert_eq!(world.asked.lines(), [CREATE, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn status_is_not_left_if_the_next_pass_may_precede_the_caches() {
    let mut world = World::accepting();
    world.controller.compare_versions = false;
    world.sets.apply(set("web", 0, plain));
    let reconciled = world.reconcile_request(&request("web").requested_again()).await;
    assert_eq!(reconciled, Ok(Action::AwaitChange));
    assert_eq!(world.asked.lines(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn created_pods_count_later_if_a_pass_may_precede_them() {
    let mut world = World::accepting();
    world.controller.compare_versions = false;
    world.sets.apply(set("web", 3, plain));
    world.pods.apply(pod("a", Some("web"), plain));
    world.pass("web").await;
    assert_eq!(world.asked.all()[2].body["status"]["replicas"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn pass_with_awaited_writes_creates_nothing_and_writes_the_status() {
    let world = World::accepting();
    world.sets.apply(set("web", 3, plain));
    let (key, uid) = World::key();
    let expected = world.controller.own_writes.expectations.expect_creations(&key, &uid, 3);
    (0..3).for_each(|_| expected.start().sent());
    assert_eq!(world.reconcile("web").await, Ok(Action::Postpone(FIRST_LOOK)));
    assert_eq!(world.asked.lines(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn writes_that_the_server_does_not_have_are_repeated() {
    let world = World::accepting();
    let status = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    world.sets.apply(set("web", 1, |set| set["status"] = status));
    let (key, uid) = World::key();
    world.controller.own_writes.expectations.expect_creations(&key, &uid, 1).start().sent();
    world.pass("web").await;
    assert!(world.asked.lines().is_empty());
    tokio::time::sleep(FIRST_LOOK).await;
    world.pass("web").await;
    assert_eq!(world.asked.lines(), ["GET /api/v1/namespaces/shop/pods", CREATE]);
}

#[tokio::test(start_paused = true)]
async fn writes_that_the_server_has_are_waited_for() {
    let list = json!({"items": [{"metadata": {
        "name": "lost", "uid": "lost", "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                             "uid": "uid-web", "controller": true}]}}]});
    let world = World::new(move |_, _| Answer::Said(200, list.clone()));
    let status = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    world.sets.apply(set("web", 1, |set| set["status"] = status));
    let (key, uid) = World::key();
    world.controller.own_writes.expectations.expect_creations(&key, &uid, 1).start().sent();
    world.pass("web").await;
    tokio::time::sleep(FIRST_LOOK).await;
    let wait = Action::Postpone(2 * FIRST_LOOK);
    assert_eq!(world.reconcile("web").await, Ok(wait));
    assert_eq!(world.asked.lines(), ["GET /api/v1/namespaces/shop/pods"]);
    world.controller.own_writes.expectations.creation_observed(&key, &uid);
    let mut shown = pod("lost", Some("web"), plain);
    shown.metadata.uid = Some("lost".to_owned());
    world.pods.apply(shown);
    world.pass("web").await;
    assert_eq!(world.asked.lines().len(), 2, "settled: the status, and no pod");
}

#[tokio::test(start_paused = true)]
async fn foreign_pod_that_does_not_decode_prevents_no_comparison() {
    let pod = |owner: &str| {
        json!({"spec": {"initContainers": 5}, "metadata": {
            "name": "bad", "uid": "bad", "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner,
                                 "uid": format!("uid-{owner}"), "controller": true}]}})
    };
    let list = "GET /api/v1/namespaces/shop/pods";
    for (owner, expected) in [("other", vec![list, CREATE]), ("web", vec![list])] {
        let items = json!({"items": [pod(owner)]});
        let world = World::new(move |_, asked| match asked.line.as_str() {
            CREATE => Answer::Said(201, json!({"metadata": {"name": "made"}})),
            _ => Answer::Said(200, items.clone()),
        });
        let status = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
        world.sets.apply(set("web", 1, |set| set["status"] = status));
        let (key, uid) = World::key();
        world.controller.own_writes.expectations.expect_creations(&key, &uid, 1).start().sent();
        world.pass("web").await;
        tokio::time::sleep(FIRST_LOOK).await;
        world.pass("web").await;
        assert_eq!(world.asked.lines(), expected, "{owner}");
    }
}

#[tokio::test(start_paused = true)]
async fn pod_that_does_not_decode_stops_changes_of_its_owner() {
    let world = World::accepting();
    world.sets.apply(set("web", 3, plain));
    world.sets.apply(set("db", 0, |set| set["metadata"]["generation"] = json!(null)));
    world.pods.apply_opaque(pod("bad", Some("web"), plain).metadata);
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert_eq!(world.asked.lines(), [STATUS], "no pod is created");
    let condition = &world.asked.all()[0].body["status"]["conditions"][0];
    assert_eq!(condition["reason"], json!("UndecodablePods"));
    let message = "not creating or deleting pods: 1 of them cannot be decoded (bad)";
    assert_eq!(condition["message"], json!(message));
    assert_eq!(world.blocked.load(Ordering::Relaxed), 1, "the metric counts the pass");
    let recorded = async {
        while world.recorded.lines().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), recorded).await.unwrap();
    let event = &world.recorded.all()[0].body;
    assert_eq!(event["reason"], json!("UndecodablePods"));
    assert_eq!((&event["type"], &event["message"]), (&json!("Warning"), &json!(message)));
    world.pass("db").await;
    assert_eq!(world.asked.lines().len(), 2, "others go on");
    world
        .pods
        .apply(pod("bad", Some("web"), |pod| pod["metadata"]["resourceVersion"] = json!("6")));
    world.owes_the_status();
    world.pass("web").await;
    assert_eq!(world.asked.lines()[2..], [CREATE, CREATE, STATUS]);
    assert_eq!(world.asked.all()[4].body["status"].get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn replica_set_that_does_not_decode_keeps_its_expectations() {
    let world = World::accepting();
    world.sets.apply_opaque(set("web", 3, plain).metadata);
    let (key, uid) = World::key();
    world.controller.own_writes.expectations.expect_creations(&key, &uid, 1).start().sent();
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.controller.own_writes.expectations.outstanding(&key, &uid).is_some());
    assert!(world.asked.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn deleted_replica_set_is_forgotten() {
    let world = World::accepting();
    let (key, uid) = World::key();
    world.controller.own_writes.expectations.expect_creations(&key, &uid, 1).start().sent();
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.controller.own_writes.expectations.outstanding(&key, &uid).is_none());
}

#[tokio::test(start_paused = true)]
async fn unusable_selector_is_not_retried() {
    let world = World::accepting();
    world.sets.apply(set("web", 3, |set| {
        set["spec"]["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    }));
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.asked.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_claim_creates_nothing_and_writes_no_status() {
    let world = World::new(|_, _| refusal(500, "no answer"));
    world.sets.apply(set("web", 3, plain));
    world.pods.apply(pod("stray", None, plain));
    let error = world.reconcile("web").await.unwrap_err();
    assert!(error.starts_with("can't adopt Pod shop/stray"), "{error}");
    assert_eq!(world.asked.lines(), ["GET /apis/apps/v1/namespaces/shop/replicasets/web"]);
}

/// Upstream's `TestDoNotAdoptOrCreateIfBeingDeleted`.
#[tokio::test(start_paused = true)]
async fn replica_set_that_is_being_deleted_adopts_and_creates_nothing() {
    let world = World::accepting();
    world.sets.apply(set("web", 2, |set| {
        set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }));
    world.pods.apply(pod("stray", None, plain));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [STATUS]);
}

/// Upstream's `TestDoNotPatchPodWithOtherControlRef`.
#[tokio::test(start_paused = true)]
async fn selected_pod_of_another_controller_does_not_count() {
    let world = World::accepting();
    world.sets.apply(set("web", 2, plain));
    world.pods.apply(pod("theirs", Some("another"), |pod| {
        pod["metadata"]["labels"] = json!({"app": "web"});
    }));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [CREATE, CREATE]);
}

/// Upstream's `TestPatchPodFails`.
#[tokio::test(start_paused = true)]
async fn each_orphan_is_tried_before_a_failed_claim_ends_the_pass() {
    let world = World::new(|_, asked| match asked.line.split(' ').next() {
        Some("GET") => Answer::Said(200, json!({"metadata": {"uid": "uid-web"}})),
        _ => refusal(500, "fake error"),
    });
    world.sets.apply(set("web", 2, plain));
    for name in ["a", "b"] {
        world.pods.apply(pod(name, None, plain));
    }
    let error = world.reconcile("web").await.unwrap_err();
    assert_eq!(error.matches("fake error").count(), 2, "{error}");
    let mut lines = world.asked.lines();
    lines.sort();
    let get = "GET /apis/apps/v1/namespaces/shop/replicasets/web";
    let patch = |name: &str| format!("PATCH /api/v1/namespaces/shop/pods/{name}");
    assert_eq!(lines, [get.to_owned(), patch("a"), patch("b")]);
}

#[tokio::test(start_paused = true)]
async fn failed_create_is_written_to_the_status_and_returned() {
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
async fn failure_condition_stays_until_the_next_attempt_succeeds() {
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
    let waiting = world.reconcile("web").await;
    assert_eq!(waiting, Ok(Action::Postpone(FIRST_LOOK)), "the failure still counts");
    assert_eq!(world.asked.lines(), [CREATE, STATUS], "the pod may be there: nothing is said");
    tokio::time::sleep(FIRST_LOOK).await;
    world.owes_the_status();
    world.pass("web").await;
    assert_eq!(world.asked.lines()[2..], ["GET /api/v1/namespaces/shop/pods", CREATE, STATUS]);
    assert_eq!(world.asked.all()[4].body["status"].get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn status_write_is_retried_once_on_the_live_object() {
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
async fn status_of_a_recreated_replica_set_is_not_written() {
    let world = World::new(|_, asked| match asked.line.split(' ').next() {
        Some("GET") => Answer::Said(200, json!({"metadata": {"uid": "newer"}})),
        _ => refusal(409, "the object has been modified"),
    });
    world.sets.apply(set("web", 0, plain));
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert_eq!(world.asked.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pod_of_another_namespace_is_not_owned() {
    let world = World::accepting();
    world.sets.apply(set("web", 1, plain));
    world.pods.apply(pod("far", Some("web"), |pod| pod["metadata"]["namespace"] = json!("else")));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [CREATE]);
}

#[tokio::test(start_paused = true)]
async fn pod_on_the_node_with_most_sibling_pods_is_deleted() {
    let world = World::accepting();
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

fn deployed_by(uid: &str) -> impl FnOnce(&mut Value) + use<> {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": uid,
                        "controller": true}]);
    move |set| set["metadata"]["ownerReferences"] = owner
}

/// Upstream's `TestGetReplicaSetsWithSameController` and `TestRelatedPodsLookup`.
#[tokio::test(start_paused = true)]
async fn related_pods_are_those_that_a_set_of_the_same_controller_selects() {
    let world = World::accepting();
    let leaving = |set: &mut Value| {
        deployed_by("uid-old")(set);
        set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    };
    world.sets.apply(set("web", 1, deployed_by("uid-d")));
    world.sets.apply(set("newer", 1, deployed_by("uid-d")));
    world.sets.apply(set("twin", 1, |set| {
        deployed_by("uid-d")(set);
        set["spec"]["selector"]["matchLabels"] = json!({"app": "web"});
    }));
    world.sets.apply(set("stranger", 1, deployed_by("uid-other")));
    world.sets.apply(set("leaving", 1, leaving));
    world.sets.apply(set("alone", 1, plain));
    for (name, owner) in
        [("1", "web"), ("2", "web"), ("3", "newer"), ("4", "stranger"), ("5", "leaving")]
    {
        world.pods.apply(pod(name, Some(owner), plain));
    }
    world.pods.apply(pod("6", Some("web"), |pod| pod["metadata"]["namespace"] = json!("else")));
    let related = |name: &str| {
        let set = world.controller.caches.sets.get(&ObjectKey::namespaced("shop", name)).unwrap();
        let related = world.controller.related(&set);
        let mut names: Vec<_> =
            related.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(related("web"), ["1", "2", "3"], "each once, also with two sets that select it");
    assert_eq!(related("leaving"), ["5"]);
    assert_eq!(related("stranger"), ["4"]);
    assert!(related("alone").is_empty(), "no controller");
}

/// Upstream's `TestSyncReplicaSetDoesNothing`.
#[tokio::test(start_paused = true)]
async fn settled_replica_set_causes_no_request() {
    let world = World::accepting();
    let status = json!({"replicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1,
                        "terminatingReplicas": 0});
    world.sets.apply(set("web", 2, |set| set["status"] = status));
    for name in ["a", "b"] {
        world.pods.apply(pod(name, Some("web"), plain));
    }
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert!(world.asked.lines().is_empty());
}

/// The end of upstream's `TestSyncReplicaSetDormancy`.
#[tokio::test(start_paused = true)]
async fn refused_create_is_repeated_without_an_observation() {
    let world = World::new(|n, asked| match asked.line.split(' ').next() {
        Some("POST") if n == 0 => refusal(403, "no quota"),
        _ => Answer::Said(200, json!({"metadata": {"name": "made"}})),
    });
    world.sets.apply(set("web", 1, plain));
    world.reconcile("web").await.unwrap_err();
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [CREATE, STATUS, CREATE]);
}

/// Upstream's `TestRSSyncExpectations`.
#[tokio::test(start_paused = true)]
async fn pods_are_read_after_the_expectations() {
    let (sender, late) = std::sync::mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let late = parking_lot::Mutex::new(late);
    let world = World::new(move |_, asked| {
        if asked.line.starts_with("GET") {
            // The pod arrives between the check of the expectations and the count of pods.
            late.lock().recv().unwrap()();
        }
        Answer::Said(200, json!({"items": []}))
    });
    let status = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    world.sets.apply(set("web", 1, |set| set["status"] = status));
    let (key, uid) = World::key();
    world.controller.own_writes.expectations.expect_creations(&key, &uid, 1).start().sent();
    world.pass("web").await;
    tokio::time::sleep(FIRST_LOOK).await;
    let pods = Arc::clone(&world.pods);
    let arrive = move || pods.apply(pod("late", Some("web"), plain));
    sender.send(Box::new(arrive)).unwrap();
    world.pass("web").await;
    let lines = world.asked.lines();
    assert_eq!(lines, ["GET /api/v1/namespaces/shop/pods", STATUS], "no pod is created");
}

/// Upstream's `TestControllerBurstReplicas`.
#[tokio::test(start_paused = true)]
async fn burst_bounds_each_pass_and_one_unseen_write_blocks_the_next() {
    for (burst, replicas) in [(5, 30), (5, 12), (3, 2)] {
        let mut world = World::accepting();
        world.controller.rules.burst = burst;
        world.scale_in_bursts("10", replicas).await;
        world.scale_in_bursts("11", 0).await;
    }
}

impl World {
    fn alive(&self) -> usize {
        self.controller.caches.pods.len()
    }

    /// Stores `web` with `desired` replicas at `version`, and runs passes until it has them.
    async fn scale_in_bursts(&self, version: &str, desired: i32) {
        let at_version = |set: &mut Value| set["metadata"]["resourceVersion"] = json!(version);
        self.sets.apply(set("web", desired, at_version));
        let desired = usize::try_from(desired).unwrap();
        while self.alive() != desired {
            let expected = self.alive().abs_diff(desired).min(self.controller.rules.burst);
            self.burst(expected).await;
        }
    }

    /// Runs a pass that must make `expected` writes, and shows them to the cache: all but one, then
    /// the last.
    async fn burst(&self, expected: usize) {
        let (key, uid) = Self::key();
        let before = self.asked.all().len();
        self.pass("web").await;
        let asked = self.asked.all().split_off(before);
        let writes: Vec<_> = asked.iter().filter(|asked| asked.line != STATUS).collect();
        assert_eq!(writes.len(), expected);
        for (index, write) in writes.iter().enumerate() {
            if index + 1 == writes.len() {
                let before = self.asked.all().len();
                self.pass("web").await;
                let asked = self.asked.all().split_off(before);
                assert!(asked.iter().all(|asked| asked.line == STATUS), "one write is not seen");
            }
            let expectations = &self.controller.own_writes.expectations;
            if let Some(name) = write.line.strip_prefix("DELETE /api/v1/namespaces/shop/pods/") {
                let deleted = Uid::from(format!("uid-{name}").as_str());
                expectations.deletion_observed(&key, &uid, &deleted);
                self.pods.delete(pod(name, Some("web"), plain));
            } else {
                self.pods.apply(pod(&format!("web-{}", self.alive()), Some("web"), plain));
                expectations.creation_observed(&key, &uid);
            }
        }
    }
}

/// Upstream's `TestReplicaSetAvailabilityCheck`.
#[tokio::test(start_paused = true)]
async fn pass_is_repeated_when_the_next_pod_becomes_available() {
    let world = World::accepting();
    world.sets.apply(set("web", 4, |set| set["spec"]["minReadySeconds"] = json!(5)));
    let conditions = |time: &str| {
        json!([{"type": "Ready", "status": "True",
                "lastTransitionTime": format!("2026-06-01T{time}")}])
    };
    world.pods.apply(pod("unready", Some("web"), plain));
    for time in ["12:00:00Z", "11:59:58Z", "11:59:55.7Z"] {
        let ready = |pod: &mut Value| pod["status"]["conditions"] = conditions(time);
        world.pods.apply(pod(&format!("since-{time}"), Some("web"), ready));
    }
    let next = Action::RequeueAfter(Duration::from_millis(700));
    assert_eq!(world.reconcile("web").await, Ok(next));
    let status = &world.asked.all()[0].body["status"];
    assert_eq!((&status["readyReplicas"], status.get("availableReplicas")), (&json!(3), None));
}

fn terminate(pod: &mut Value, label: &str) {
    pod["metadata"]["labels"] = json!({"app": label});
    pod["metadata"]["deletionTimestamp"] = json!("2026-06-01T11:00:00Z");
}

/// Upstream's `TestClaimedPodFiltering`: pods that are being deleted count if they are claimed.
#[tokio::test(start_paused = true)]
async fn terminating_pods_count_if_owner_and_selector_match() {
    let other = |controller: Option<bool>| {
        json!({"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o",
               "controller": controller})
    };
    let own = |controller: Option<bool>| {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web",
               "controller": controller})
    };
    let world = World::accepting();
    world.sets.apply(set("web", 0, plain));
    let mut index = 0;
    for before in [vec![], vec![other(Some(false))], vec![other(None)]] {
        for (label, owner) in [
            ("web", Some(own(Some(true)))),
            ("db", Some(own(Some(true)))),
            ("web", Some(own(None))),
            ("web", Some(own(Some(false)))),
            ("web", Some(other(Some(true)))),
            ("web", None),
        ] {
            index += 1;
            let owners: Vec<_> = before.iter().cloned().chain(owner).collect();
            let mut dying = pod(&format!("pod-{index}"), None, |pod| terminate(pod, label));
            dying.metadata.owner_references = serde_json::from_value(json!(owners)).unwrap();
            world.pods.apply(dying);
        }
    }
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [STATUS], "nothing is adopted or released");
    assert_eq!(world.asked.all()[0].body["status"]["terminatingReplicas"], json!(3));
}

/// Upstream's `TestFilterPodsByOwner`.
#[tokio::test(start_paused = true)]
async fn owned_pods_and_orphans_are_found_by_owner_and_namespace() {
    let world = World::accepting();
    let with = |key: &'static str, value: Value| {
        move |pod: &mut Value| pod["metadata"]["ownerReferences"][0][key] = value
    };
    let far = |pod: &mut Value| pod["metadata"]["namespace"] = json!("else");
    world.pods.apply(pod("orphan", None, plain));
    world.pods.apply(pod("far-orphan", None, far));
    world.pods.apply(pod("owned", Some("web"), plain));
    world.pods.apply(pod("far-owned", Some("web"), far));
    world.pods.apply(pod("other-uid", Some("web"), with("uid", json!("other"))));
    world.pods.apply(pod("other-kind", Some("web"), with("kind", json!("Job"))));
    world.pods.apply(pod("other-name", Some("web"), with("name", json!("db"))));
    world.pods.apply(pod("no-controller", Some("web"), with("controller", json!(false))));
    let names = |pods: &Snapshot<Pod>| {
        let mut names: Vec<_> = pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
        names.sort();
        names
    };
    let caches = &world.controller.caches;
    let owned = caches.owned.get(&owner_name(Some("shop"), "web", "uid-web"));
    assert_eq!(names(&owned), ["owned"]);
    assert_eq!(names(&caches.orphans.get("shop")), ["no-controller", "orphan"]);
}

#[tokio::test(start_paused = true)]
async fn lost_reply_is_checked_in_time_while_statuses_are_written() {
    let world = World::new(|n, asked| match asked.line.split(' ').next() {
        Some("GET") => Answer::Said(200, json!({"items": []})),
        _ => Answer::Said(200, json!({"metadata": {"resourceVersion": (12 + n).to_string()}})),
    });
    world.reached(&group_resource::<Kind>(), "10", &[]);
    world.sets.apply(set("web", 2, plain));
    let (key, uid) = World::key();
    world.controller.own_writes.expectations.expect_creations(&key, &uid, 1).start().sent();
    let start = tokio::time::Instant::now();
    for version in 12..15 {
        // Another pod that comes and goes.
        let name = format!("pod-{version}");
        world.pods.apply(pod(&name, Some("web"), |pod| {
            pod["metadata"]["resourceVersion"] = json!(version.to_string());
        }));
        let left = FIRST_LOOK.saturating_sub(start.elapsed());
        assert_eq!(world.reconcile("web").await, Ok(Action::Postpone(left)));
        world.reached(&group_resource::<Kind>(), &version.to_string(), &[]);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(world.asked.lines(), [STATUS; 3]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.pass("web").await;
    assert_eq!(world.asked.lines()[3], "GET /api/v1/namespaces/shop/pods");
}

#[tokio::test(start_paused = true)]
async fn lost_reply_is_checked_in_time_after_a_failed_pass() {
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
    world.reached(&group_resource::<Kind>(), "10", &[]);
    world.reached(&pods_resource(), "10", &[]);
    world
}

impl World {
    /// Reports that the cache shows `version`, and checks the keys that this wakes.
    fn reached(&self, resource: &GroupResource, version: &str, woken: &[&str]) {
        let keys = self.controller.own_writes.consistency.reached(resource, version);
        let keys: Vec<_> = keys.iter().map(|key| key.name().to_owned()).collect();
        assert_eq!(keys, woken);
    }
}

#[tokio::test(start_paused = true)]
async fn own_status_write_is_waited_for() {
    let world = writing_at_12(|_| None);
    world.sets.apply(set("web", 0, plain));
    world.pass("web").await;
    assert_eq!(world.asked.lines(), [STATUS]);
    assert_eq!(world.reconcile("web").await, Ok(Action::Postpone(FIRST_LOOK)));
    world.sets.apply(set("web", 0, |set| {
        set["metadata"]["resourceVersion"] = json!("12");
        set["status"] = json!({"replicas": 0, "observedGeneration": 1, "terminatingReplicas": 0});
    }));
    world.reached(&group_resource::<Kind>(), "12", &["web"]);
    assert_eq!(world.reconcile("web").await, Ok(Action::AwaitChange));
    assert_eq!(world.asked.lines(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn own_pods_are_waited_for_and_then_the_server_is_asked() {
    let live = json!({"items": [{"metadata": {
        "name": "made", "uid": "uid-made", "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                             "uid": "uid-web", "controller": true}]}}]});
    let world = writing_at_12(move |asked| asked.line.starts_with("GET").then(|| live.clone()));
    world.sets.apply(set("web", 1, plain));
    world.owes_the_status();
    assert_eq!(world.reconcile("web").await, Ok(Action::RequeueAfter(FIRST_LOOK)));
    assert_eq!(world.asked.lines(), [CREATE, STATUS]);
    world.reached(&group_resource::<Kind>(), "12", &[]);
    assert_eq!(world.reconcile("web").await, Ok(Action::Postpone(FIRST_LOOK)));
    tokio::time::sleep(FIRST_LOOK).await;
    assert_eq!(world.reconcile("web").await, Ok(Action::Postpone(2 * FIRST_LOOK)));
    let pods = "GET /api/v1/namespaces/shop/pods";
    assert_eq!(world.asked.lines()[2..], [pods], "it has a pod that the cache does not show");
    world.pods.apply(pod("made", Some("web"), plain));
    tokio::time::sleep(2 * FIRST_LOOK).await;
    world.pass("web").await;
    assert_eq!(world.asked.lines()[3..], [pods, STATUS], "asked once, and there is a pod by now");
    assert!(world.controller.own_writes.expectations.satisfied(&World::key().0, &World::key().1));
}

#[tokio::test(start_paused = true)]
async fn replica_set_that_stays_late_is_compared_with_the_server() {
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
