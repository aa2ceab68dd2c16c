//! The cases: webhooks, and the requests that they see.

#![expect(clippy::needless_pass_by_value, reason = "the cases pass literals")]

mod conversions;
mod policies;

use serde_json::{Value, json};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// A sequence of parts in a namespace of their own.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The requests before the webhooks exist.
    pub(crate) before: Vec<Send>,
    /// A path that is served once these requests have an effect.
    pub(crate) until: Option<&'static str>,
    /// A request that is refused once these requests have an effect.
    pub(crate) until_refused: Option<Send>,
    pub(crate) parts: Vec<Part>,
}

/// Webhooks, and requests while they exist.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) mutating: Vec<Value>,
    pub(crate) validating: Vec<Value>,
    pub(crate) sends: Vec<Send>,
}

/// A request. `NS` in the path stands for the namespace of the case.
pub(crate) struct Send {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Empty for JSON.
    pub(crate) media: &'static str,
    pub(crate) body: Value,
}

const EXEMPT: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/exempt";
/// Resources that name others twice.
const WIDE: &[&str] = &["configmaps", "configmaps/*", "*/status", "a/b"];
const MAPS: &str = "/api/v1/namespaces/NS/configmaps";
const MAP: &str = "/api/v1/namespaces/NS/configmaps/m";

pub(crate) fn all() -> Vec<Case> {
    vec![
        reviews(),
        denials(),
        failures(),
        ignored_failures(),
        timeouts(),
        late(),
        patches(),
        reinvocation(),
        matches(),
        conditions(),
        subresources(),
        equivalents(),
        custom_resources(),
        services(),
        configurations(),
        policies::policies(),
        conversions::conversions(),
    ]
}

fn send(method: &'static str, path: &'static str, body: Value) -> Send {
    Send { method, path, media: "", body }
}

fn post(path: &'static str, body: Value) -> Send {
    send("POST", path, body)
}

fn get(path: &'static str) -> Send {
    send("GET", path, Value::Null)
}

fn delete(path: &'static str) -> Send {
    send("DELETE", path, Value::Null)
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

/// Returns a rule for resources of a group.
fn rule(group: &str, resources: &[&str], operations: &[&str]) -> Value {
    json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": operations,
        "resources": resources}])
}

/// Returns a webhook for all writes to config maps.
fn on_maps(name: &str, path: &str) -> Value {
    json!({"name": format!("{name}.example.com"), "path": path,
        "rules": rule("", &["configmaps"], &["CREATE", "UPDATE", "DELETE"])})
}

fn on(name: &str, path: &str, rules: Value) -> Value {
    json!({"name": format!("{name}.example.com"), "path": path, "rules": rules})
}

fn with(mut webhook: Value, members: Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        webhook[name] = value.clone();
    }
    webhook
}

fn part(
    name: &'static str,
    mutating: Vec<Value>,
    validating: Vec<Value>,
    sends: Vec<Send>,
) -> Part {
    Part { name, mutating, validating, sends }
}

fn case(name: &'static str, parts: Vec<Part>) -> Case {
    Case { name, before: Vec::new(), until: None, until_refused: None, parts }
}

fn reviews() -> Case {
    let apply = |path, body| Send { method: "PATCH", path, media: APPLY, body };
    let configuration = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "applied"}, "data": {"a": "1"}});
    let changed = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "applied"}, "data": {"a": "2"}});
    case(
        "reviews",
        vec![
            part(
                "both kinds see each write",
                vec![on_maps("mutate", "/allow")],
                vec![on_maps("validate", "/annotate")],
                vec![
                    post(MAPS, map("m")),
                    post("/api/v1/namespaces/NS/configmaps?dryRun=All&fieldManager=me", map("dry")),
                    send("PUT", MAP, json!({"metadata": {"name": "m"}, "data": {"a": "2"}})),
                    Send {
                        method: "PATCH",
                        path: MAP,
                        media: MERGE,
                        body: json!({"data": {"b": "3"}}),
                    },
                    apply(
                        "/api/v1/namespaces/NS/configmaps/applied?fieldManager=me",
                        configuration,
                    ),
                    apply("/api/v1/namespaces/NS/configmaps/applied?fieldManager=me", changed),
                    delete("/api/v1/namespaces/NS/configmaps/m?gracePeriodSeconds=0"),
                    delete("/api/v1/namespaces/NS/configmaps?labelSelector=none%3Dthere"),
                    delete(
                        "/api/v1/namespaces/NS/configmaps?fieldSelector=metadata.name%3Dapplied",
                    ),
                    get(MAP),
                ],
            ),
            part(
                // envtest installs webhooks with two slashes before the path.
                "odd path",
                vec![on_maps("mutate", "//label/../allow/")],
                vec![],
                vec![post(MAPS, map("odd"))],
            ),
            part(
                "older reviews",
                vec![with(
                    on_maps("mutate", "/beta/x"),
                    json!({"admissionReviewVersions": ["v9", "v1beta1", "v1"]}),
                )],
                vec![],
                vec![post(MAPS, map("beta"))],
            ),
        ],
    )
}

fn denials() -> Case {
    let sends = || vec![post(MAPS, map("m"))];
    let paths = [
        "/deny",
        "/deny/message",
        "/deny/reason",
        "/deny/success",
        "/deny/details",
        "/warn",
        "/warn/denied",
    ];
    let mut parts = Vec::new();
    for path in paths {
        parts.push(part(path, vec![], vec![on_maps("validate", path)], sends()));
    }
    parts.push(part(
        "mutating",
        vec![on_maps("mutate", "/deny/message"), on_maps("later", "/allow")],
        vec![on_maps("validate", "/allow")],
        sends(),
    ));
    parts.push(part(
        "delete",
        vec![],
        vec![on("validate", "/deny/message", rule("", &["configmaps"], &["DELETE"]))],
        vec![
            post(MAPS, map("m")),
            delete(MAP),
            delete("/api/v1/namespaces/NS/configmaps"),
            delete("/api/v1/namespaces/NS/configmaps/absent"),
            get(MAP),
        ],
    ));
    case("denials", parts)
}

const WRONG: [&str; 26] = [
    "/not-json",
    "/other-kind",
    "/status/400",
    "/status/403",
    "/status/404",
    "/status/422",
    "/status/500",
    "/status/503",
    "/wrong-uid",
    "/no-response",
    "/no-kind/x",
    "/patch-without-type",
    "/type-without-patch",
    "/empty-type",
    "/other-type",
    "/bad-patch/object",
    "/bad-patch/text",
    "/odd-type/allowed",
    "/odd-type/base64",
    "/odd-type/patch",
    "/odd-type/type",
    "/odd-type/warnings",
    "/odd-type/warning",
    "/odd-type/annotations",
    "/odd-type/status",
    "/odd-type/code",
];

fn failures() -> Case {
    let mut parts = Vec::new();
    for path in WRONG {
        let sends = vec![post(MAPS, map("m"))];
        parts.push(part(path, vec![on_maps("mutate", path)], vec![], sends));
    }
    for path in ["/not-json", "/patch/data", "/type-without-patch", "/status/500"] {
        let sends = vec![post(MAPS, map("m"))];
        parts.push(part(path, vec![], vec![on_maps("validate", path)], sends));
    }
    let slow = with(on_maps("slow", "/slow/4000"), json!({"timeoutSeconds": 1}));
    parts.push(part("slow", vec![], vec![slow], vec![post(MAPS, map("m"))]));
    for bundle in ["other", "none"] {
        let hook = with(on_maps("tls", "/allow"), json!({"bundle": bundle}));
        parts.push(part(bundle, vec![], vec![hook], vec![post(MAPS, map("m"))]));
    }
    let closed = json!({"url": "https://127.0.0.1:1/path"});
    let closed = json!({"name": "closed.example.com", "clientConfig": closed,
        "rules": rule("", &["configmaps"], &["CREATE"])});
    parts.push(part("closed", vec![], vec![closed], vec![post(MAPS, map("m"))]));
    case("failures", parts)
}

fn ignored_failures() -> Case {
    let ignored = |hook| with(hook, json!({"failurePolicy": "Ignore"}));
    let mut parts = Vec::new();
    for path in ["/not-json", "/status/500", "/bad-patch/text", "/patch/absent", "/deny"] {
        let sends = vec![post("/api/v1/namespaces/NS/configmaps?dryRun=All", map("m"))];
        parts.push(part(
            path,
            vec![ignored(on_maps("mutate", path)), on_maps("later", "/label/later")],
            vec![],
            sends,
        ));
    }
    parts.push(part(
        "validating",
        vec![],
        vec![ignored(on_maps("wrong", "/not-json")), on_maps("deny", "/deny/message")],
        vec![post(MAPS, map("m"))],
    ));
    case("ignored_failures", parts)
}

/// Returns a webhook that answers after some milliseconds, and may take some seconds.
fn slow(name: &str, milliseconds: u32, seconds: u32) -> Value {
    let hook = on_maps(name, &format!("/slow/{milliseconds}"));
    with(hook, json!({"timeoutSeconds": seconds}))
}

/// The time of a request, which its webhooks share.
fn timeouts() -> Case {
    const IN_TEN_SECONDS: &str = "/api/v1/namespaces/NS/configmaps?timeout=10s";
    let asks = |path| vec![post(path, map("m"))];
    let quick = || vec![slow("long", 1, 20), slow("short", 2, 5)];
    let waiting = vec![slow("long", 1000, 20), slow("short", 1001, 5), slow("last", 1002, 20)];
    let longest = vec![slow("first", 5000, 30), slow("last", 1, 30)];
    let no_limits = vec![
        post("/api/v1/namespaces/NS/configmaps?dryRun=All&timeout=0s", map("m")),
        post("/api/v1/namespaces/NS/configmaps?dryRun=All&timeout=100s", map("m")),
        post("/api/v1/namespaces/NS/configmaps?dryRun=All&timeout=-1s", map("m")),
        post("/api/v1/namespaces/NS/configmaps?dryRun=All&timeout=1", map("m")),
    ];
    case(
        "timeouts",
        vec![
            part("minimum", quick(), vec![slow("validate", 3, 20)], asks(IN_TEN_SECONDS)),
            part("validating", vec![], quick(), asks(IN_TEN_SECONDS)),
            part("consumed", waiting, vec![slow("validate", 3, 20)], asks(IN_TEN_SECONDS)),
            part("of_every_write", longest, vec![], asks(MAPS)),
            part("none", vec![slow("first", 1, 10)], vec![], no_limits),
        ],
    )
}

/// Requests whose time ends while a webhook is called.
fn late() -> Case {
    let asks = || vec![post("/api/v1/namespaces/NS/configmaps?dryRun=All&timeout=2s", map("m"))];
    let failing = || vec![slow("late", 4000, 30)];
    let ignored = || {
        let hooks = [slow("late", 4000, 30), slow("last", 1, 5)];
        hooks.map(|hook| with(hook, json!({"failurePolicy": "Ignore"}))).to_vec()
    };
    case(
        "late",
        vec![
            part("ignored", ignored(), vec![], asks()),
            part("failed", failing(), vec![], asks()),
            part("ignored_validating", vec![], ignored(), asks()),
            part("failed_validating", vec![], failing(), asks()),
        ],
    )
}

#[expect(clippy::too_many_lines, reason = "a list of parts")]
fn patches() -> Case {
    let mut parts = Vec::new();
    for path in [
        "/patch/data",
        "/patch/path",
        "/patch/absent",
        "/patch/test",
        "/patch/kind",
        "/patch/type",
        "/patch/unknown",
        "/patch/invalid",
        "/patch/name",
        "/patch/nothing",
        "/patch/managers",
        "/patch/no-managers",
        "/patch/long-manager",
        "/patch/long-subresource",
        "/patch/owners",
        "/bad-patch/empty",
    ] {
        let operations: &[&str] =
            if path == "/patch/long-subresource" { &["UPDATE"] } else { &["CREATE", "UPDATE"] };
        let hook = on("mutate", path, rule("", &["configmaps"], operations));
        let sends = vec![
            post(MAPS, map("m")),
            send("PUT", MAP, json!({"metadata": {"name": "m"}, "data": {"a": "2"}})),
            Send {
                method: "PATCH",
                path: MAP,
                media: APPLY,
                body: json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m",
                    "labels": {"x": "y"}}}),
            },
        ];
        // The real server stores a renamed object under another key than its name's.
        let sends = sends.into_iter().filter(|send| path != "/patch/name" || send.media != APPLY);
        let sends = sends.map(|mut send| {
            if send.media == APPLY {
                send.path = "/api/v1/namespaces/NS/configmaps/m?fieldManager=applier";
            }
            send
        });
        let mut sends: Vec<Send> = sends.collect();
        sends.push(delete(MAP));
        sends.push(delete("/api/v1/namespaces/NS/configmaps/renamed"));
        parts.push(part(path, vec![hook], vec![on_maps("see", "/allow")], sends));
    }
    parts.push(part(
        "delete",
        vec![on("mutate", "/patch/data", rule("", &["configmaps"], &["DELETE"]))],
        vec![],
        vec![post(MAPS, map("m")), delete(MAP)],
    ));
    let template = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector":
        {"matchLabels": {"a": "b"}}, "template": template}});
    parts.push(part(
        "defaults",
        vec![on("mutate", "/patch/image", rule("apps", &["deployments"], &["CREATE"]))],
        vec![on("see", "/allow", rule("apps", &["deployments"], &["*"]))],
        vec![post("/apis/apps/v1/namespaces/NS/deployments", deployment)],
    ));
    parts.push(part(
        "generated names",
        vec![on_maps("mutate", "/label/x")],
        vec![on_maps("deny", "/deny/message")],
        vec![post(MAPS, json!({"metadata": {"name": "n", "generateName": "g-"}}))],
    ));
    case("patches", parts)
}

fn reinvocation() -> Case {
    let again = |hook| with(hook, json!({"reinvocationPolicy": "IfNeeded"}));
    let labelled = || json!({"metadata": {"name": "m", "labels": {"l": "1"}}});
    let dry = "/api/v1/namespaces/NS/configmaps?dryRun=All";
    case(
        "reinvocation",
        vec![
            part(
                "never",
                vec![on_maps("first", "/count/first"), on_maps("second", "/count/second")],
                vec![],
                vec![post(dry, labelled())],
            ),
            part(
                "if needed",
                vec![
                    again(on_maps("first", "/count/first")),
                    on_maps("second", "/count/second"),
                    again(on_maps("third", "/count/third")),
                ],
                vec![],
                vec![post(dry, labelled())],
            ),
            part(
                "no change",
                vec![again(on_maps("first", "/allow")), again(on_maps("second", "/allow"))],
                vec![],
                vec![post(dry, labelled())],
            ),
            part(
                "not called before",
                vec![
                    again(with(
                        on_maps("first", "/count/first"),
                        json!({"objectSelector": {"matchLabels": {"second": "set"}}}),
                    )),
                    again(on_maps("second", "/label/second")),
                ],
                vec![],
                vec![post(dry, labelled())],
            ),
            part(
                "same content",
                vec![again(on_maps("first", "/label/first")), on_maps("second", "/label/second")],
                vec![],
                vec![post(dry, labelled())],
            ),
        ],
    )
}

#[expect(clippy::too_many_lines, reason = "a list of parts")]
fn matches() -> Case {
    let labelled =
        |name: &str, label: &str| json!({"metadata": {"name": name, "labels": {"l": label}}});
    let selecting = json!({"objectSelector": {"matchLabels": {"l": "1"}}});
    let other = json!({"namespaceSelector": {"matchLabels": {"in": "other"}}});
    let cluster = |scope: &str| {
        json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
            "resources": ["*"], "scope": scope}]})
    };
    let secret = json!({"metadata": {"name": "s"}});
    let namespace = json!({"metadata": {"name": "matches-other", "labels": {"in": "matches"}}});
    let of_case = json!({"namespaceSelector": {"matchLabels": {"in": "matches"}}});
    case(
        "matches",
        vec![
            part(
                "object selector",
                vec![],
                vec![with(on_maps("deny", "/deny"), selecting)],
                vec![
                    post(MAPS, labelled("m", "1")),
                    post(MAPS, labelled("m", "2")),
                    send("PUT", MAP, labelled("m", "1")),
                    delete(MAP),
                ],
            ),
            part(
                "namespace selector",
                vec![],
                vec![with(on_maps("deny", "/deny"), other)],
                vec![post(MAPS, map("m"))],
            ),
            part(
                "resources",
                vec![],
                vec![on("deny", "/deny", rule("", &["secrets"], &["CREATE"]))],
                vec![
                    post(MAPS, map("m")),
                    post("/api/v1/namespaces/NS/secrets", secret),
                    post("/api/v1/namespaces/absent/secrets", json!({"metadata": {"name": "s"}})),
                ],
            ),
            part(
                "namespaced scope",
                vec![],
                vec![with(with(on_maps("deny", "/deny"), cluster("Namespaced")), of_case.clone())],
                vec![post(MAPS, map("n")), post("/api/v1/namespaces", namespace.clone())],
            ),
            part(
                "cluster scope",
                vec![],
                vec![with(with(on_maps("deny", "/deny"), cluster("Cluster")), of_case)],
                vec![
                    post("/api/v1/namespaces", namespace),
                    send(
                        "PUT",
                        "/api/v1/namespaces/matches-other",
                        json!({"metadata": {"name": "matches-other", "labels": {"in": "matches"}}}),
                    ),
                    post("/api/v1/namespaces/NS/configmaps?dryRun=All", map("dry")),
                    post(
                        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                        json!({"metadata": {"name": "exempt"}}),
                    ),
                    delete(EXEMPT),
                    post(
                        "/apis/authentication.k8s.io/v1/tokenreviews",
                        json!({"spec": {"token": "x"}}),
                    ),
                ],
            ),
        ],
    )
}

fn conditions() -> Case {
    let condition =
        |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let dry = "/api/v1/namespaces/NS/configmaps?dryRun=All";
    let mut parts = Vec::new();
    for (name, expression) in [
        ("false", "object.metadata.name == 'other'"),
        ("true", "object.metadata.name == 'm' && request.operation == 'CREATE'"),
        ("error", "object.spec.absent == 1"),
        ("old", "oldObject == null"),
        ("authorizer", "authorizer.group('').resource('pods').check('get').allowed()"),
        ("resource", "request.resource.version == 'v1' && request.dryRun"),
    ] {
        let hook = with(on_maps("deny", "/deny"), condition(expression));
        parts.push(part(name, vec![], vec![hook.clone()], vec![post(dry, map("m"))]));
        if name == "error" {
            let ignoring = with(hook, json!({"failurePolicy": "Ignore"}));
            parts.push(part("ignored error", vec![ignoring], vec![], vec![post(dry, map("m"))]));
        }
    }
    let two = json!({"matchConditions": [
        {"name": "a", "expression": "object.x == 1"},
        {"name": "b", "expression": "object.y == 1"}]});
    let hook = with(on_maps("deny", "/deny"), two);
    parts.push(part("two errors", vec![], vec![hook], vec![post(dry, map("m"))]));
    let mutated = with(on_maps("deny", "/deny"), condition("'first' in object.metadata.labels"));
    parts.push(part(
        "mutated object",
        vec![on_maps("first", "/label/first"), mutated],
        vec![],
        vec![post(dry, json!({"metadata": {"name": "m"}}))],
    ));
    case("conditions", parts)
}

fn subresources() -> Case {
    let pod = json!({"metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i"}]}});
    let template = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = json!({"metadata": {"name": "r"}, "spec": {"replicas": 1, "selector":
        {"matchLabels": {"a": "b"}}, "template": template}});
    let parts = |path: &str| {
        let rules = rule("", &["pods/*", "services/proxy", "serviceaccounts/token"], &["*"]);
        // The options of a connection have no labels.
        with(on("all", path, rules), json!({"objectSelector": {}}))
    };
    let phase = Send {
        method: "PATCH",
        path: "/api/v1/namespaces/NS/pods/p/status",
        media: MERGE,
        body: json!({"status": {"phase": "Running"}}),
    };
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let eviction = json!({"metadata": {"name": "p"}});
    let scale = Send {
        method: "PATCH",
        path: "/apis/apps/v1/namespaces/NS/replicasets/r/scale",
        media: MERGE,
        body: json!({"spec": {"replicas": 3}}),
    };
    let before = vec![
        post("/api/v1/namespaces/NS/serviceaccounts", json!({"metadata": {"name": "default"}})),
        post("/api/v1/namespaces/NS/pods", pod),
        post("/apis/apps/v1/namespaces/NS/replicasets", set),
    ];
    Case {
        before,
        ..case(
            "subresources",
            vec![
                part(
                    "pods",
                    vec![parts("/allow")],
                    vec![parts("/allow")],
                    vec![
                        phase,
                        post("/api/v1/namespaces/NS/pods/p/binding", binding),
                        post("/api/v1/namespaces/NS/pods/p/eviction?dryRun=All", eviction),
                    ],
                ),
                part(
                    "denied connections",
                    vec![],
                    vec![parts("/deny/message")],
                    vec![
                        post(
                            "/api/v1/namespaces/NS/pods/p/exec?command=ls&container=c&stdout=true",
                            Value::Null,
                        ),
                        get("/api/v1/namespaces/NS/services/s/proxy/path"),
                    ],
                ),
                part(
                    "scale",
                    vec![on(
                        "all",
                        "/patch/replicas",
                        rule("apps", &["replicasets/scale"], &["*"]),
                    )],
                    vec![on("see", "/allow", rule("apps", &["replicasets/scale"], &["*"]))],
                    vec![scale, get("/apis/apps/v1/namespaces/NS/replicasets/r")],
                ),
                part(
                    "status",
                    vec![on("all", "/patch/status", rule("", &["pods/status"], &["*"]))],
                    vec![],
                    vec![Send {
                        method: "PATCH",
                        path: "/api/v1/namespaces/NS/pods/p/status",
                        media: MERGE,
                        body: json!({"status": {"message": "x"}}),
                    }],
                ),
            ],
        )
    }
}

fn equivalents() -> Case {
    let scaler = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}]}})
    };
    let of_v1 = json!({"rules": [{"apiGroups": ["autoscaling"], "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"], "resources": ["horizontalpodautoscalers"]}]});
    let hook = |name: &str, path: &str, policy: &str| {
        let hook = with(on_maps(name, path), of_v1.clone());
        with(hook, json!({"matchPolicy": policy}))
    };
    let path = "/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers";
    case(
        "equivalents",
        vec![
            part(
                "exact",
                vec![hook("mutate", "/patch/targets", "Exact")],
                vec![hook("deny", "/deny", "Exact")],
                vec![post(path, scaler("exact"))],
            ),
            part(
                "equivalent",
                vec![hook("mutate", "/patch/targets", "Equivalent")],
                vec![hook("see", "/allow", "Equivalent")],
                vec![
                    post(path, scaler("h")),
                    Send {
                        method: "PATCH",
                        path: "/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers/h",
                        media: MERGE,
                        body: json!({"spec": {"minReplicas": 2}}),
                    },
                ],
            ),
        ],
    )
}

#[expect(clippy::too_many_lines, reason = "a list of parts")]
fn custom_resources() -> Case {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "color": {"type": "string", "default": "red"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}});
    let version = |name: &str, is_stored: bool| {
        json!({"name": name, "served": true, "storage": is_stored, "schema": schema,
            "subresources": {"status": {}}})
    };
    let definition = json!({
        "metadata": {"name": "widgets.webhooks.example.com"},
        "spec": {"group": "webhooks.example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version("v1", true), version("v2", false)]},
    });
    let widget = |version: &str, name: &str| {
        json!({"apiVersion": format!("webhooks.example.com/{version}"), "kind": "Widget",
            "metadata": {"name": name}, "spec": {"size": 1}})
    };
    let rules = json!({"rules": [{"apiGroups": ["webhooks.example.com"], "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"], "resources": ["widgets", "widgets/status"]}]});
    let hook = |name: &str, path: &str| with(on_maps(name, path), rules.clone());
    let v1 = "/apis/webhooks.example.com/v1/namespaces/NS/widgets";
    let v2 = "/apis/webhooks.example.com/v2/namespaces/NS/widgets";
    let size =
        |path| Send { method: "PATCH", path, media: MERGE, body: json!({"spec": {"size": 2}}) };
    Case {
        before: vec![post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)],
        until: Some("/apis/webhooks.example.com/v2/namespaces/NS/widgets"),
        ..case(
            "custom_resources",
            vec![
                part(
                    "changed",
                    vec![hook("mutate", "/patch/widget")],
                    vec![hook("see", "/allow")],
                    vec![
                        post(v1, widget("v1", "a")),
                        post(v2, widget("v2", "b")),
                        size("/apis/webhooks.example.com/v1/namespaces/NS/widgets/a"),
                        size("/apis/webhooks.example.com/v2/namespaces/NS/widgets/a"),
                    ],
                ),
                part(
                    "wrong",
                    vec![hook("mutate", "/patch/wrong-widget")],
                    vec![],
                    vec![post(v1, widget("v1", "c"))],
                ),
                part(
                    "status",
                    vec![],
                    vec![hook("deny", "/deny/message")],
                    vec![Send {
                        method: "PATCH",
                        path: "/apis/webhooks.example.com/v1/namespaces/NS/widgets/a/status",
                        media: MERGE,
                        body: json!({"status": {"phase": "x"}}),
                    }],
                ),
            ],
        )
    }
}

fn services() -> Case {
    let hook = |service: Value| {
        vec![json!({"name": "service.example.com", "clientConfig": {"service": service},
            "rules": rule("", &["configmaps"], &["CREATE"])})]
    };
    let sends = || vec![post(MAPS, map("m"))];
    let service = |name: &str, spec: Value| {
        post("/api/v1/namespaces/NS/services", json!({"metadata": {"name": name}, "spec": spec}))
    };
    Case {
        before: vec![
            service("headless", json!({"clusterIP": "None", "ports": [{"port": 443}]})),
            service("other", json!({"ports": [{"port": 80}]})),
        ],
        ..case(
            "services",
            vec![
                part(
                    "absent",
                    vec![],
                    hook(json!({"namespace": "services", "name": "absent"})),
                    sends(),
                ),
                part(
                    "headless",
                    vec![],
                    hook(json!({"namespace": "services", "name": "headless", "path": "/x"})),
                    sends(),
                ),
                part(
                    "other port",
                    hook(json!({"namespace": "services", "name": "other", "port": 8443})),
                    vec![],
                    sends(),
                ),
            ],
        )
    }
}

fn configurations() -> Case {
    const MUTATING: &str =
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?dryRun=All";
    const VALIDATING: &str =
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All";
    let usual = || {
        json!({"name": "a.example.com", "clientConfig": {"url": "https://x/y"},
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": rule("", &["configmaps"], &["CREATE"])})
    };
    let of = |hooks: Vec<Value>| json!({"metadata": {"name": "c"}, "webhooks": hooks});
    let both = |change: Value| {
        let hook = with(usual(), change);
        [post(VALIDATING, of(vec![hook.clone()])), post(MUTATING, of(vec![hook]))]
    };
    let conditions = |list: Value| json!({"matchConditions": list});
    let changes = [
        json!({}),
        json!({"sideEffects": "Some"}),
        json!({"sideEffects": null}),
        json!({"clientConfig": {"url": "http://x/y?q=1#f"}}),
        json!({"clientConfig": {"url": "https://x", "service": {"name": "s", "namespace": "n"}}}),
        json!({"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "a//b"}}}),
        json!({"clientConfig": {"url": "https://x", "caBundle": "bm90IFBFTQ=="}}),
        json!({"timeoutSeconds": 31, "failurePolicy": "Maybe", "matchPolicy": "Same"}),
        json!({"reinvocationPolicy": "Often"}),
        json!({"admissionReviewVersions": ["v9", "v9", "V"]}),
        json!({"rules": rule("", WIDE, &["*", "CREATE"])}),
        json!({"rules": [{"apiGroups": ["", "*"], "apiVersions": ["", "*"], "operations": ["GET"],
            "resources": ["*/*", "pods"], "scope": "Wide"}]}),
        json!({"rules": [{}]}),
        json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        conditions(json!([{"name": "", "expression": ""}])),
        conditions(json!([{"name": "a b", "expression": "true"}, {"name": "x", "expression": "1"},
            {"name": "x", "expression": "object.x =="}])),
        conditions(json!([{"name": "p", "expression": "params.x == 1"},
            {"name": "v", "expression": "variables.x == 1"},
            {"name": "n", "expression": "namespaceObject.metadata.name == 'x'"},
            {"name": "a", "expression": "authorizer.requestResource.check('get').allowed()"}])),
        json!({"name": "short"}),
        json!({"name": "Upper.Case.Name"}),
    ];
    let mut sends: Vec<Send> = changes.into_iter().flat_map(both).collect();
    sends.push(post(VALIDATING, of(vec![usual(), usual()])));
    case("configurations", vec![part("validation", vec![], vec![], sends)])
}
