//! Inside each crate a module uses only modules of a lower rank.
//!
//! A table lists the top-level modules of one crate, the lowest rank first. Modules of one rank do
//! not use each other. Below them no table is needed: no two modules of one folder, at any depth,
//! may lead to each other.

use std::collections::BTreeSet;

use homeostat_checks::circles::circles;
use homeostat_checks::modules::violations;
use homeostat_checks::{root, sources};

#[track_caller]
fn assert_ranks(folder: &str, ranks: &[&[&str]]) {
    let sources = sources(&root().join(folder)).expect("the repository is readable");
    let violations = violations(folder, &sources, ranks);
    assert!(violations.is_empty(), "{folder}:\n{}", violations.join("\n"));
}

#[test]
fn no_folder_has_a_circle() {
    let sources = sources(&root()).expect("the repository is readable");
    let folder = |path: &str| Some(path.split_once("/src/")?.0.to_owned() + "/src");
    let folders: BTreeSet<String> =
        sources.iter().filter_map(|source| folder(&source.path)).collect();
    assert!(folders.contains("apiserver/src") && folders.len() > 15, "{folders:?}");
    let found: Vec<String> = folders.iter().flat_map(|folder| circles(folder, &sources)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn core_has_no_arrow_up() {
    assert_ranks(
        "core/src",
        &[
            &["go_quote", "uuid"],
            &[
                "clock",
                "go_bool",
                "go_duration",
                "group_resource",
                "key",
                "labels",
                "metrics",
                "random",
                "resource_version",
                "retry_after",
                "sync",
                "uid",
            ],
            &["user_code"],
        ],
    );
}

#[test]
fn quantity_has_no_arrow_up() {
    assert_ranks(
        "quantity/src",
        &[
            &["format", "limbs", "name"],
            &["amount"],
            &["canonical", "parse"],
            &["quantity"],
            &["list"],
            &["serde"],
        ],
    );
}

#[test]
fn schema_has_no_arrow_up() {
    assert_ranks(
        "schema/src",
        &[
            &[
                "address",
                "authorizer",
                "field_error",
                "field_set",
                "go_pattern",
                "internal",
                "name_index",
                "names",
                "path",
                "shown",
                "type_id",
            ],
            &["constraints", "url"],
            &["node"],
            &["format", "types"],
            &["schema", "table"],
            &["apply", "built_in", "embedded", "protobuf", "prune", "unique"],
            &["managed_fields", "open_api", "validate"],
            &["cel", "limits", "structural"],
            &["device_selector", "policies", "rules"],
            &["defaults"],
            &["definition"],
        ],
    );
}

#[test]
fn workqueue_has_no_arrow_up() {
    assert_ranks(
        "workqueue/src",
        &[
            &["cause", "inspect", "order", "sync"],
            &["rate_limiter", "request"],
            &["delays", "state"],
            &["queue"],
        ],
    );
}

#[test]
fn expectations_has_no_arrow_up() {
    assert_ranks(
        "expectations/src",
        &[
            &["pending", "sync"],
            &["consistency", "entries"],
            &["guard"],
            &["counting", "uid_tracking"],
        ],
    );
}

#[test]
fn informer_has_no_arrow_up() {
    assert_ranks(
        "informer/src",
        &[
            &["backoff", "callback", "json", "scope", "sync", "timeouts"],
            &["object"],
            &["list_watch", "projection"],
            &["delta", "event", "status"],
            &["delta_fifo", "metrics", "store"],
            &["lister", "reflector"],
            &["index"],
            &["mutation_cache", "processor"],
            &["apply"],
            &["shared"],
            &["factory", "informer_set", "testing"],
        ],
    );
}

#[test]
fn runtime_has_no_arrow_up() {
    assert_ranks(
        "runtime/src",
        &[
            &["text"],
            &["last_errors", "last_reconciles", "reconcile_metrics"],
            &[
                "any_informer",
                "batch",
                "client",
                "conditions",
                "observe",
                "prometheus",
                "shutdown",
                "target",
                "terminal",
                "watch",
                "work_limit",
            ],
            &["discovery", "events", "live", "request"],
            &["outcome"],
            &["apply", "crd", "enqueue", "finalizer", "leader_election", "owner", "reconciler"],
            &["run_error"],
            &["key_source", "owned", "read_your_writes", "turns"],
            &["testing", "worker"],
            &["any_controller"],
            &["controller"],
            &["manager"],
            &["cli"],
        ],
    );
}

#[test]
fn replicaset_has_no_arrow_up() {
    assert_ranks(
        "controllers/replicaset/src",
        &[
            &["gates", "kind", "pod", "selection"],
            &["workload"],
            &["caches", "left_statuses", "pod_events", "ranking", "requests", "status", "template"],
            &["events", "own_writes", "plan"],
            &["scale"],
            &["reconciler"],
            &["controller"],
        ],
    );
}

#[test]
fn sample_has_no_arrow_up() {
    assert_ranks(
        "controllers/sample/src",
        &[&["error", "foo"], &["plan", "reported"], &["requests"], &["reconcile"], &["controller"]],
    );
}

#[test]
fn resourceclaim_has_no_arrow_up() {
    assert_ranks(
        "controllers/resourceclaim/src",
        &[
            &["deleted_uids", "gates", "key", "names", "pod"],
            &["claim", "error", "events", "pods_with_claims"],
            &["metrics", "plan", "requests", "template"],
            &["caches"],
            &["handlers", "status_writer"],
            &["reconciler"],
            &["claim_pass", "creation", "pod_pass"],
            &["controller"],
        ],
    );
}

#[test]
fn resourcequota_has_no_arrow_up() {
    assert_ranks(
        "controllers/resourcequota/src",
        &[
            &["charged", "gates", "plan", "quota", "served", "unfit"],
            &["names", "requested"],
            &["change"],
            &["caches"],
            &["needs"],
            &["monitor", "status_update", "sync_error"],
            &["reconciler", "replenishment"],
            &["controller"],
        ],
    );
}

#[test]
fn quota_has_no_arrow_up() {
    assert_ranks(
        "quota/src",
        &[
            &["gates", "json", "names"],
            &["object", "scope"],
            &["charge", "device_class", "pod_resources"],
            &["qos"],
            &["evaluator"],
            &["quota", "registry"],
            &["admission", "usage"],
        ],
    );
}

#[test]
fn apiserver_has_no_arrow_up() {
    assert_ranks(
        "apiserver/src",
        &[
            &["go_base64", "pem"],
            &["access", "clock", "cluster", "field_selector", "fields", "go_diff", "go_json"],
            &["account_token_flags", "ignored_flags", "json_text", "token_file"],
            &[
                "credentials",
                "definitions",
                "garbage",
                "identity_lease",
                "json_path",
                "kubeconfig",
                "media",
                "metrics",
                "names",
                "object",
                "quantity",
                "state",
                "status",
                "subject",
                "upstream_flags",
            ],
            &["components", "plugin", "pod_security", "recent", "storage", "types"],
            &["arguments", "changes", "kinds", "patch", "read_objects", "reply"],
            &["flow_control", "grants", "policies", "view"],
            &["webhooks"],
            &["admission", "core", "selection", "table"],
            &["request"],
            &["api"],
            &["http"],
            &["server"],
            &["listener"],
            &["duplex"],
        ],
    );
}

#[test]
fn faults_has_no_arrow_up() {
    assert_ranks(
        "faults/src",
        &[
            &[
                "client_name",
                "crash_point",
                "object_match",
                "payload",
                "resource_names",
                "response_body",
            ],
            &["request_body", "request_info", "selection"],
            &["api_error", "calls", "chaos", "conflicting_writer", "object_events", "trace"],
            &["rules"],
            &["object_rules", "stream_fault"],
            &["fault", "open_watches"],
            &["state"],
            &["shared"],
            &["held_watches", "stream"],
            &["crash", "pending_request"],
            &["faults", "service"],
            &["event_rules", "layer", "rule_set", "watch_commands", "watch_rules"],
        ],
    );
}

#[test]
fn testing_has_no_arrow_up() {
    assert_ranks(
        "testing/src",
        &[
            &[
                "control_plane",
                "one_pass",
                "pace",
                "permissions",
                "program",
                "recorded_log",
                "retries",
            ],
            &["simulation"],
            &["oracle", "sweep"],
        ],
    );
}
