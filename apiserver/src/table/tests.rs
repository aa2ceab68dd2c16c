use super::*;

fn row(group: &str, kind: &str, object: Value) -> Vec<Value> {
    let Value::Object(object) = object else { unreachable!("an object") };
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let Value::Array(cells) = cells(columns::of(group, kind), &object, now) else {
        unreachable!("a list")
    };
    cells
}

fn pod(status: &Value) -> Vec<Value> {
    let metadata = json!({"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}], "nodeName": "n"});
    row("", "Pod", json!({"metadata": metadata, "spec": spec, "status": status}))
}

#[test]
fn a_pod_sums_up_its_containers() {
    let running = json!({"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:50:00Z"}}});
    let waiting = json!({"name": "b", "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
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
fn a_pod_says_how_far_its_init_containers_are() {
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
fn a_service_lists_its_ports_and_addresses() {
    let spec = json!({"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"},
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
fn a_selector_is_in_the_order_of_its_keys() {
    let expressions = json!([{"key": "b", "operator": "NotIn", "values": ["y", "x"]}, {"key": "a", "operator": "Exists"}]);
    let selector = json!({"matchLabels": {"c": "d"}, "matchExpressions": expressions});
    let spec = json!({"replicas": 3, "selector": selector});
    let cells = row("apps", "ReplicaSet", json!({"metadata": {"name": "r"}, "spec": spec}));
    assert_eq!(cells[7], "a,b notin (x,y),c=d");
    assert_eq!(cells[1], 3);
}

#[test]
fn a_kind_that_is_not_listed_has_a_name_and_an_age() {
    let columns = columns::of("example.com", "Widget");
    assert_eq!(columns.iter().map(|column| column.name).collect::<Vec<_>>(), ["Name", "Age"]);
}
