use super::*;

fn row(group: &str, kind: &str, object: Value) -> Vec<Value> {
    let Value::Object(object) = object else { unreachable!("an object") };
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let Value::Array(cells) =
        cells(Columns { listed: row_of(group, kind), printed: &[] }, &object, now)
    else {
        unreachable!("a list")
    };
    cells
}

fn pod(status: &Value) -> Vec<Value> {
    let metadata = json!({"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}],
        "initContainers": [{"name": "i"}], "nodeName": "n"});
    row("", "Pod", json!({"metadata": metadata, "spec": spec, "status": status}))
}

#[test]
fn pod_summarizes_its_containers() {
    let running = json!({"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:50:00Z"}}});
    let waiting = json!({"name": "b", "restartCount": 1,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let cells = pod(&json!({"phase": "Running", "containerStatuses": [running, waiting]}));
    let expected = json!([
        "p",
        "1/2",
        "CrashLoopBackOff",
        "3 (10m ago)",
        "60m",
        "<none>",
        "n",
        "<none>",
        "<none>"
    ]);
    assert_eq!(Value::Array(cells), expected);
}

#[test]
fn pod_shows_the_progress_of_its_init_containers() {
    let waiting = json!({"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}});
    assert_eq!(
        pod(&json!({"phase": "Pending", "initContainerStatuses": [waiting]}))[2],
        "Init:0/1"
    );
    let failed = json!({"name": "i", "restartCount": 4, "state": {"terminated": {"exitCode": 3}}});
    let cells = pod(&json!({"phase": "Pending", "initContainerStatuses": [failed]}));
    assert_eq!((&cells[2], &cells[3]), (&json!("Init:ExitCode:3"), &json!("4")));
}

#[test]
fn service_lists_its_ports_and_addresses() {
    let spec = json!({"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80,
        "protocol": "TCP"},
        {"port": 81, "nodePort": 30001, "protocol": "UDP"}], "selector": {"a": "b", "c": "d"}});
    let cells = row("", "Service", json!({"metadata": {"name": "s"}, "spec": spec}));
    let expected = json!([
        "s",
        "LoadBalancer",
        "10.0.0.1",
        "<pending>",
        "80/TCP,81:30001/UDP",
        "<unknown>",
        "a=b,c=d"
    ]);
    assert_eq!(Value::Array(cells), expected);
}

#[test]
fn selector_is_sorted_by_key() {
    let expressions = json!([{"key": "b", "operator": "NotIn", "values": ["y", "x"]}, {"key": "a",
        "operator": "Exists"}]);
    let selector = json!({"matchLabels": {"c": "d"}, "matchExpressions": expressions});
    let spec = json!({"replicas": 3, "selector": selector});
    let cells = row("apps", "ReplicaSet", json!({"metadata": {"name": "r"}, "spec": spec}));
    assert_eq!(cells[7], "a,b notin (x,y),c=d");
    assert_eq!(cells[1], 3);
}

#[test]
fn unlisted_kind_has_a_name_and_an_age() {
    let (_, _, columns) = row_of("example.com", "Widget");
    assert_eq!(columns.iter().map(|column| column.name).collect::<Vec<_>>(), ["Name", "Age"]);
}

#[test]
fn ingress_names_three_hosts_and_counts_the_rules_behind_them() {
    let hosts = |hosts: &[&str]| {
        let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
        let ingress = json!({"metadata": {"name": "i"}, "spec": {"rules": rules}});
        row("networking.k8s.io", "Ingress", ingress)[2].clone()
    };
    assert_eq!(hosts(&[]), "*");
    assert_eq!(hosts(&["", ""]), "*");
    assert_eq!(hosts(&["a", "", "b", "c"]), "a,b,c");
    assert_eq!(hosts(&["a", "b", "c", ""]), "a,b,c + 1 more...");
    assert_eq!(hosts(&["a", "", "b", "c", "d"]), "a,b,c + 2 more...");
}
