use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;

/// A pod as the server has it, a kubelet, and a clock.
struct Scene {
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

impl Scene {
    fn new(nodes: usize, delays: Delays, pod: &Value) -> Self {
        let nodes = (0..nodes).map(|node| format!("node-{node}")).collect();
        let mut made = json!({
            "metadata": { "namespace": "a", "name": "p", "uid": "u1" },
            "spec": { "nodeName": "node-0", "containers": [{ "name": "c" }] },
            "status": {},
        });
        json_patch::merge(&mut made, pod);
        let at = Moment { now: Instant::now(), time: Timestamp::UNIX_EPOCH };
        Self { pods: Pods::new(nodes, delays), pod: made, at }
    }

    /// A pod with these exits.
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
        let key = self.pods.apply(self.pod(), self.at.now).unwrap();
        self.pods.plan(&key, self.at)
    }

    fn wait(&mut self, seconds: u64) {
        self.at.now += Duration::from_secs(seconds);
        self.at.time += Duration::from_secs(seconds);
    }

    /// Does what is due until there is nothing to do, and says how the container was after each step.
    fn until_later(&mut self) -> (Vec<String>, Option<u64>) {
        let mut told = Vec::new();
        loop {
            match self.plan() {
                Plan::Nothing => return (told, None),
                Plan::Later(time) => return (told, Some((time - self.at.now).as_secs())),
                Plan::Do(Step::Report(patch)) => {
                    json_patch::merge(&mut self.pod["status"], &patch["status"]);
                    told.push(self.words());
                }
                Plan::Do(other) => panic!("{other:?}"),
            }
        }
    }

    fn words(&self) -> String {
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
async fn a_pod_is_bound_then_run_then_left_alone() {
    let mut scene = Scene::new(2, delays(0, 0), &json!({ "spec": { "nodeName": null } }));
    for node in ["node-0", "node-1", "node-0"] {
        let bind = Step::Bind { uid: "u1".to_owned(), node: node.to_owned() };
        assert_eq!(scene.plan(), Plan::Do(bind));
    }
    scene.pod["spec"]["nodeName"] = json!("node-0");
    assert_eq!(scene.until_later(), (vec!["Running running ready 0".to_owned()], None));
    let conditions = scene.pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|condition| condition["status"] == "True"), "{conditions:?}");
    // Somebody made it unready: that is meant.
    scene.pod["status"]["conditions"] = json!([{ "type": "Ready", "status": "False" }]);
    scene.pod["status"]["containerStatuses"][0]["ready"] = json!(false);
    assert_eq!(scene.plan(), Plan::Nothing);
    scene.pod["status"]["phase"] = json!("Failed");
    assert_eq!(scene.plan(), Plan::Nothing);
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_its_delay() {
    let mut scene = Scene::new(1, delays(10, 0), &json!({}));
    assert_eq!(scene.until_later(), (vec!["Running running 0".to_owned()], Some(10)));
    let conditions = scene.pod["status"]["conditions"].clone();
    assert_eq!(conditions[0]["message"], "containers with unready status: [c]");
    // Another event on the way does not start the delay anew.
    scene.wait(9);
    assert_eq!(scene.until_later(), (vec![], Some(1)));
    scene.wait(1);
    assert_eq!(scene.until_later(), (vec!["Running running ready 0".to_owned()], None));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_else_runs_is_only_made_ready() {
    let mut scene = Scene::new(1, delays(0, 0), &json!({ "status": { "phase": "Running" } }));
    assert_eq!(scene.until_later().0, ["Running running ready 0"]);
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let pod = json!({ "status": { "phase": "Running", "conditions": ready } });
    assert_eq!(Scene::new(1, delays(0, 0), &pod).plan(), Plan::Nothing);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_fails_is_restarted_later_each_time() {
    let mut scene = Scene::with_exits("Always", "1@5s");
    assert_eq!(scene.until_later(), (vec!["Running running ready 0".to_owned()], Some(5)));
    scene.wait(5);
    // The first time at once.
    let (told, later) = scene.until_later();
    assert_eq!(told, ["Running terminated Error 0", "Running running ready 1"]);
    assert_eq!(later, Some(5));
    for (restarts, wait) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (7, 300)] {
        scene.wait(5);
        let (told, later) = scene.until_later();
        let ended = format!("Running terminated Error {restarts}");
        assert_eq!(told, [ended, format!("Running waiting CrashLoopBackOff {restarts}")]);
        assert_eq!(later, Some(wait));
        let container = &scene.pod["status"]["containerStatuses"][0];
        assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
        assert_eq!(
            container["state"]["waiting"]["message"],
            format!("back-off {wait}s restarting failed container=c")
        );
        scene.wait(wait);
        assert_eq!(scene.until_later().0, [format!("Running running ready {}", restarts + 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_run_makes_up_for_what_was_before() {
    let mut scene = Scene::with_exits("Always", "1@1s,1@1s,0@600s,0@1s");
    scene.until_later();
    for wait in [1, 1, 10, 600] {
        scene.wait(wait);
        scene.until_later();
    }
    assert_eq!(scene.words(), "Running running ready 3", "at once, after ten minutes");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_restarted_finishes() {
    let mut scene = Scene::with_exits("Never", "0@3s");
    assert_eq!(scene.until_later().1, Some(3));
    scene.wait(3);
    let told = vec!["Succeeded terminated Completed 0".to_owned()];
    assert_eq!(scene.until_later(), (told, None));
    let ready = &scene.pod["status"]["conditions"][0];
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("PodCompleted")));
    let ended = &scene.pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["startedAt"], "1970-01-01T00:00:00Z");
    assert_eq!(ended["finishedAt"], "1970-01-01T00:00:03Z");

    let mut scene = Scene::with_exits("Never", "7@0s");
    let told = ["Running running ready 0", "Failed terminated Error 0"].map(str::to_owned);
    assert_eq!(scene.until_later(), (told.to_vec(), None));

    let mut scene = Scene::with_exits("OnFailure", "7@0s,0@0s");
    let (told, later) = scene.until_later();
    assert_eq!(
        told[1..],
        [
            "Running terminated Error 0",
            "Running running ready 1",
            "Succeeded terminated Completed 1"
        ]
    );
    assert_eq!(later, None);
}

#[tokio::test(start_paused = true)]
async fn a_pod_finishes_with_its_last_container() {
    let pod = json!({
        "metadata": { "annotations": {
            "exits.homeostat.dev/c": "0@1s", "exits.homeostat.dev/d": "3@2s",
        }},
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }, { "name": "d" }] },
    });
    let mut scene = Scene::new(1, delays(0, 0), &pod);
    scene.until_later();
    scene.wait(1);
    assert_eq!(scene.until_later(), (vec!["Running terminated Completed 0".to_owned()], Some(1)));
    let ready = &scene.pod["status"]["conditions"][0];
    assert_eq!(ready["message"], "containers with unready status: [c]");
    scene.wait(1);
    assert_eq!(scene.until_later().0, ["Failed terminated Completed 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_script_that_cannot_be_read_is_told_once() {
    let mut scene = Scene::with_exits("Always", "soon");
    let told = vec!["Pending waiting CreateContainerConfigError 0".to_owned()];
    assert_eq!(scene.until_later(), (told, None));
    scene.pod["metadata"]["annotations"] = json!({});
    assert_eq!(scene.until_later().0, ["Running running ready 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_finished_once_even_if_finalizers_keep_it() {
    let mut scene = Scene::new(1, delays(0, 3), &json!({ "status": { "phase": "Running" } }));
    scene.pod["metadata"]["deletionTimestamp"] = json!(Time(Timestamp::UNIX_EPOCH));
    scene.pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    assert_eq!(scene.plan(), Plan::Later(scene.at.now + Duration::from_secs(3)));
    scene.wait(3);
    assert_eq!(scene.plan(), Plan::Do(Step::Finish { uid: "u1".to_owned() }));
    scene.pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    assert_eq!(scene.plan(), Plan::Nothing);
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_nodes_and_pods_that_are_gone_are_left_alone() {
    let mut scene = Scene::new(1, delays(0, 0), &json!({ "spec": { "nodeName": "node-7" } }));
    assert_eq!(scene.plan(), Plan::Nothing);
    scene.pod["spec"]["nodeName"] = json!("node-0");
    assert!(matches!(scene.plan(), Plan::Do(Step::Report(_))));
    let key = key(&scene.pod()).unwrap();
    assert!(scene.pods.replace(Vec::new(), scene.at.now).is_empty());
    assert_eq!(scene.pods.plan(&key, scene.at), Plan::Nothing);
    // A late Deleted of the pod that had the name before.
    let former = scene.pod();
    scene.pod["metadata"]["uid"] = json!("u2");
    scene.pods.apply(scene.pod(), scene.at.now).unwrap();
    scene.pods.remove(&former);
    assert!(matches!(scene.pods.plan(&key, scene.at), Plan::Do(Step::Report(_))));
}
