use homeostat::EventRecorder;
use homeostat::kube_client::{Client, Config};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use serde_json::{Value, json};
use std::sync::Arc;

use super::*;
use crate::events::COMPONENT;
use crate::script::{self, Answer, Asked, Log, refusal, web};

/// A controller's surroundings, with a server that answers as told.
struct World {
    requests: Requests,
    asked: Log,
    recorder: EventRecorder,
    recorded: Log,
    expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
}

impl World {
    fn new(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let (client, asked) = script::server(answer);
        Self::with_client(client, asked)
    }

    fn with_client(client: Client, asked: Log) -> Self {
        let (events, recorded) = script::server(|_, asked| Answer::Said(201, asked.body.clone()));
        Self {
            requests: Requests::new(client),
            asked,
            recorder: EventRecorder::new(events, COMPONENT),
            recorded,
            expectations: UidTrackingExpectations::default(),
        }
    }

    async fn create(&self, set: &ReplicaSet, count: usize) -> Result<(), ScaleError> {
        let kind = Kind { metadata: set.metadata.clone(), ..Kind::default() };
        let refs = ControllerRefs::new(&kind).unwrap();
        let (key, uid, events) = (set.key(), set.uid(), Events::new(self.recorder.clone()));
        self.scale(set, (&key, &uid), &events).create(&refs, count).await
    }

    async fn delete(&self, set: &ReplicaSet, names: &[&str]) -> Result<(), ScaleError> {
        let pods = names.iter().map(|name| Arc::new(pod(name))).collect();
        let (key, uid, events) = (set.key(), set.uid(), Events::new(self.recorder.clone()));
        let surplus = Surplus { pods, ranked: false };
        self.scale(set, (&key, &uid), &events).delete(&surplus).await
    }

    fn scale<'a>(
        &'a self,
        set: &'a ReplicaSet,
        (key, uid): (&'a ObjectKey<Kind>, &'a Uid),
        events: &'a Events,
    ) -> Scale<'a> {
        let Self { requests, expectations, .. } = self;
        Scale { requests, events, expectations, key, uid, set, made: &|_| () }
    }

    fn outstanding(&self, set: &ReplicaSet) -> (i64, i64) {
        let outstanding = self.expectations.outstanding(&set.key(), &set.uid());
        outstanding.map_or((0, 0), |it| (it.creations, it.deletions))
    }

    /// What was recorded, as type, reason, message.
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

fn made(n: usize) -> Answer {
    Answer::Said(201, json!({"metadata": {"name": format!("web-{n}"), "uid": format!("u{n}")}}))
}

fn event(of_type: &str, reason: &str, message: &str) -> (String, String, String) {
    (of_type.to_owned(), reason.to_owned(), message.to_owned())
}

#[tokio::test(start_paused = true)]
async fn every_pod_is_asked_for_and_expected() {
    let world = World::new(|n, _| made(n));
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
async fn a_quota_stops_the_batches_and_what_was_not_made_is_not_expected() {
    let why = "pods \"web-x\" is forbidden: exceeded quota";
    let world = World::new(move |n, _| if n < 5 { made(n) } else { refusal(403, why) });
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
async fn a_lost_reply_and_a_server_error_leave_the_pod_expected() {
    for code in [None, Some(500), Some(504), Some(408)] {
        let world = World::new(move |n, _| match (n, code) {
            (0, _) => made(0),
            (1, None) => Answer::Lost,
            (1, Some(code)) => refusal(code, "who knows"),
            _ => made(n),
        });
        let set = web(10);
        world.create(&set, 10).await.unwrap_err();
        assert_eq!(world.asked.all().len(), 3, "the batch is the last");
        assert_eq!(world.outstanding(&set), (3, 0), "{code:?}");
    }
}

#[tokio::test]
async fn a_request_that_never_left_leaves_nothing_expected() {
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let client = homeostat::client::builder().config(config).unwrap().build();
    let world = World::with_client(client, Log::default());
    let set = web(10);
    let error = world.create(&set, 10).await.unwrap_err().to_string();
    assert!(error.contains("http://127.0.0.1:1"), "{error}");
    assert_eq!(world.outstanding(&set), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn in_a_namespace_that_goes_away_nothing_is_made_and_nothing_is_wrong() {
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
async fn a_template_without_labels_is_refused_before_any_request() {
    let world = World::new(|n, _| made(n));
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
async fn a_pod_that_is_gone_or_another_by_now_is_as_good_as_deleted() {
    for code in [404, 409] {
        let world = World::new(move |_, _| refusal(code, "gone"));
        let set = web(0);
        world.delete(&set, &["a", "b"]).await.unwrap();
        assert_eq!(world.outstanding(&set), (0, 0));
        assert!(world.events().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_delete_is_told_and_an_unanswered_one_stays_expected() {
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
