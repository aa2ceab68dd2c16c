use homeostat::ObjectMeta;
use serde_json::json;

use super::*;

fn pod(name: &str, claims: usize) -> Decoded<Pod> {
    let entry = |n| json!({"name": format!("e{n}"), "resourceClaimTemplateName": "t"});
    let claims: Vec<_> = (0..claims).map(entry).collect();
    let pod = json!({"metadata": {"name": name}, "spec": {"resourceClaims": claims}});
    Decoded::Fits(Arc::new(serde_json::from_value(pod).unwrap()))
}

fn opaque(name: &str) -> Decoded<Pod> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Decoded::Opaque { metadata: Arc::new(metadata), error: "does not fit".into() }
}

/// Returns what is passed on of the events, as `+name`, `-name` and `|`.
fn passed(initial: &mut Initial, events: Vec<WatchEvent<Pod>>) -> String {
    let name = |pod: &Decoded<Pod>| pod.metadata().name.clone().unwrap_or_default();
    let events = events.into_iter().filter_map(|event| initial.pass(event));
    let text = events.map(|event| match event {
        WatchEvent::Applied(pod) => format!("+{}", name(&pod)),
        WatchEvent::Deleted(pod) => format!("-{}", name(&pod)),
        WatchEvent::Bookmark { .. } => "|".to_owned(),
    });
    text.collect::<Vec<_>>().join(" ")
}

fn bookmark(initial_events_end: bool) -> WatchEvent<Pod> {
    WatchEvent::Bookmark { resource_version: "5".into(), initial_events_end }
}

#[test]
fn initial_events_are_those_of_pods_with_claims() {
    let mut initial = Initial { passed: Some(HashSet::new()) };
    let applied = |pod| WatchEvent::Applied(pod);
    let events = vec![
        applied(pod("a", 1)),
        applied(pod("b", 0)),
        applied(opaque("c")),
        bookmark(false),
        // It has lost the claim of its extended resources.
        applied(pod("a", 0)),
        bookmark(true),
    ];
    assert_eq!(passed(&mut initial, events), "+a +c | -a |");
}

#[test]
fn pod_whose_claims_are_gone_is_deleted_from_the_cache() {
    let mut initial = Initial { passed: None };
    let events = vec![
        WatchEvent::Applied(pod("a", 2)),
        WatchEvent::Applied(pod("a", 0)),
        WatchEvent::Applied(opaque("a")),
        WatchEvent::Deleted(pod("b", 0)),
        bookmark(false),
    ];
    assert_eq!(passed(&mut initial, events), "+a -a +a -b |");
}
