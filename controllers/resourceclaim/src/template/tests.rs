use serde_json::{Value, json};

use super::*;

fn template(spec: &Value) -> Template {
    let metadata = json!({"labels": {"app": "web"}, "annotations": {"note": "kept"}});
    let template = json!({"metadata": {"name": "t"}, "spec": {"metadata": metadata, "spec": spec}});
    serde_json::from_str(&template.to_string()).unwrap()
}

fn owner() -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: "web".to_owned(),
        uid: "u".to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

#[test]
fn claim_has_the_spec_as_it_came_and_an_owner() {
    let spec = json!({"devices": {"requests": [], "fromTheFuture": [1.5, null]}});
    let template = template(&spec);
    let body = template.claim("web-e-x", "e", &owner()).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {
                "name": "web-e-x", "labels": {"app": "web"},
                "annotations": {"note": "kept", "resource.kubernetes.io/pod-claim-name": "e"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u",
                                     "controller": true}],
            },
            "spec": spec,
        })
    );
    let annotations = template.annotations.unwrap();
    assert_eq!(annotations.len(), 1, "the cached template stays as it is");
}

#[test]
fn numbers_of_the_spec_are_not_rewritten() {
    let text = r#"{"metadata":{},"spec":{"spec":{"a":1.0,"b":123456789012345678901234567890}}}"#;
    let template: Template = serde_json::from_str(text).unwrap();
    let body = String::from_utf8(template.claim("n", "e", &owner()).unwrap()).unwrap();
    assert!(body.contains(r#"{"a":1.0,"b":123456789012345678901234567890}"#), "{body}");
}

#[test]
fn template_without_a_spec_is_sent_to_the_server() {
    for spec in [json!(null), json!({})] {
        let template = template(&spec);
        assert!(!template.check(&FeatureGates::default()).unwrap());
        assert!(template.claim("n", "e", &owner()).is_ok());
    }
    assert!(Template::default().claim("n", "e", &owner()).is_ok());
}

#[test]
fn gates_forbid_admin_access_and_prioritized_lists() {
    let gates = |list: &str| list.parse::<FeatureGates>().unwrap();
    let admin = template(&json!({"devices": {"requests": [{"exactly": {"adminAccess": true}}]}}));
    assert!(admin.check(&gates("")).unwrap());
    assert_eq!(
        admin.check(&gates("DRAAdminAccess=false")).unwrap_err().to_string(),
        "admin access is requested, but the feature is disabled"
    );
    let list = template(&json!({"devices": {"requests": [{"firstAvailable": [{"name": "a"}]}]}}));
    assert!(!list.check(&gates("DRAAdminAccess=false")).unwrap());
    assert_eq!(
        list.check(&gates("DRAPrioritizedList=false")).unwrap_err().to_string(),
        "template includes a prioritized list of subrequests, but the feature is disabled"
    );
    let plain = template(&json!({"devices": {"requests": [{"firstAvailable": []}]}}));
    assert!(plain.check(&gates("DRAPrioritizedList=false,DRAAdminAccess=false")).is_ok());
}

#[test]
fn spec_of_another_shape_is_an_error() {
    let strange = template(&json!({"devices": "all"}));
    assert!(matches!(strange.check(&FeatureGates::default()), Err(TemplateError::Json(_))));
}
