use homeostat::EventRecorder;
use homeostat::kube_client::{Client, Config};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use serde_json::{Value, json};
use std::sync::Arc;

use super::*;
use crate::scripted_server::{self, Answer, Asked, Log, refusal, web};
use crate::workload::ReplicaSet;

/// A controller's surroundings, with a scripted server.
struct World {
    requests: Requests,
    asked: Log,
    recorder: EventRecorder,
    recorded: Log,
    expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
}

impl World {
    fn new(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let (client, asked) = scripted_server::server(answer);
        Self::with_client(client, asked)
    }

    fn with_client(client: Client, asked: Log) -> Self {
        let (events, recorded) =
            scripted_server::server(|_, asked| Answer::Said(201, asked.body.clone()));
        Self {
            requests: Requests::new(client),
            asked,
            recorder: EventRecorder::new(events, Kind::COMPONENT),
            recorded,
            expectations: UidTrackingExpectations::default(),
        }
    }

    async fn create(&self, set: &ReplicaSet, count: usize) -> Result<(), ScaleError> {
        let kind = Kind { metadata: set.metadata.clone(), ..Kind::default() };
        let refs = ControllerRefs::new(&kind).unwrap();
        let (key, uid, events) = (set.key(), set.uid(), Events::new(self.recorder.clone()));
        self.scale(set, (&key, &uid), &events).create(&refs, count).await.result
    }

    async fn delete(&self, set: &ReplicaSet, names: &[&str]) -> Result<(), ScaleError> {
        let pods = names.iter().map(|name| Arc::new(pod(name))).collect();
        let (key, uid, events) = (set.key(), set.uid(), Events::new(self.recorder.clone()));
        let surplus = Surplus { pods, ranked: false };
        self.scale(set, (&key, &uid), &events).delete(&surplus).await.result
    }

    fn scale<'a>(
        &'a self,
        set: &'a ReplicaSet,
        (key, uid): (&'a ObjectKey<Kind>, &'a Uid),
        events: &'a Events,
    ) -> Scale<'a, Kind> {
        let Self { requests, expectations, .. } = self;
        Scale { requests, events, expectations, key, uid, set, created: &|_| () }
    }

    fn outstanding(&self, set: &ReplicaSet) -> (i64, i64) {
        let outstanding = self.expectations.outstanding(&set.key(), &set.uid());
        outstanding.map_or((0, 0), |it| (it.creations, it.deletions))
    }

    /// Returns the recorded events as type, reason and message.
    async fn events(self) -> Vec<(String, String, String)> {
        self.recorder.shut_down().await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let posted = self.recorded.all().into_iter().filter(|asked| asked.line.starts_with("POST"));
        posted
            .map(|asked| {
                (
                    text(&asked.body["type"]),
                    text(&asked.body["reason"]),
                    text(&asked.body["message"]),
                )
            })
            .collect()
    }
}

fn pod(name: &str) -> Pod {
    let value =
        json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")}});
    serde_json::from_str(&value.to_string()).unwrap()
}

fn created(n: usize) -> Answer {
    Answer::Said(201, json!({"metadata": {"name": format!("web-{n}"), "uid": format!("u{n}")}}))
}

fn event(of_type: &str, reason: &str, message: &str) -> (String, String, String) {
    (of_type.to_owned(), reason.to_owned(), message.to_owned())
}

#[tokio::test(start_paused = true)]
async fn each_pod_is_created_and_expected() {
    let world = World::new(|n, _| created(n));
    let set = web(3);
    world.create(&set, 3).await.unwrap();
    assert_eq!(world.asked.lines(), ["POST /api/v1/namespaces/shop/pods"; 3]);
    let asked = world.asked.all();
    assert!(asked.iter().all(|one| one.text == asked[0].text), "the same bytes each time");
    assert_eq!(asked[0].body["metadata"]["generateName"], json!("web-"));
    assert_eq!(asked[0].body["metadata"]["ownerReferences"][0]["uid"], json!("owner"));
    assert_eq!(world.outstanding(&set), (3, 0));
    let created = |n| event("Normal", "SuccessfulCreate", &format!("Created pod: web-{n}"));
    assert_eq!(world.events().await, [created(0), created(1), created(2)]);
}

#[tokio::test(start_paused = true)]
async fn quota_stops_the_batches_and_skipped_pods_are_not_expected() {
    let why = "pods \"web-x\" is forbidden: exceeded quota";
    let world = World::new(move |n, _| if n < 5 { created(n) } else { refusal(403, why) });
    let set = web(100);
    let error = world.create(&set, 100).await.unwrap_err();
    assert_eq!(error.to_string(), why);
    assert_eq!(world.asked.all().len(), 1 + 2 + 4);
    assert_eq!(world.outstanding(&set), (5, 0));
    let events = world.events().await;
    assert_eq!(events.len(), 6, "the second failure is a count on the first");
    let failed = event("Warning", "FailedCreate", &format!("Error creating: {why}"));
    assert!(events.contains(&failed), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn pod_stays_expected_after_a_lost_reply_or_a_server_error() {
    for code in [None, Some(500), Some(504), Some(408)] {
        let world = World::new(move |n, _| match (n, code) {
            (0, _) => created(0),
            (1, None) => Answer::Lost,
            (1, Some(code)) => refusal(code, "unknown outcome"),
            _ => created(n),
        });
        let set = web(10);
        world.create(&set, 10).await.unwrap_err();
        assert_eq!(world.asked.all().len(), 3, "the batch is the last");
        assert_eq!(world.outstanding(&set), (3, 0), "{code:?}");
    }
}

#[tokio::test]
async fn pod_is_not_expected_if_the_request_was_not_sent() {
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let client = homeostat::client::builder().config(config).unwrap().build();
    let world = World::with_client(client, Log::default());
    let set = web(10);
    let error = world.create(&set, 10).await.unwrap_err().to_string();
    assert!(error.contains("http://127.0.0.1:1"), "{error}");
    assert_eq!(world.outstanding(&set), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn terminating_namespace_stops_the_creates_without_an_error() {
    let world = World::new(|_, _| {
        let Answer::Said(code, mut status) = refusal(403, "because it is being terminated") else {
            return Answer::Lost;
        };
        status["details"] = json!({"causes": [{"reason": "NamespaceTerminating"}]});
        Answer::Said(code, status)
    });
    let set = web(10);
    world.create(&set, 10).await.unwrap();
    assert_eq!(world.asked.all().len(), 1, "asked once is enough");
    assert_eq!(world.outstanding(&set), (0, 0));
    assert!(world.events().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn template_without_labels_is_refused_before_any_request() {
    let world = World::new(|n, _| created(n));
    let set = json!({"metadata": {"namespace": "shop", "name": "web", "uid": "owner"}});
    let set: ReplicaSet = serde_json::from_str(&set.to_string()).unwrap();
    let error = world.create(&set, 2).await.unwrap_err();
    assert_eq!(error.to_string(), "unable to create pods, no labels");
    assert!(world.asked.all().is_empty());
    assert_eq!(world.outstanding(&set), (0, 0));
    assert!(world.events().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pods_are_deleted_by_name_and_uid() {
    let world = World::new(|_, _| Answer::Said(200, json!({})));
    let set = web(0);
    world.delete(&set, &["a", "b"]).await.unwrap();
    let path = "DELETE /api/v1/namespaces/shop/pods";
    assert_eq!(world.asked.lines(), [format!("{path}/a"), format!("{path}/b")]);
    assert_eq!(world.asked.all()[0].body["preconditions"], json!({"uid": "uid-a"}));
    assert_eq!(world.outstanding(&set), (0, 2));
    let deleted = |name| event("Normal", "SuccessfulDelete", &format!("Deleted pod: {name}"));
    assert_eq!(world.events().await, [deleted("a"), deleted("b")]);
}

#[tokio::test(start_paused = true)]
async fn delete_of_a_missing_or_replaced_pod_is_a_success() {
    let replaced = "Precondition failed: UID in precondition: 1, UID in object meta: 2";
    for (code, message) in [(404, "gone"), (409, replaced)] {
        let world = World::new(move |_, _| refusal(code, message));
        let set = web(0);
        world.delete(&set, &["a", "b"]).await.unwrap();
        assert_eq!(world.outstanding(&set), (0, 0));
        assert!(world.events().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn delete_that_a_webhook_denies_with_409_is_an_error() {
    let world = World::new(|_, _| refusal(409, "admission webhook denied the request"));
    let set = web(0);
    let error = world.delete(&set, &["a"]).await.unwrap_err();
    assert!(error.to_string().contains("denied the request"), "{error}");
    assert_eq!(world.outstanding(&set), (0, 0));
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn refused_delete_is_an_error_and_an_unanswered_one_stays_expected() {
    let world = World::new(|_, asked| match asked.line.as_bytes().last() {
        Some(b'a') => refusal(403, "not yours"),
        Some(b'b') => Answer::Lost,
        _ => Answer::Said(200, json!({})),
    });
    let set = web(0);
    let error = world.delete(&set, &["a", "b", "c"]).await.unwrap_err();
    assert!(error.to_string().starts_with("unable to delete pods: "), "{error}");
    assert_eq!(world.outstanding(&set), (0, 2), "b and c");
    let events = world.events().await;
    assert!(events.contains(&event("Warning", "FailedDelete", "Error deleting: not yours")));
    assert_eq!(events.len(), 3);
}
