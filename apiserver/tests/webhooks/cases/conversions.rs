//! The cases of conversion: a definition with two versions that a webhook converts. How often a
//! server calls it is not part of them: a real server keeps converted objects.

use serde_json::{Value, json};

use super::{APPLY, Case, MERGE, Part, Send, case, delete, get, part, post, send};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NEW: &str = "/apis/conversions.example.com/v1/namespaces/NS/gadgets";
const OLD: &str = "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets";
const NEW_A: &str = "/apis/conversions.example.com/v1/namespaces/NS/gadgets/a";
const OLD_A: &str = "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets/a";
const OLD_B: &str = "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets/b";
const NEW_C: &str = "/apis/conversions.example.com/v1/namespaces/NS/gadgets/c";
const OLD_C: &str = "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets/c";
const OLD_STATUS: &str = "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets/a/status";
const NEW_SCALE: &str = "/apis/conversions.example.com/v1/namespaces/NS/gadgets/a/scale";
const OLD_SCALE: &str = "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets/a/scale";

/// The rules that the reply to a review can break.
const MODES: [&str; 30] = [
    "fail",
    "fail-silently",
    "no-result",
    "http-error",
    "not-found",
    "not-json",
    "empty",
    "other-kind",
    "no-kind",
    "beta",
    "no-response",
    "wrong-uid",
    "text-uid",
    "text-objects",
    "text-result",
    "none",
    "two",
    "version",
    "no-version",
    "kind",
    "name",
    "namespace",
    "uid",
    "no-metadata",
    "text-labels",
    "number-label",
    "bad-label",
    "bad-annotation",
    "metadata",
    "good",
];

fn definition() -> Value {
    let schema = |members: Value| {
        let mut spec = json!({"mode": {"type": "string"}});
        for (name, value) in members.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let status = json!({"type": "object", "properties": {
            "phase": {"type": "string"}, "replicas": {"type": "integer"}}});
        json!({"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec}, "status": status}}})
    };
    let text = json!({"type": "string"});
    let new = schema(json!({"host": text, "port": text, "replicas": {"type": "integer"},
        "tier": {"type": "string", "default": "gold"}}));
    let old = schema(json!({"hostPort": {"type": "string", "maxLength": 12},
        "count": {"type": "integer"}, "tier": text,
        "level": {"type": "string", "default": "low"}}));
    let version = |name: &str, schema: Value, count: &str, field: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": schema,
            "selectableFields": [{"jsonPath": field}],
            "subresources": {"status": {}, "scale": {"specReplicasPath": count,
                "statusReplicasPath": ".status.replicas"}}})
    };
    json!({
        "metadata": {"name": "gadgets.conversions.example.com"},
        "spec": {"group": "conversions.example.com", "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [version("v1", new, ".spec.replicas", ".spec.host"),
                version("v1beta1", old, ".spec.count", ".spec.hostPort")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1", "v1beta1"],
                "clientConfig": {"hook": "/convert"}}}},
    })
}

fn gadget(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("conversions.example.com/{version}"), "kind": "Gadget",
        "metadata": {"name": name}, "spec": spec})
}

fn patch(path: &'static str, body: Value) -> Send {
    Send { method: "PATCH", path, media: MERGE, body }
}

pub(crate) fn conversions() -> Case {
    Case {
        before: vec![post(DEFINITIONS, definition())],
        until: Some(OLD),
        ..case("conversions", vec![objects(), subresources(), applied(), refused()])
    }
}

fn objects() -> Part {
    part(
        "objects",
        vec![],
        vec![],
        vec![
            post(OLD, gadget("v1beta1", "a", json!({"hostPort": "h:1", "count": 2}))),
            get(NEW_A),
            get(OLD_A),
            post(NEW, gadget("v1", "b", json!({"host": "i", "port": "2"}))),
            get(OLD_B),
            get(OLD),
            get(NEW),
            get("/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets?limit=1"),
            get("/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets\
                 ?fieldSelector=spec.hostPort%3Di:2"),
            get("/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets\
                 ?fieldSelector=spec.host%3Di"),
            get("/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets\
                 ?watch=1&timeoutSeconds=1"),
            patch(OLD_A, json!({"spec": {"hostPort": "k:3", "unknown": 1}})),
            patch(OLD_A, json!({"spec": {"hostPort": "much:too:long:1"}})),
            patch(OLD_A, json!({"metadata": {"labels": {"a": "b"}}})),
            get(NEW_A),
            post(
                "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets?dryRun=All",
                gadget("v1beta1", "dry", json!({"hostPort": "h:1"})),
            ),
            post(OLD, gadget("v1beta1", "a", json!({"hostPort": "h:1"}))),
            post(OLD, gadget("v1beta1", "long", json!({"hostPort": "much:too:long:1"}))),
            patch(OLD_B, json!({"metadata": {"finalizers": ["example.com/f"]}})),
            delete(OLD_B),
            patch(OLD_B, json!({"metadata": {"finalizers": null}})),
            get(OLD_B),
        ],
    )
}

fn subresources() -> Part {
    let scale = |count: u32| json!({"spec": {"replicas": count}});
    part(
        "subresources",
        vec![],
        vec![],
        vec![
            patch(OLD_STATUS, json!({"status": {"phase": "x", "replicas": 1}})),
            get(NEW_A),
            get(OLD_STATUS),
            get(OLD_SCALE),
            patch(OLD_SCALE, scale(4)),
            get(NEW_SCALE),
            get(OLD_A),
            patch(NEW_SCALE, scale(5)),
            get(OLD_A),
            delete(OLD_A),
            get(NEW_A),
        ],
    )
}

fn applied() -> Part {
    let apply = |path, body| Send { method: "PATCH", path, media: APPLY, body };
    let old = "/apis/conversions.example.com/v1beta1/namespaces/NS/gadgets/c?fieldManager=old";
    let new = "/apis/conversions.example.com/v1/namespaces/NS/gadgets/c?fieldManager=new";
    let forced = "/apis/conversions.example.com/v1/namespaces/NS/gadgets/c\
                  ?fieldManager=new&force=true";
    part(
        "applied",
        vec![],
        vec![],
        vec![
            apply(old, gadget("v1beta1", "c", json!({"hostPort": "h:1", "count": 2}))),
            apply(new, gadget("v1", "c", json!({"tier": "silver"}))),
            get(OLD_C),
            apply(new, gadget("v1", "c", json!({"tier": "silver", "host": "k"}))),
            apply(forced, gadget("v1", "c", json!({"tier": "silver", "host": "k"}))),
            apply(old, gadget("v1beta1", "c", json!({"hostPort": "h:1"}))),
            get(NEW_C),
            apply(new, gadget("v1", "c", json!({"host": "k"}))),
            patch(NEW_C, json!({"spec": {"port": "9"}})),
            get(OLD_C),
            delete(NEW_C),
        ],
    )
}

fn refused() -> Part {
    let of_mode = |mode: &&'static str| {
        [
            post(NEW, gadget("v1", mode, json!({"mode": mode}))),
            get(path(mode, "v1beta1")),
            delete(path(mode, "v1")),
        ]
    };
    let mut sends: Vec<Send> = MODES.iter().flat_map(of_mode).collect();
    let fail = || gadget("v1beta1", "f", json!({"mode": "fail"}));
    sends.extend([
        post(OLD, fail()),
        get(path("f", "v1")),
        patch(path("f", "v1beta1"), json!({"spec": {"count": 1}})),
        send("PUT", path("f", "v1beta1"), fail()),
        get(path("f", "v1beta1/scale")),
        delete(path("f", "v1beta1")),
        delete(path("f", "v1")),
        get(path("f", "v1")),
        post(OLD, gadget("v1beta1", "u", json!({"mode": "unstorable"}))),
    ]);
    part("refused", vec![], vec![], sends)
}

/// Returns the path of a gadget, which lives as long as the program.
fn path(name: &str, version: &str) -> &'static str {
    let (version, rest) = version
        .split_once('/')
        .map_or((version, String::new()), |(one, rest)| (one, format!("/{rest}")));
    let base = format!("/apis/conversions.example.com/{version}/namespaces/NS/gadgets");
    Box::leak(format!("{base}/{name}{rest}").into_boxed_str())
}
