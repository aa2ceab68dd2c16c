use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;

/// A pod as the server stores it, the kubelet's plan, and a clock.
struct PodHarness {
    pods: Pods,
    pod: Value,
    at: Moment,
}

fn delays(ready: u64, stop: u64) -> Delays {
    Delays {
        ready: Duration::from_secs(ready),
        stop: Duration::from_secs(stop),
        restart: Duration::from_secs(10),
    }
}

impl PodHarness {
    fn new(nodes: usize, delays: Delays, pod: &Value) -> Self {
        let nodes = (0..nodes).map(|node| format!("node-{node}")).collect();
        let mut stored = json!({
            "metadata": { "namespace": "a", "name": "p", "uid": "u1" },
            "spec": { "nodeName": "node-0", "containers": [{ "name": "c" }] },
            "status": {},
        });
        json_patch::merge(&mut stored, pod);
        let at = Moment { now: Instant::now(), time: Timestamp::UNIX_EPOCH };
        Self { pods: Pods::new(nodes, delays), pod: stored, at }
    }

    /// Creates a pod with an exit script.
    fn with_exits(policy: &str, exits: &str) -> Self {
        let pod = json!({
            "metadata": { "annotations": { "exits.homeostat.dev/c": exits } },
            "spec": { "restartPolicy": policy },
        });
        Self::new(1, delays(0, 0), &pod)
    }

    fn pod(&self) -> Pod {
        serde_json::from_value(self.pod.clone()).unwrap()
    }

    fn plan(&mut self) -> Plan {
        let key = self.pods.apply(Box::new(self.pod()), self.at.now).unwrap();
        self.pods.plan(&key, self.at)
    }

    fn wait(&mut self, seconds: u64) {
        self.at.now += Duration::from_secs(seconds);
        self.at.time += Duration::from_secs(seconds);
    }

    /// Applies the status patches that are due. Returns the container state after each patch, and
    /// the seconds until the next step.
    fn run_due_steps(&mut self) -> (Vec<String>, Option<u64>) {
        let mut states = Vec::new();
        loop {
            match self.plan() {
                Plan::Nothing => return (states, None),
                Plan::Later(time) => return (states, Some((time - self.at.now).as_secs())),
                Plan::Do(Step::PatchStatus(patch)) => {
                    json_patch::merge(&mut self.pod["status"], &patch["status"]);
                    states.push(self.state());
                }
                Plan::Do(other) => panic!("{other:?}"),
            }
        }
    }

    fn state(&self) -> String {
        let status = &self.pod["status"];
        let container = &status["containerStatuses"][0];
        let state = container["state"].as_object().unwrap();
        let (state, of) = state.iter().next().unwrap();
        let ready = if container["ready"] == true { " ready" } else { "" };
        let more = of.get("reason").and_then(Value::as_str).unwrap_or("");
        let phase = status["phase"].as_str().unwrap();
        format!("{phase} {state}{ready} {more} {}", container["restartCount"]).replace("  ", " ")
    }
}

#[tokio::test(start_paused = true)]
async fn pod_is_bound_then_started_then_unchanged() {
    let mut harness = PodHarness::new(2, delays(0, 0), &json!({ "spec": { "nodeName": null } }));
    for node in ["node-0", "node-1", "node-0"] {
        let bind = Step::Bind { uid: "u1".to_owned(), node: node.to_owned() };
        assert_eq!(harness.plan(), Plan::Do(bind));
    }
    harness.pod["spec"]["nodeName"] = json!("node-0");
    assert_eq!(harness.run_due_steps(), (vec!["Running running ready 0".to_owned()], None));
    let conditions = harness.pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|condition| condition["status"] == "True"), "{conditions:?}");
    // Another client made it unready; the kubelet does not change it back.
    harness.pod["status"]["conditions"] = json!([{ "type": "Ready", "status": "False" }]);
    harness.pod["status"]["containerStatuses"][0]["ready"] = json!(false);
    assert_eq!(harness.plan(), Plan::Nothing);
    harness.pod["status"]["phase"] = json!("Failed");
    assert_eq!(harness.plan(), Plan::Nothing);
}

#[tokio::test(start_paused = true)]
async fn pod_is_ready_after_the_delay() {
    let mut harness = PodHarness::new(1, delays(10, 0), &json!({}));
    assert_eq!(harness.run_due_steps(), (vec!["Running running 0".to_owned()], Some(10)));
    let conditions = harness.pod["status"]["conditions"].clone();
    assert_eq!(conditions[0]["message"], "containers with unready status: [c]");
    // An event in between does not restart the delay.
    harness.wait(9);
    assert_eq!(harness.run_due_steps(), (vec![], Some(1)));
    harness.wait(1);
    assert_eq!(harness.run_due_steps(), (vec!["Running running ready 0".to_owned()], None));
}

#[tokio::test(start_paused = true)]
async fn pod_that_another_client_started_is_only_made_ready() {
    let mut harness =
        PodHarness::new(1, delays(0, 0), &json!({ "status": { "phase": "Running" } }));
    assert_eq!(harness.run_due_steps().0, ["Running running ready 0"]);
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let pod = json!({ "status": { "phase": "Running", "conditions": ready } });
    assert_eq!(PodHarness::new(1, delays(0, 0), &pod).plan(), Plan::Nothing);
}

#[tokio::test(start_paused = true)]
async fn restart_delay_of_a_failing_container_doubles() {
    let mut harness = PodHarness::with_exits("Always", "1@5s");
    assert_eq!(harness.run_due_steps(), (vec!["Running running ready 0".to_owned()], Some(5)));
    harness.wait(5);
    // The first restart has no delay.
    let (states, later) = harness.run_due_steps();
    assert_eq!(states, ["Running terminated Error 0", "Running running ready 1"]);
    assert_eq!(later, Some(5));
    for (restarts, wait) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (7, 300)] {
        harness.wait(5);
        let (states, later) = harness.run_due_steps();
        let ended = format!("Running terminated Error {restarts}");
        assert_eq!(states, [ended, format!("Running waiting CrashLoopBackOff {restarts}")]);
        assert_eq!(later, Some(wait));
        let container = &harness.pod["status"]["containerStatuses"][0];
        assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
        assert_eq!(
            container["state"]["waiting"]["message"],
            format!("back-off {wait}s restarting failed container=c")
        );
        harness.wait(wait);
        assert_eq!(harness.run_due_steps().0, [format!("Running running ready {}", restarts + 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn restart_delay_is_reset_after_ten_minutes() {
    let mut harness = PodHarness::with_exits("Always", "1@1s,1@1s,0@600s,0@1s");
    harness.run_due_steps();
    for wait in [1, 1, 10, 600] {
        harness.wait(wait);
        harness.run_due_steps();
    }
    assert_eq!(harness.state(), "Running running ready 3", "restarted without delay");
}

#[tokio::test(start_paused = true)]
async fn pod_that_is_not_restarted_finishes() {
    let mut harness = PodHarness::with_exits("Never", "0@3s");
    assert_eq!(harness.run_due_steps().1, Some(3));
    harness.wait(3);
    let states = vec!["Succeeded terminated Completed 0".to_owned()];
    assert_eq!(harness.run_due_steps(), (states, None));
    let ready = &harness.pod["status"]["conditions"][0];
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("PodCompleted")));
    let ended = &harness.pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["startedAt"], "1970-01-01T00:00:00Z");
    assert_eq!(ended["finishedAt"], "1970-01-01T00:00:03Z");

    let mut harness = PodHarness::with_exits("Never", "7@0s");
    let states = ["Running running ready 0", "Failed terminated Error 0"].map(str::to_owned);
    assert_eq!(harness.run_due_steps(), (states.to_vec(), None));

    let mut harness = PodHarness::with_exits("OnFailure", "7@0s,0@0s");
    let (states, later) = harness.run_due_steps();
    assert_eq!(
        states[1..],
        [
            "Running terminated Error 0",
            "Running running ready 1",
            "Succeeded terminated Completed 1"
        ]
    );
    assert_eq!(later, None);
}

#[tokio::test(start_paused = true)]
async fn pod_finishes_with_its_last_container() {
    let pod = json!({
        "metadata": { "annotations": {
            "exits.homeostat.dev/c": "0@1s", "exits.homeostat.dev/d": "3@2s",
        }},
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }, { "name": "d" }] },
    });
    let mut harness = PodHarness::new(1, delays(0, 0), &pod);
    harness.run_due_steps();
    harness.wait(1);
    assert_eq!(
        harness.run_due_steps(),
        (vec!["Running terminated Completed 0".to_owned()], Some(1))
    );
    let ready = &harness.pod["status"]["conditions"][0];
    assert_eq!(ready["message"], "containers with unready status: [c]");
    harness.wait(1);
    assert_eq!(harness.run_due_steps().0, ["Failed terminated Completed 0"]);
}

#[tokio::test(start_paused = true)]
async fn invalid_exit_script_is_reported_once() {
    let mut harness = PodHarness::with_exits("Always", "soon");
    let states = vec!["Pending waiting CreateContainerConfigError 0".to_owned()];
    assert_eq!(harness.run_due_steps(), (states, None));
    harness.pod["metadata"]["annotations"] = json!({});
    assert_eq!(harness.run_due_steps().0, ["Running running ready 0"]);
}

#[tokio::test(start_paused = true)]
async fn pod_with_finalizers_is_deleted_once() {
    let mut harness =
        PodHarness::new(1, delays(0, 3), &json!({ "status": { "phase": "Running" } }));
    harness.pod["metadata"]["deletionTimestamp"] = json!(Time(Timestamp::UNIX_EPOCH));
    harness.pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    assert_eq!(harness.plan(), Plan::Later(harness.at.now + Duration::from_secs(3)));
    harness.wait(3);
    assert_eq!(harness.plan(), Plan::Do(Step::Delete { uid: "u1".to_owned() }));
    harness.pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    assert_eq!(harness.plan(), Plan::Nothing);
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_with_finalizers_fails_before_its_deletion() {
    let mut harness = PodHarness::new(1, delays(0, 3), &json!({}));
    assert_eq!(harness.run_due_steps(), (vec!["Running running ready 0".to_owned()], None));
    harness.pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    harness.pod["metadata"]["deletionTimestamp"] = json!(Time(Timestamp::UNIX_EPOCH));
    harness.pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    assert_eq!(harness.run_due_steps(), (vec![], Some(3)));
    harness.wait(3);
    let Plan::Do(Step::PatchStatus(patch)) = harness.plan() else { panic!("no status") };
    json_patch::merge(&mut harness.pod["status"], &patch["status"]);
    assert_eq!(harness.state(), "Failed terminated Error 0");
    let ended = &harness.pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 137);
    assert_eq!(harness.plan(), Plan::Do(Step::Delete { uid: "u1".to_owned() }));
    harness.pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    assert_eq!(harness.plan(), Plan::Nothing);
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_the_first_probe() {
    let container = json!({ "name": "c", "readinessProbe": { "initialDelaySeconds": 20 } });
    let pod = json!({ "spec": { "containers": [container] } });
    let mut harness = PodHarness::new(1, delays(10, 0), &pod);
    assert_eq!(harness.run_due_steps(), (vec!["Running running 0".to_owned()], Some(20)));
    harness.wait(20);
    assert_eq!(harness.run_due_steps(), (vec!["Running running ready 0".to_owned()], None));
}

#[tokio::test(start_paused = true)]
async fn pod_is_ready_once_its_readiness_gates_are_open() {
    let gates = json!([{ "conditionType": "a.b/c" }]);
    let mut harness =
        PodHarness::new(1, delays(0, 0), &json!({ "spec": { "readinessGates": gates } }));
    assert_eq!(harness.run_due_steps(), (vec!["Running running ready 0".to_owned()], None));
    let ready = harness.pod["status"]["conditions"][0].clone();
    assert_eq!((&ready["type"], &ready["status"]), (&json!("Ready"), &json!("False")));
    assert_eq!(ready["reason"], "ReadinessGatesNotReady");
    assert_eq!(
        ready["message"],
        "corresponding condition of pod readiness gate \"a.b/c\" does not exist."
    );
    let conditions = harness.pod["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({ "type": "a.b/c", "status": "True" }));
    let Plan::Do(Step::PatchStatus(patch)) = harness.plan() else { panic!("no status") };
    let ready = &patch["status"]["conditions"][0];
    assert_eq!((&ready["type"], &ready["status"]), (&json!("Ready"), &json!("True")));
    harness.pod["status"]["conditions"][0]["status"] = json!("True");
    assert_eq!(harness.plan(), Plan::Nothing);
    harness.pod["status"]["conditions"][3]["status"] = json!("False");
    let Plan::Do(Step::PatchStatus(patch)) = harness.plan() else { panic!("no status") };
    let message = "the status of pod readiness gate \"a.b/c\" is not \"True\", but False";
    assert_eq!(patch["status"]["conditions"][0]["message"], message);
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_nodes_and_deleted_pods_are_not_touched() {
    let mut harness =
        PodHarness::new(1, delays(0, 0), &json!({ "spec": { "nodeName": "node-7" } }));
    assert_eq!(harness.plan(), Plan::Nothing);
    harness.pod["spec"]["nodeName"] = json!("node-0");
    assert!(matches!(harness.plan(), Plan::Do(Step::PatchStatus(_))));
    let key = key(&harness.pod()).unwrap();
    assert!(harness.pods.replace(Vec::new(), harness.at.now).is_empty());
    assert_eq!(harness.pods.plan(&key, harness.at), Plan::Nothing);
    // A late Deleted event of the previous pod of this name.
    let former = harness.pod();
    harness.pod["metadata"]["uid"] = json!("u2");
    harness.pods.apply(Box::new(harness.pod()), harness.at.now).unwrap();
    harness.pods.remove(&former);
    assert!(matches!(harness.pods.plan(&key, harness.at), Plan::Do(Step::PatchStatus(_))));
}

#[tokio::test(start_paused = true)]
async fn gated_pod_is_not_bound_before_its_gates_are_removed() {
    let gated = json!({"spec": {"nodeName": null, "schedulingGates": [{"name": "g"}]}});
    let mut harness = PodHarness::new(1, delays(0, 0), &gated);
    assert!(matches!(harness.plan(), Plan::Nothing));
    json_patch::merge(&mut harness.pod, &json!({"spec": {"schedulingGates": null}}));
    assert!(matches!(harness.plan(), Plan::Do(Step::Bind { .. })));
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_in_turn_before_the_others() {
    let pod = json!({
        "metadata": { "annotations": { "exits.homeostat.dev/second": "1@2s, 0@3s" } },
        "spec": { "initContainers": [{ "name": "first" }, { "name": "second" }] },
    });
    let mut harness = PodHarness::new(1, delays(0, 0), &pod);
    let (states, next) = harness.run_due_steps();
    assert_eq!(
        (states.last().unwrap().as_str(), next),
        ("Pending waiting PodInitializing 0", Some(2))
    );
    let inits = harness.pod["status"]["initContainerStatuses"].clone();
    assert_eq!(inits[0]["state"]["terminated"]["exitCode"], 0);
    assert!(inits[1]["state"]["running"].is_object());
    let of = |harness: &PodHarness, name: &str| {
        let conditions = harness.pod["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|condition| condition["type"] == name).unwrap()
    };
    let initialized = of(&harness, "Initialized");
    assert_eq!(initialized["message"], "containers with incomplete status: [second]");
    // It fails once, and is restarted at once.
    harness.wait(2);
    assert_eq!(harness.run_due_steps().1, Some(3));
    harness.wait(3);
    let (states, next) = harness.run_due_steps();
    assert_eq!((states.last().unwrap().as_str(), next), ("Running running ready 0", None));
    assert_eq!(harness.pod["status"]["initContainerStatuses"][1]["restartCount"], 1);
    assert_eq!(of(&harness, "Initialized")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn failed_init_container_fails_a_pod_without_restarts() {
    let pod = json!({
        "metadata": { "annotations": { "exits.homeostat.dev/init": "1@0s" } },
        "spec": { "restartPolicy": "Never", "initContainers": [{ "name": "init" }] },
    });
    let mut harness = PodHarness::new(1, delays(0, 0), &pod);
    let (states, next) = harness.run_due_steps();
    assert_eq!((states.last().unwrap().as_str(), next), ("Failed waiting PodInitializing 0", None));
}

#[tokio::test(start_paused = true)]
async fn sidecar_goes_on_beside_the_containers() {
    let sidecar = json!({ "name": "proxy", "restartPolicy": "Always" });
    let mut harness =
        PodHarness::new(1, delays(0, 0), &json!({ "spec": { "initContainers": [sidecar] } }));
    let (states, next) = harness.run_due_steps();
    assert_eq!((states.last().unwrap().as_str(), next), ("Running running ready 0", None));
    let proxy = &harness.pod["status"]["initContainerStatuses"][0];
    assert!(proxy["state"]["running"].is_object() && proxy["ready"] == true);
}

#[tokio::test(start_paused = true)]
async fn readiness_follows_the_annotation() {
    let script = json!({ "ready.homeostat.dev/c": "yes@5s, no@20s" });
    let pod = json!({ "metadata": { "annotations": script } });
    let mut harness = PodHarness::new(1, delays(0, 0), &pod);
    assert_eq!(harness.run_due_steps(), (vec!["Running running 0".to_owned()], Some(5)));
    harness.wait(5);
    assert_eq!(harness.run_due_steps(), (vec!["Running running ready 0".to_owned()], Some(15)));
    harness.wait(15);
    assert_eq!(harness.run_due_steps(), (vec!["Running running 0".to_owned()], None));
}

#[tokio::test(start_paused = true)]
async fn each_pod_has_an_address_of_its_own() {
    let mut harness = PodHarness::new(2, delays(0, 0), &json!({}));
    harness.run_due_steps();
    let status = harness.pod["status"].clone();
    assert_eq!(status["hostIP"], "198.18.0.1");
    assert_eq!(status["podIPs"][0]["ip"], status["podIP"]);
    let first = status["podIP"].as_str().unwrap().to_owned();
    assert!(first.starts_with("10."), "{first}");
    // Another pod, whose uid leads to the same address.
    harness.pod["metadata"]["name"] = json!("q");
    harness.pod["status"] = json!({});
    harness.run_due_steps();
    assert_ne!(harness.pod["status"]["podIP"], *first);
    harness.pod["metadata"]["name"] = json!("host");
    harness.pod["spec"]["hostNetwork"] = json!(true);
    harness.pod["status"] = json!({});
    harness.run_due_steps();
    assert_eq!(harness.pod["status"]["podIP"], "198.18.0.1");
}
