//! Tests of the parts of the suite.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::differences::Differences;
use crate::normal::Normaliser;
use crate::print::print;
use crate::script::{Answer, Content, Exchange, Script};
use crate::{altered, discovery, sampled};

const TEXT: &str = "\
# About writes.

### a create
POST /api/v1/namespaces/a/configmaps?dryRun=All
Accept: application/json
@save a = /metadata/uid
> {\"metadata\":
>   {\"name\": \"a\"}}
< 201
< Warning: 299 - \"careful\"
< {\"a\": [1, 2]}

### a watch
GET /api/v1/configmaps?watch=1
@events 2
~ DELETE /api/v1/namespaces/a/configmaps/{{a}} {\"gracePeriodSeconds\": 0}
< 200
< {\"type\": \"ADDED\"}
< {\"type\": \"DELETED\"}

### a path that is not there
GET /nope
< 404
< Audit-Id: -
< Cache-Control: public
< Content-Type: text/plain; charset=utf-8
< 404 page not found
";

/// Returns the tests of the suite itself.
pub(crate) fn trials() -> Vec<Trial> {
    let trials: [(&str, fn()); 14] = [
        ("script is parsed and written unchanged", script_is_parsed_and_written_unchanged),
        ("invalid line is refused", invalid_line_is_refused),
        ("message is not masked", message_is_not_masked),
        ("age in a column of dates is masked", age_in_a_column_of_dates_is_masked),
        ("message quotes masked values by name", message_quotes_masked_values_by_name),
        ("changed version is detected", changed_version_is_detected),
        ("wrong version fails one exchange", wrong_version_fails_one_exchange),
        ("mask needs a value of its shape", mask_needs_a_value_of_its_shape),
        ("value chosen by the client is not masked", value_chosen_by_the_client_is_not_masked),
        (
            "continue token is shown without its version",
            continue_token_is_shown_without_its_version,
        ),
        ("difference needs a reason and an exchange", difference_needs_a_reason_and_an_exchange),
        ("altered replies fail", altered::altered_replies_fail),
        ("altered samples fail", sampled::altered_samples_fail),
        ("discovery lists what the real server lists", discovery::lists_what_the_real_server_lists),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(format!("runner / {name}"), move || {
            test();
            Ok(())
        })
    };
    trials.into_iter().map(trial).collect()
}

fn script_is_parsed_and_written_unchanged() {
    let script = Script::parse("writes", TEXT).unwrap();
    let [create, watch, unknown] = &script.exchanges[..] else { panic!("{script:?}") };
    assert_eq!((create.method.as_str(), create.title.as_str()), ("POST", "a create"));
    assert_eq!(create.body.as_deref(), Some("{\"metadata\":\n  {\"name\": \"a\"}}"));
    assert_eq!(create.answer.as_ref().unwrap().body, Content::Json(vec![json!({"a": [1, 2]})]));
    let names: Vec<_> =
        create.answer.as_ref().unwrap().headers.iter().map(|(name, _)| name.as_str()).collect();
    let usual = ["Audit-Id", "Cache-Control"];
    let flow = ["X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"];
    assert_eq!(names, [&usual[..], &["Content-Type", "Warning"], &flow].concat());
    assert_eq!((watch.events, watch.meanwhile.len()), (Some(2), 1));
    assert_eq!(watch.meanwhile[0].body, "{\"gracePeriodSeconds\": 0}");
    let page = Content::Text("404 page not found".to_owned());
    assert_eq!(unknown.answer.as_ref().unwrap().body, page);
    let answers: Vec<_> = script.exchanges.iter().map(|exchange| exchange.answer.clone()).collect();
    assert_eq!(print(&script, &answers), TEXT);
}

fn invalid_line_is_refused() {
    for wrong in [
        "",
        "GET",
        "GET /a\n@sometimes",
        "GET /a\n@events many",
        "GET /a\nno header",
        "GET /a\n~ DELETE",
        "GET /a\n< OK",
        "GET /a\n\n### t\nGET /a",
    ] {
        assert!(Script::parse("s", &format!("\n### t\n{wrong}")).is_err(), "{wrong}");
    }
}

const UIDS: [&str; 2] =
    ["0a9e33bb-57a4-4c31-9d04-8e3ea6ae1ec6", "94adb6f1-8a2c-4a4c-b64f-0f9b6ed5c2b8"];

fn object(version: &str, uid: &str) -> Value {
    let metadata = json!({
        "name": "a", "uid": uid, "resourceVersion": version,
        "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "m"}],
    });
    json!({ "metadata": metadata })
}

fn answer(value: Value) -> Answer {
    Answer { status: 200, headers: Vec::new(), body: Content::Json(vec![value]) }
}

fn normal(normaliser: &mut Normaliser, value: Value, recorded: Option<&Answer>) -> Value {
    match normaliser.normal(&answer(value), recorded).body {
        Content::Json(values) => values.into_iter().next().unwrap_or_default(),
        Content::Text(text) => text.into(),
    }
}

fn message_is_not_masked() {
    let mut normaliser = Normaliser::default();
    let object = normal(&mut normaliser, object("12", UIDS[0]), None);
    assert_eq!(
        object,
        json!({"metadata": {
            "name": "a", "uid": "<uid of a>", "resourceVersion": "<version 1 of a>",
            "creationTimestamp": "<time>",
        }})
    );
    let text = "12 replicas (12) at 2026-01-01T00:00:00Z, creationTimestamp: Invalid value: \"x\": \
                field is immutable";
    let status = json!({
        "message": text, "reason": "Invalid",
        "details": {"name": "a", "causes": [
            {"message": text, "reason": "FieldValueInvalid", "field": "spec"},
        ]},
    });
    assert_eq!(normal(&mut normaliser, status.clone(), None), status);
}

fn age_in_a_column_of_dates_is_masked() {
    let table = json!({
        "columnDefinitions": [
            {"name": "Name", "type": "string"}, {"name": "Since", "type": "date"},
            {"name": "Age", "type": "string"},
        ],
        "rows": [{"cells": ["2s", "1s", "3m4s"]}],
    });
    let masked = normal(&mut Normaliser::default(), table, None);
    assert_eq!(masked["rows"][0]["cells"], json!(["2s", "<age>", "<age>"]));
}

fn message_quotes_masked_values_by_name() {
    let mut normaliser = Normaliser::default();
    normal(&mut normaliser, object("12", UIDS[0]), None);
    normaliser.sends("/api/v1/configmaps?resourceVersion=999");
    let normal_message = |normaliser: &mut Normaliser, text: &str| {
        normal(normaliser, json!({ "message": text }), None)["message"].as_str().unwrap().to_owned()
    };
    let uid = normal_message(
        &mut normaliser,
        &format!("Precondition failed: UID in object meta: {}", UIDS[0]),
    );
    assert_eq!(uid, "Precondition failed: UID in object meta: <uid of a>");
    let large = normal_message(&mut normaliser, "Too large resource version: 999, current: 25");
    assert_eq!(large, "Too large resource version: 999, current: <version>");
    let sorted =
        normal_message(&mut normaliser, r#"Invalid value: {"b":1,"a":[{"d":1,"c":2}]}: no {b}"#);
    assert_eq!(sorted, r#"Invalid value: {"a":[{"c":2,"d":1}],"b":1}: no {b}"#);
}

fn changed_version_is_detected() {
    let mut theirs = Normaliser::default();
    let recorded = ["5", "6", "6"].map(|v| answer(normal(&mut theirs, object(v, UIDS[0]), None)));
    let mut ours = Normaliser::default();
    let versions = ["7", "9", "9"];
    for (version, recorded) in versions.iter().zip(&recorded) {
        assert_eq!(answer(normal(&mut ours, object(version, UIDS[1]), Some(recorded))), *recorded);
    }
    let mut ours = Normaliser::default();
    let same = ["7", "9", "10"].iter().zip(&recorded).map(|(version, recorded)| {
        answer(normal(&mut ours, object(version, UIDS[1]), Some(recorded))) == *recorded
    });
    assert_eq!(same.collect::<Vec<_>>(), [true, true, false]);
}

fn wrong_version_fails_one_exchange() {
    let mut theirs = Normaliser::default();
    let recorded =
        ["5", "5", "6", "6"].map(|v| answer(normal(&mut theirs, object(v, UIDS[0]), None)));
    let mut ours = Normaliser::default();
    let same = ["1", "2", "3", "3"].iter().zip(&recorded).map(|(version, recorded)| {
        answer(normal(&mut ours, object(version, UIDS[1]), Some(recorded))) == *recorded
    });
    assert_eq!(same.collect::<Vec<_>>(), [true, false, true, true]);
}

fn mask_needs_a_value_of_its_shape() {
    let (time, version) = ("2026-01-01T00:00:00Z", "7");
    let right = json!({"metadata": {"generateName": "a-", "name": "a-x2x4z", "uid": UIDS[0],
        "resourceVersion": version, "creationTimestamp": time}});
    let recorded = answer(normal(&mut Normaliser::default(), right.clone(), None));
    let wrong = [
        ("/metadata/name", json!("a-x2a4z")),
        ("/metadata/name", json!("b-x2x4z")),
        ("/metadata/uid", json!("0a9e33bb-57a4-1c31-9d04-8e3ea6ae1ec6")),
        ("/metadata/resourceVersion", json!("07")),
        ("/metadata/resourceVersion", json!(7)),
        ("/metadata/creationTimestamp", json!("2026-01-01 00:00:00")),
    ];
    let is_equal = |value: Value| {
        answer(normal(&mut Normaliser::default(), value, Some(&recorded))) == recorded
    };
    assert!(is_equal(right.clone()));
    for (at, value) in wrong {
        let mut altered = right.clone();
        *altered.pointer_mut(at).unwrap() = value.clone();
        assert!(!is_equal(altered), "{at}: {value}");
    }
    let list = |version: &str| {
        let item = json!({"metadata": {"name": "a", "resourceVersion": "7"}});
        let list = json!({"metadata": {"resourceVersion": version}, "items": [item]});
        normal(&mut Normaliser::default(), list, None)["metadata"]["resourceVersion"].clone()
    };
    assert_eq!((list("7"), list("6")), (json!("<version>"), json!("older than an item")));
}

fn value_chosen_by_the_client_is_not_masked() {
    let mut normaliser = Normaliser::default();
    let sent = json!({
        "spec": {"clusterIP": "10.0.0.7"}, "lastTimestamp": "2001-01-01T00:00:00Z", "uid": "mine",
    });
    normaliser.sends(&sent.to_string());
    assert_eq!(normal(&mut normaliser, sent.clone(), None), sent);
    let allotted = json!({"spec": {"clusterIP": "10.0.0.8"}});
    let masked = json!({"spec": {"clusterIP": "<address>"}});
    assert_eq!(normal(&mut normaliser, allotted, None), masked);
    let generated = json!({"metadata": {"generateName": "web-", "name": "web-x7k2z"}});
    let masked = json!({"metadata": {"generateName": "web-", "name": "web-<suffix-1>"}});
    assert_eq!(normal(&mut normaliser, generated, None), masked);
}

fn continue_token_is_shown_without_its_version() {
    let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTYsInN0YXJ0IjoiL2MwXHUwMDAwIn0";
    let list = json!({"metadata": {"continue": token, "resourceVersion": "16"}});
    let text = r#"<token {"rv":"<version>","start":"c0\u0000","v":"meta.k8s.io/v1"}>"#;
    let masked = json!({"metadata": {"continue": text, "resourceVersion": "<version>"}});
    assert_eq!(normal(&mut Normaliser::default(), list, None), masked);
}

fn difference_needs_a_reason_and_an_exchange() {
    let exchange = Exchange { title: "a / b".to_owned(), ..Exchange::default() };
    let script = Script {
        name: "s".to_owned(),
        preface: String::new(),
        own_server: false,
        service_accounts: false,
        exchanges: vec![exchange],
    };
    let scripts = [script];
    let known =
        Differences::parse("# Why.\n## on purpose: no schemas\ns / a / b\n", &scripts).unwrap();
    assert_eq!(known.reason("s / a / b"), Some("on purpose: no schemas"));
    for wrong in ["s / a / b", "## later: x\ns / a / b", "## not yet: x\ns / c"] {
        assert!(Differences::parse(wrong, &scripts).is_err(), "{wrong}");
    }
}
