//! Tests of the suite's own parts.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::{
    differences::Differences,
    normal::Normaliser,
    print::print,
    script::{Answer, Content, Exchange, Script},
};

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
< Content-Type: text/plain; charset=utf-8
< 404 page not found
";

/// The tests, under names of their own.
pub(crate) fn trials() -> Vec<Trial> {
    let trials: [(&str, fn()); 9] = [
        ("a script is read and written to the letter", a_script_is_read_and_written_to_the_letter),
        ("what is not understood is refused", what_is_not_understood_is_refused),
        ("a message is never masked", a_message_is_never_masked),
        ("a message quotes masked values by name", a_message_quotes_masked_values_by_name),
        ("a version that moves is seen", a_version_that_moves_is_seen),
        ("a wrong version is wrong once", a_wrong_version_is_wrong_once),
        ("what the client chose is not masked", what_the_client_chose_is_not_masked),
        ("a token is told but for its version", a_token_is_told_but_for_its_version),
        (
            "a difference needs a reason and an exchange",
            a_difference_needs_a_reason_and_an_exchange,
        ),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(format!("runner / {name}"), move || {
            test();
            Ok(())
        })
    };
    trials.into_iter().map(trial).collect()
}

fn a_script_is_read_and_written_to_the_letter() {
    let script = Script::parse("writes", TEXT).unwrap();
    let [create, watch, unknown] = &script.exchanges[..] else { panic!("{script:?}") };
    assert_eq!((create.method.as_str(), create.title.as_str()), ("POST", "a create"));
    assert_eq!(create.body.as_deref(), Some("{\"metadata\":\n  {\"name\": \"a\"}}"));
    assert_eq!(create.answer.as_ref().unwrap().body, Content::Json(vec![json!({"a": [1, 2]})]));
    assert_eq!(create.answer.as_ref().unwrap().headers.len(), 2);
    assert_eq!((watch.events, watch.meanwhile.len()), (Some(2), 1));
    assert_eq!(watch.meanwhile[0].body, "{\"gracePeriodSeconds\": 0}");
    let page = Content::Text("404 page not found".to_owned());
    assert_eq!(unknown.answer.as_ref().unwrap().body, page);
    let answers: Vec<_> = script.exchanges.iter().map(|exchange| exchange.answer.clone()).collect();
    assert_eq!(print(&script, &answers), TEXT);
}

fn what_is_not_understood_is_refused() {
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

fn object(version: &str, uid: &str) -> Value {
    let metadata = json!({
        "name": "a", "uid": uid, "resourceVersion": version, "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "m"}],
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

fn a_message_is_never_masked() {
    let mut normaliser = Normaliser::default();
    let object = normal(&mut normaliser, object("12", "6e3f"), None);
    assert_eq!(
        object,
        json!({"metadata": {
            "name": "a", "uid": "<uid of a>", "resourceVersion": "<version 1 of a>", "creationTimestamp": "<time>",
        }})
    );
    let told = "12 replicas (12) at 2026-01-01T00:00:00Z, creationTimestamp: Invalid value: \"x\": field is immutable";
    let status = json!({
        "message": told, "reason": "Invalid",
        "details": {"name": "a", "causes": [{"message": told, "reason": "FieldValueInvalid", "field": "spec"}]},
    });
    assert_eq!(normal(&mut normaliser, status.clone(), None), status);
}

fn a_message_quotes_masked_values_by_name() {
    let mut normaliser = Normaliser::default();
    normal(&mut normaliser, object("12", "6e3f"), None);
    normaliser.sends("/api/v1/configmaps?resourceVersion=999");
    let tell = |normaliser: &mut Normaliser, text: &str| {
        normal(normaliser, json!({ "message": text }), None)["message"].as_str().unwrap().to_owned()
    };
    let uid = tell(&mut normaliser, "Precondition failed: UID in object meta: 6e3f");
    assert_eq!(uid, "Precondition failed: UID in object meta: <uid of a>");
    let large = tell(&mut normaliser, "Too large resource version: 999, current: 25");
    assert_eq!(large, "Too large resource version: 999, current: <version>");
    let sorted = tell(&mut normaliser, r#"Invalid value: {"b":1,"a":[{"d":1,"c":2}]}: no {b}"#);
    assert_eq!(sorted, r#"Invalid value: {"a":[{"c":2,"d":1}],"b":1}: no {b}"#);
}

fn a_version_that_moves_is_seen() {
    let mut theirs = Normaliser::default();
    let recorded = ["5", "6", "6"].map(|v| answer(normal(&mut theirs, object(v, "u1"), None)));
    let mut ours = Normaliser::default();
    let versions = ["7", "9", "9"];
    for (version, recorded) in versions.iter().zip(&recorded) {
        assert_eq!(answer(normal(&mut ours, object(version, "u2"), Some(recorded))), *recorded);
    }
    let mut ours = Normaliser::default();
    let same = ["7", "9", "10"].iter().zip(&recorded).map(|(version, recorded)| {
        answer(normal(&mut ours, object(version, "u2"), Some(recorded))) == *recorded
    });
    assert_eq!(same.collect::<Vec<_>>(), [true, true, false]);
}

fn a_wrong_version_is_wrong_once() {
    let mut theirs = Normaliser::default();
    let recorded = ["5", "5", "6", "6"].map(|v| answer(normal(&mut theirs, object(v, "u1"), None)));
    let mut ours = Normaliser::default();
    let same = ["1", "2", "3", "3"].iter().zip(&recorded).map(|(version, recorded)| {
        answer(normal(&mut ours, object(version, "u2"), Some(recorded))) == *recorded
    });
    assert_eq!(same.collect::<Vec<_>>(), [true, false, true, true]);
}

fn what_the_client_chose_is_not_masked() {
    let mut normaliser = Normaliser::default();
    let sent = json!({"spec": {"clusterIP": "10.0.0.7"}, "lastTimestamp": "2001-01-01T00:00:00Z", "uid": "mine"});
    normaliser.sends(&sent.to_string());
    assert_eq!(normal(&mut normaliser, sent.clone(), None), sent);
    let allotted = json!({"spec": {"clusterIP": "10.0.0.8"}});
    let masked = json!({"spec": {"clusterIP": "<address>"}});
    assert_eq!(normal(&mut normaliser, allotted, None), masked);
    let generated = json!({"metadata": {"generateName": "web-", "name": "web-x7k2p"}});
    let masked = json!({"metadata": {"generateName": "web-", "name": "web-<suffix-1>"}});
    assert_eq!(normal(&mut normaliser, generated, None), masked);
}

fn a_token_is_told_but_for_its_version() {
    let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTYsInN0YXJ0IjoiL2MwXHUwMDAwIn0";
    let list = json!({"metadata": {"continue": token, "resourceVersion": "16"}});
    let told = r#"<token {"rv":"<version>","start":"c0\u0000","v":"meta.k8s.io/v1"}>"#;
    let masked = json!({"metadata": {"continue": told, "resourceVersion": "<version>"}});
    assert_eq!(normal(&mut Normaliser::default(), list, None), masked);
}

fn a_difference_needs_a_reason_and_an_exchange() {
    let exchange = Exchange { title: "a / b".to_owned(), ..Exchange::default() };
    let script = Script {
        name: "s".to_owned(),
        preface: String::new(),
        own_server: false,
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
