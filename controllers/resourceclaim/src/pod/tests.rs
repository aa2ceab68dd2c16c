use serde_json::{Value, json};

use super::*;

fn pod(spec: &Value, status: &Value) -> Pod {
    let metadata = json!({"namespace": "shop", "name": "web", "uid": "u"});
    let pod = json!({"metadata": metadata, "spec": spec, "status": status});
    serde_json::from_str(&pod.to_string()).unwrap()
}

fn resolve(entry: &Value, statuses: &Value) -> (Option<String>, Option<String>) {
    let pod = pod(&json!({"resourceClaims": [entry]}), &json!({"resourceClaimStatuses": statuses}));
    let (entry, resolution) = pod.resolutions().next().unwrap();
    (resolution.name().map(str::to_owned), resolution.error(&pod, entry))
}

#[test]
fn claim_of_each_kind_of_entry_is_resolved() {
    let chosen = json!({"name": "a", "resourceClaimName": "mine"});
    let generated = json!({"name": "a", "resourceClaimTemplateName": "t"});
    let recorded = json!([{"name": "a", "resourceClaimName": "web-a-x"}]);
    let name = |name: &str| (Some(name.to_owned()), None);
    let error = |text: &str| (None, Some(text.to_owned()));
    assert_eq!(resolve(&chosen, &recorded), name("mine"));
    assert_eq!(resolve(&json!({"name": "a", "resourceClaimName": ""}), &json!([])), name(""));
    assert_eq!(resolve(&generated, &recorded), name("web-a-x"));
    assert_eq!(resolve(&generated, &json!([{"name": "a"}])), (None, None));
    let not_yet = error(r#"pod "shop/web": ResourceClaim not created yet"#);
    assert_eq!(resolve(&generated, &json!(null)), not_yet);
    assert_eq!(resolve(&generated, &json!([{"name": "b", "resourceClaimName": "x"}])), not_yet);
    let unsupported =
        r#"pod "shop/web", spec.resourceClaim "a": none of the supported fields are set"#;
    assert_eq!(resolve(&json!({"name": "a"}), &recorded), error(unsupported));
}

#[test]
fn first_status_of_an_entry_counts() {
    let generated = json!({"name": "a", "resourceClaimTemplateName": "t"});
    let twice = json!([{"name": "a", "resourceClaimName": "x"}, {"name": "a"}]);
    assert_eq!(resolve(&generated, &twice).0.as_deref(), Some("x"));
}

#[test]
fn known_claims_are_sorted_and_unique() {
    let claims = json!([
        {"name": "b", "resourceClaimName": "z"}, {"name": "a", "resourceClaimName": "z"},
        {"name": "c", "resourceClaimTemplateName": "t"}, {"name": "d"},
    ]);
    let status = json!({
        "resourceClaimStatuses": [{"name": "c", "resourceClaimName": "g"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "e"},
    });
    assert_eq!(pod(&json!({"resourceClaims": claims}), &status).known_claims(), ["e", "g", "z"]);
}

#[test]
fn pod_is_done_when_it_ended_or_never_reached_a_node() {
    let done = |pod: Value| serde_json::from_value::<Pod>(pod).unwrap().is_done();
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    for phase in ["Succeeded", "Failed"] {
        assert!(done(json!({"metadata": {}, "status": {"phase": phase}})), "{phase}");
    }
    for phase in ["Pending", "Running", "Unknown", ""] {
        assert!(!done(json!({"metadata": {}, "status": {"phase": phase}})), "{phase}");
    }
    assert!(done(json!({"metadata": deleted})));
    assert!(!done(json!({"metadata": deleted, "spec": {"nodeName": "n"}})));
    assert!(!done(json!({"metadata": {}})));
}

#[test]
fn hundred_thousand_entries_are_resolved_in_linear_time() {
    let entries = (0..100_000).map(|n| json!({"name": format!("e{n}")}));
    let statuses = entries.clone().collect::<Vec<_>>();
    let entries: Vec<_> = entries
        .map(|mut entry| {
            entry["resourceClaimTemplateName"] = json!("t");
            entry
        })
        .collect();
    let spec = json!({"resourceClaims": entries});
    let pod = pod(&spec, &json!({"resourceClaimStatuses": statuses}));
    assert!(pod.resolutions().all(|(_, found)| found == Resolution::NotNeeded));
    assert_eq!(pod.resolutions().count(), 100_000);
}
