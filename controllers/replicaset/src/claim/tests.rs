use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use serde_json::{Value, json};

use super::*;
use crate::script::{self, Answer, Asked, Log, refusal, web};

const GET: &str = "GET /apis/apps/v1/namespaces/shop/replicasets/web";

fn pod(name: &str, owner: Option<&str>, app: &str) -> Arc<Pod> {
    let mut value = json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"),
                                        "labels": {"app": app}}});
    if let Some(uid) = owner {
        value["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true}]);
    }
    Arc::new(serde_json::from_str(&value.to_string()).unwrap())
}

fn patch(name: &str) -> String {
    format!("PATCH /api/v1/namespaces/shop/pods/{name}")
}

async fn claim(
    pods: Vec<Arc<Pod>>,
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Result<Vec<String>, Vec<String>>, Log) {
    let (client, log) = script::server(move |_, asked| answer(asked));
    let (requests, set) = (Requests::new(client), web(3));
    let kind = Kind { metadata: set.metadata.clone(), ..Kind::default() };
    let refs = ControllerRefs::new(&kind).unwrap();
    let claimed = Claims::new(&requests, &set, &refs, &|_| ()).claim(pods).await;
    let name = |pod: Arc<Pod>| pod.metadata.name.clone().unwrap();
    let claimed = claimed.map(|pods| pods.into_iter().map(name).collect());
    (claimed.map_err(|errors| errors.iter().map(ToString::to_string).collect()), log)
}

fn live(asked: &Asked) -> Answer {
    let body = if asked.line == GET { json!({"metadata": {"uid": "owner"}}) } else { Value::Null };
    Answer::Said(200, body)
}

#[tokio::test(start_paused = true)]
async fn what_is_ours_counts_and_nothing_is_sent() {
    let pods = vec![
        pod("mine", Some("owner"), "web"),
        pod("theirs", Some("other"), "web"),
        pod("stray", None, "db"),
    ];
    let (claimed, log) = claim(pods, |_| panic!("nothing to ask")).await;
    assert_eq!(claimed.unwrap(), ["mine"]);
    assert!(log.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn orphans_are_adopted_after_one_look_at_the_live_owner() {
    let (claimed, log) = claim(vec![pod("a", None, "web"), pod("b", None, "web")], live).await;
    assert_eq!(claimed.unwrap(), ["a", "b"]);
    assert_eq!(log.lines(), [GET.to_owned(), patch("a"), patch("b")]);
    assert_eq!(
        log.all()[1].text,
        concat!(
            r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","#,
            r#""uid":"owner","controller":true,"blockOwnerDeletion":true}],"uid":"uid-a"}}"#
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_selected_is_released() {
    let (claimed, log) = claim(vec![pod("a", Some("owner"), "db")], live).await;
    assert_eq!(claimed.unwrap(), Vec::<String>::new());
    assert_eq!(log.lines(), [patch("a")]);
    assert_eq!(
        log.all()[0].text,
        r#"{"metadata":{"uid":"uid-a","ownerReferences":[{"$patch":"delete","uid":"owner"}]}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_went_away_meanwhile_is_nobodys_problem() {
    let gone = |asked: &Asked| if asked.line == GET { live(asked) } else { refusal(404, "gone") };
    let (claimed, _) =
        claim(vec![pod("a", None, "web"), pod("b", Some("owner"), "db")], gone).await;
    assert!(claimed.unwrap().is_empty());
    let (claimed, _) =
        claim(vec![pod("b", Some("owner"), "db")], |_| refusal(422, "no such owner")).await;
    assert!(claimed.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_gone_adopts_nothing() {
    let another = |_: &Asked| Answer::Said(200, json!({"metadata": {"uid": "newer"}}));
    let (claimed, log) = claim(vec![pod("a", None, "web"), pod("b", None, "web")], another).await;
    let why = "can't recheck DeletionTimestamp: original ReplicaSet shop/web is gone: got uid newer, wanted owner";
    assert_eq!(
        claimed.unwrap_err(),
        [
            format!("can't adopt Pod shop/a (uid-a): {why}"),
            format!("can't adopt Pod shop/b (uid-b): {why}"),
        ]
    );
    assert_eq!(log.lines(), [GET], "asked once");

    let leaving = |_: &Asked| {
        Answer::Said(
            200,
            json!({"metadata": {"uid": "owner", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        )
    };
    let (claimed, _) = claim(vec![pod("a", None, "web")], leaving).await;
    assert_eq!(
        claimed.unwrap_err(),
        ["can't adopt Pod shop/a (uid-a): shop/web has just been deleted at 2026-01-01T00:00:00Z"]
    );

    let (claimed, _) = claim(vec![pod("a", None, "web")], |_| refusal(404, "no web")).await;
    assert_eq!(
        claimed.unwrap_err(),
        ["can't adopt Pod shop/a (uid-a): can't recheck DeletionTimestamp: no web"]
    );
}

#[tokio::test(start_paused = true)]
async fn all_pods_are_tried_and_any_error_leaves_nothing_claimed() {
    let fails = |asked: &Asked| match asked.line.as_bytes().last() {
        Some(b'a') => refusal(422, "recreated under the same name"),
        Some(b'c') => Answer::Lost,
        _ => live(asked),
    };
    let pods = vec![
        pod("a", None, "web"),
        pod("mine", Some("owner"), "web"),
        pod("c", Some("owner"), "db"),
    ];
    let (claimed, log) = claim(pods, fails).await;
    let errors = claimed.unwrap_err();
    assert_eq!(errors.len(), 2);
    assert_eq!(
        errors[0],
        "failed to patch the owner of Pod shop/a (uid-a): recreated under the same name"
    );
    assert_eq!(log.lines(), [GET.to_owned(), patch("a"), patch("c")]);
}
