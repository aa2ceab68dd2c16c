use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::scripted_server::{Answer, Asked, Log, refusal, server};

const GET: &str = "GET /apis/apps/v1/namespaces/shop/replicasets/web";

fn pod(name: &str, owner: Option<&str>, app: &str) -> Arc<Pod> {
    let uid = format!("uid-{name}");
    let mut value = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": uid, "labels": {"app": app}},
    });
    if let Some(uid) = owner {
        value["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid,
            "controller": true,
        }]);
    }
    Arc::new(serde_json::from_value(value).unwrap())
}

fn patch(name: &str) -> String {
    format!("PATCH /api/v1/namespaces/shop/pods/{name}")
}

/// Claims `pods` for the set `web`, which selects the label `app=web`.
async fn claim(
    pods: Vec<Arc<Pod>>,
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Result<Vec<String>, Vec<String>>, Log) {
    let (client, log) = server(answer);
    let mut set = ReplicaSet::default();
    set.metadata.namespace = Some("shop".into());
    set.metadata.name = Some("web".into());
    set.metadata.uid = Some("owner".into());
    let mut refs = RefManager::new(&client, &set).unwrap();
    let is_web =
        |pod: &Pod| pod.metadata.labels.as_ref().is_some_and(|labels| labels["app"] == "web");
    let claimed = refs.claim(pods, is_web).await;
    let name = |pod: Arc<Pod>| pod.metadata.name.clone().unwrap();
    let claimed = claimed.map(|pods| pods.into_iter().map(name).collect());
    let texts = |errors: ClaimErrors| errors.0.iter().map(ToString::to_string).collect();
    (claimed.map_err(texts), log)
}

fn live(asked: &Asked) -> Answer {
    let uid = if asked.line == GET { json!("owner") } else { Value::Null };
    Answer::Said(200, json!({"metadata": {"uid": uid}}))
}

#[tokio::test(start_paused = true)]
async fn owned_pods_count_and_nothing_is_sent() {
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
async fn orphans_are_adopted_after_one_read_of_the_live_owner() {
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
async fn pod_that_is_no_longer_selected_is_released() {
    let (claimed, log) = claim(vec![pod("a", Some("owner"), "db")], live).await;
    assert_eq!(claimed.unwrap(), Vec::<String>::new());
    assert_eq!(log.lines(), [patch("a")]);
    assert_eq!(
        log.all()[0].text,
        r#"{"metadata":{"uid":"uid-a","ownerReferences":[{"$patch":"delete","uid":"owner"}]}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn pod_that_is_gone_by_the_patch_is_no_error() {
    let gone = |asked: &Asked| if asked.line == GET { live(asked) } else { refusal(404, "gone") };
    let (claimed, _) =
        claim(vec![pod("a", None, "web"), pod("b", Some("owner"), "db")], gone).await;
    assert!(claimed.unwrap().is_empty());
    let (claimed, _) =
        claim(vec![pod("b", Some("owner"), "db")], |_| refusal(422, "no such owner")).await;
    assert!(claimed.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn deleted_owner_adopts_nothing() {
    let another = |_: &Asked| Answer::Said(200, json!({"metadata": {"uid": "newer"}}));
    let (claimed, log) = claim(vec![pod("a", None, "web"), pod("b", None, "web")], another).await;
    let why = "can't recheck DeletionTimestamp: original ReplicaSet shop/web is gone: got uid \
               newer, wanted owner";
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
async fn all_pods_are_tried_and_an_error_fails_the_claim() {
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

#[tokio::test(start_paused = true)]
async fn each_patched_object_is_reported_with_its_new_version() {
    let (client, _) = server(|asked| match asked.line.as_str() {
        GET => Answer::Said(200, json!({"metadata": {"uid": "owner"}})),
        _ => Answer::Said(200, json!({"metadata": {"name": "a", "resourceVersion": "42"}})),
    });
    let mut set = ReplicaSet::default();
    set.metadata.name = Some("web".into());
    set.metadata.uid = Some("owner".into());
    set.metadata.namespace = Some("shop".into());
    let mut versions = Vec::new();
    let refs = RefManager::new(&client, &set).unwrap();
    let mut refs =
        refs.on_patched(|metadata| versions.push(metadata.resource_version.clone().unwrap()));
    refs.claim(vec![pod("a", None, "web")], |_| true).await.unwrap();
    drop(refs);
    assert_eq!(versions, ["42"]);
}

/// Upstream's `TestPatchPodCallbacks`.
#[tokio::test(start_paused = true)]
async fn failed_patch_is_reported_to_nothing() {
    let (client, _) = server(|asked| match asked.line.as_str() {
        GET => live(asked),
        _ => refusal(404, "not found"),
    });
    let mut set = ReplicaSet::default();
    set.metadata.namespace = Some("shop".into());
    set.metadata.name = Some("web".into());
    set.metadata.uid = Some("owner".into());
    let refs = RefManager::new(&client, &set).unwrap();
    let mut refs = refs.on_patched(|metadata| panic!("nothing was written: {metadata:?}"));
    let pods = vec![pod("a", None, "web"), pod("b", Some("owner"), "db")];
    assert!(refs.claim(pods, |_| true).await.is_ok_and(|claimed| claimed.len() == 1));
}

#[test]
fn several_errors_are_printed_in_brackets() {
    let error = |object: &str| ClaimError::Patch {
        kind: "Pod".into(),
        object: object.into(),
        uid: "u".into(),
        why: "no".into(),
    };
    let one = ClaimErrors(vec![error("a")]).to_string();
    assert_eq!(one, "failed to patch the owner of Pod a (u): no");
    let two = ClaimErrors(vec![error("a"), error("b")]).to_string();
    assert!(two.starts_with("[failed") && two.contains(", failed") && two.ends_with(']'), "{two}");
}
