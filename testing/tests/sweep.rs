//! The sweep finds a controller that keeps its progress in memory only, and passes one that does
//! not.

use std::time::Duration;

use homeostat_apiserver::{ApiServer, Kind};
use homeostat_faults::{ApiError, Calls, CrashPoint, Verb};
use homeostat_testing::{
    CONTROLLER, Outcome, Plan, Simulation, crash_at_every_call, disturb_every_event,
    in_virtual_time, oracle,
};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, Patch, PatchParams,
    PostParams, WatchParams,
};
use kube_client::{Api, Client};
use kube_core::Resource as _;
use serde_json::json;

fn map(name: Option<&str>, prefix: Option<&str>) -> ConfigMap {
    let metadata = ObjectMeta {
        name: name.map(str::to_owned),
        generate_name: prefix.map(str::to_owned),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

async fn a_minute(simulation: &Simulation) -> Outcome {
    tokio::time::sleep(Duration::from_secs(60)).await;
    Ok(oracle::end_state(simulation, &[ApiResource::erase::<ConfigMap>(&())]).await?)
}

/// Creates `a` and `b` until both exist.
async fn named(client: Client) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    for name in ["a", "b"] {
        while !matches!(maps.get_opt(name).await, Ok(Some(_))) {
            drop(maps.create(&PostParams::default(), &map(Some(name), None)).await);
        }
    }
}

/// Creates one map with a generated name, and does not look for an earlier one.
async fn generated(client: Client) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    while maps.create(&PostParams::default(), &map(None, Some("web-"))).await.is_err() {}
}

#[test]
fn controller_with_derived_names_survives_every_plan() {
    let sweep = crash_at_every_call(3, a_minute, named).unwrap();
    assert_eq!((sweep.calls, sweep.runs), (2, 7));
}

#[test]
fn controller_that_repeats_a_create_is_found_with_the_shortest_plan() {
    let failure = crash_at_every_call(3, a_minute, generated).unwrap_err();
    assert_eq!(failure.plan(), Some(Plan::Crash(CrashPoint::After(1))));
    let message = failure.to_string();
    assert!(message.contains("client crashes after this call"), "{message}");
    assert!(message.contains("HOMEOSTAT_PLAN=\"crash after mutating call 1\""), "{message}");
}

/// Leaves its work to a task, and returns.
#[expect(clippy::disallowed_methods, reason = "controllers do so")]
async fn spawned(client: Client) {
    drop(tokio::task::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        named(client).await;
    }));
}

#[test]
fn controller_whose_own_write_causes_the_next_one_is_found() {
    async fn restless(client: Client) {
        let maps = Api::<ConfigMap>::default_namespaced(client);
        drop(maps.create(&PostParams::default(), &map(Some("a"), None)).await);
        for number in 0_u64.. {
            let patch = json!({"data": {"number": number.to_string()}});
            drop(maps.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await);
        }
    }
    async fn comes_to_rest(simulation: &Simulation) -> Outcome {
        let (settle, quiet) = (Duration::from_secs(1), Duration::from_secs(1));
        oracle::requests_fall_to_zero(simulation, CONTROLLER, settle, quiet).await?;
        Ok(serde_json::Value::Null)
    }
    let failure = crash_at_every_call(3, comes_to_rest, restless).unwrap_err();
    assert_eq!(failure.plan(), None);
    assert!(failure.to_string().contains("100 × patch configmaps"), "{failure}");
}

#[test]
fn controller_that_leaves_its_work_to_a_task_has_a_successor_after_the_crash() {
    let sweep = crash_at_every_call(3, a_minute, spawned).unwrap();
    assert_eq!((sweep.calls, sweep.runs), (2, 7));
}

#[test]
fn observed_generation_is_compared_with_that_of_the_object() {
    let state = |replicas: &[i32], observed: i64| {
        in_virtual_time(async {
            let simulation = Simulation::start(1);
            let sets = Api::<ReplicaSet>::default_namespaced(simulation.user().clone());
            let apply = PatchParams::apply("user").force();
            for replicas in replicas {
                let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
                    "metadata": {"name": "web"}, "spec": {"replicas": replicas,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
                sets.patch("web", &apply, &Patch::Apply(set)).await.unwrap();
            }
            let status = json!({"status": {"replicas": 0, "observedGeneration": observed}});
            let params = PatchParams::default();
            sets.patch_status("web", &params, &Patch::Merge(status)).await.unwrap();
            let kinds = [ApiResource::erase::<ReplicaSet>(&())];
            oracle::end_state(&simulation, &kinds).await.unwrap()
        })
    };
    // A change that was made and undone.
    assert_eq!(state(&[1], 1), state(&[1, 2, 1], 3));
    assert_ne!(state(&[1], 1), state(&[1, 2, 1], 2));
}

#[test]
fn sweep_of_a_controller_that_changes_nothing_is_an_error() {
    async fn idle(_: Client) {}
    let failure = crash_at_every_call(3, a_minute, idle).unwrap_err();
    assert_eq!(failure.plan(), None);
    assert!(failure.to_string().contains("no mutating call"), "{failure}");
    let failure = disturb_every_event(3, a_minute, idle).unwrap_err();
    assert!(failure.to_string().contains("no mutating call and no event"), "{failure}");
}

#[test]
fn client_that_sends_no_request_at_all_is_not_quiet() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let client = simulation.client_as(CONTROLLER);
        drop(Api::<ConfigMap>::default_namespaced(client).get_opt("a").await);
        let quiet = Duration::from_secs(60);
        oracle::requests_fall_to_zero(&simulation, CONTROLLER, quiet, quiet).await.unwrap();
        oracle::no_hot_loop(&simulation, CONTROLLER, 0, quiet).await.unwrap();
        let sent_nothing = Err("controler has sent no request: is this its name?".to_owned());
        let found = oracle::requests_fall_to_zero(&simulation, "controler", quiet, quiet).await;
        assert_eq!(found, sent_nothing);
        assert_eq!(oracle::no_hot_loop(&simulation, "controler", 0, quiet).await, sent_nothing);
    });
}

#[test]
fn bystanders_that_do_not_exist_are_an_error() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let kinds = [ApiResource::erase::<Pod>(&())];
        let others = oracle::bystanders(&simulation, &kinds).await.unwrap();
        let found = oracle::are_untouched(&simulation, &others).await;
        assert_eq!(found, Err("there are no bystanders, so nothing was checked".to_owned()));
    });
}

#[test]
fn client_of_a_simulation_repeats_creates_as_the_production_client_does() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let timeout = ApiError::timeout();
        simulation.faults().replace_reply(Calls::create("configmaps").by(CONTROLLER), timeout);
        let create = async |client| {
            let maps = Api::<ConfigMap>::default_namespaced(client);
            maps.create(&PostParams::default(), &map(None, Some("web-"))).await.unwrap();
        };
        create(simulation.client_as(CONTROLLER)).await;
        assert_eq!(simulation.faults().count(Verb::Create, "configmaps"), 2);
    });
}

#[test]
fn requests_of_a_crashed_client_do_not_count() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let crash = simulation.faults().crash_at(CONTROLLER, CrashPoint::Before(1));
        let left = Api::<ConfigMap>::default_namespaced(simulation.client_as(CONTROLLER));
        // A task of the crashed controller: its requests get no answer, and it sends more.
        let create =
            async || drop(left.create(&PostParams::default(), &map(Some("a"), None)).await);
        let loops = async {
            loop {
                drop(tokio::time::timeout(Duration::from_secs(1), create()).await);
            }
        };
        let successor = async {
            crash.reached().await;
            let maps = Api::<ConfigMap>::default_namespaced(simulation.client_as(CONTROLLER));
            maps.get_opt("a").await.unwrap();
            let (settle, quiet) = (Duration::from_secs(5), Duration::from_secs(60));
            oracle::requests_fall_to_zero(&simulation, CONTROLLER, settle, quiet).await
        };
        tokio::select! { found = successor => found.unwrap(), () = loops => {} }
        let requests = simulation.faults().requests_by(CONTROLLER);
        assert_eq!(requests[&(Verb::Get, "configmaps".to_owned())], 1);
    });
}

/// Lists once per 5 minutes, as an informer does in an idle cluster: before it opens a watch.
async fn list_again_and_again(maps: &Api<ConfigMap>, is_informer: bool) -> Result<(), String> {
    loop {
        let list = maps.list(&ListParams::default().limit(1)).await;
        let list = list.map_err(|error| error.to_string())?;
        if is_informer {
            let version = list.metadata.resource_version.unwrap_or_default();
            let watch = maps.watch(&WatchParams::default(), &version).await;
            drop(watch.map_err(|error| error.to_string())?);
        }
        tokio::time::sleep(Duration::from_secs(300)).await;
    }
}

#[test]
fn list_of_an_informer_is_quiet_while_a_list_alone_is_not() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let maps = Api::<ConfigMap>::default_namespaced(simulation.client_as(CONTROLLER));
        let (settle, quiet) = (Duration::from_secs(5), Duration::from_secs(600));
        for is_informer in [true, false] {
            let lists = list_again_and_again(&maps, is_informer);
            let found = oracle::requests_fall_to_zero(&simulation, CONTROLLER, settle, quiet);
            let found = tokio::select! { found = found => found, failed = lists => failed };
            match found {
                Ok(()) => assert!(is_informer),
                Err(text) => assert!(!is_informer && text.contains("list configmaps"), "{text}"),
            }
        }
    });
}

#[test]
fn hot_loop_is_found() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let maps = Api::<ConfigMap>::default_namespaced(simulation.client_as(CONTROLLER));
        let hot = async {
            loop {
                drop(maps.get_opt("a").await);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let (settle, quiet) = (Duration::from_secs(5), Duration::from_secs(60));
        let found = oracle::requests_fall_to_zero(&simulation, CONTROLLER, settle, quiet);
        let found = tokio::select! { found = found => found, () = hot => Ok(()) };
        assert!(found.unwrap_err().contains("get configmaps"));
        oracle::requests_fall_to_zero(&simulation, CONTROLLER, settle, quiet).await.unwrap();
    });
}

#[test]
fn end_state_is_returned_once_nothing_changes() {
    let kinds = [ApiResource::erase::<ConfigMap>(&())];
    let (quiet, timeout) = (Duration::from_secs(10), Duration::from_secs(60));
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
        let late = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            maps.create(&PostParams::default(), &map(Some("late"), None)).await.unwrap();
        };
        let converged = oracle::converges(&simulation, &kinds, quiet, timeout);
        let (state, ()) = futures::join!(converged, late);
        assert!(state.unwrap().to_string().contains("late"));
        let restless = async {
            loop {
                maps.create(&PostParams::default(), &map(None, Some("web-"))).await.unwrap();
                tokio::time::sleep(Duration::from_secs(4)).await;
            }
        };
        let converged = oracle::converges(&simulation, &kinds, quiet, timeout);
        let state = tokio::select! { state = converged => state, () = restless => unreachable!() };
        assert!(state.unwrap_err().contains("still change after 60s: configmaps default/web-"));
    });
}

#[test]
fn touched_object_of_others_is_found() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let kinds = [ApiResource::erase::<ConfigMap>(&())];
        let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
        for name in ["a", "b"] {
            maps.create(&PostParams::default(), &map(Some(name), None)).await.unwrap();
        }
        let others = oracle::bystanders(&simulation, &kinds).await.unwrap();
        maps.create(&PostParams::default(), &map(Some("c"), None)).await.unwrap();
        oracle::are_untouched(&simulation, &others).await.unwrap();
        maps.delete("b", &kube_client::api::DeleteParams::default()).await.unwrap();
        let found = oracle::are_untouched(&simulation, &others).await.unwrap_err();
        assert_eq!(found, "objects of others were touched: configmaps default/b");
    });
}

#[test]
fn polling_is_measured_against_a_limit() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        let maps = Api::<ConfigMap>::default_namespaced(simulation.client_as(CONTROLLER));
        let polls = async {
            loop {
                drop(maps.get_opt("a").await);
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        };
        let checks = async {
            let minute = Duration::from_secs(59);
            oracle::no_hot_loop(&simulation, CONTROLLER, 6, minute).await.unwrap();
            oracle::no_hot_loop(&simulation, CONTROLLER, 5, minute).await.unwrap_err()
        };
        let found = tokio::select! { found = checks => found, () = polls => unreachable!() };
        assert_eq!(found, "controller sends 6 requests in 59s instead of at most 5");
    });
}

#[test]
fn children_of_any_kind_are_collected_on_request() {
    in_virtual_time(async {
        let simulation = Simulation::start(1);
        simulation.collect_every_kind().await.unwrap();
        let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
        let owner = maps.create(&PostParams::default(), &map(Some("owner"), None)).await.unwrap();
        let mut child = map(Some("child"), None);
        child.metadata.owner_references = Some(vec![owner.owner_ref(&()).unwrap()]);
        maps.create(&PostParams::default(), &child).await.unwrap();
        maps.delete("owner", &kube_client::api::DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(maps.get_opt("child").await.unwrap().is_none());
    });
}

#[test]
fn owners_of_one_name_in_two_namespaces_have_their_own_children() {
    in_virtual_time(async {
        let simulation = Simulation::start(7);
        let child = async |namespace: &str, name: &str| {
            let owner = json!({"apiVersion": "v1", "kind": "Secret", "name": "web",
                               "uid": format!("uid-{namespace}"), "controller": true});
            let map = json!({"metadata": {"name": name, "ownerReferences": [owner]}});
            let map: ConfigMap = serde_json::from_value(map).unwrap();
            let maps = Api::<ConfigMap>::namespaced(simulation.user().clone(), namespace);
            maps.create(&PostParams::default(), &map).await.unwrap();
        };
        let kind = ApiResource::erase::<ConfigMap>(&());
        child("default", "a").await;
        child("kube-system", "a").await;
        oracle::no_duplicate_children(&simulation, &kind, 1).await.unwrap();
        child("default", "b").await;
        let found = oracle::no_duplicate_children(&simulation, &kind, 1).await.unwrap_err();
        assert_eq!(found, "Secret web has 2 configmaps instead of at most 1: a, b");
    });
}

#[test]
fn bystanders_of_one_plural_in_two_groups_are_different_objects() {
    in_virtual_time(async {
        let foos = Kind::custom("example.com", "v1", "Foo", "configmaps");
        let simulation = Simulation::around(1, ApiServer::builder().seed(1).kind(foos).build());
        let foo = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("example.com", "v1", "Foo"),
            "configmaps",
        );
        let user = simulation.user();
        let maps = Api::<ConfigMap>::default_namespaced(user.clone());
        maps.create(&PostParams::default(), &map(Some("a"), None)).await.unwrap();
        let foos = Api::<DynamicObject>::default_namespaced_with(user.clone(), &foo);
        foos.create(&PostParams::default(), &DynamicObject::new("a", &foo)).await.unwrap();
        let kinds = [ApiResource::erase::<ConfigMap>(&()), foo];
        let others = oracle::bystanders(&simulation, &kinds).await.unwrap();
        maps.delete("a", &kube_client::api::DeleteParams::default()).await.unwrap();
        let found = oracle::are_untouched(&simulation, &others).await.unwrap_err();
        assert_eq!(found, "objects of others were touched: configmaps default/a");
    });
}
