//! Changes of leadership are events of the Lease, with client-go's reason and texts.

use std::time::Duration;

use homeostat::kube_client::api::{Api, ListParams, PostParams};
use homeostat::observe::Diagnostics;
use homeostat::{EventRecorder, LeaderElector, client};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{Event, Namespace};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn leader_records_start_and_end_of_its_leadership() {
    let epoch = "2026-06-01T12:00:00Z".parse().unwrap();
    let server = ApiServer::builder().seed(7).epoch(epoch).build();
    let namespace = json!({"metadata": {"name": "shop"}});
    let namespace: Namespace = serde_json::from_value(namespace).unwrap();
    Api::all(server.client()).create(&PostParams::default(), &namespace).await.unwrap();
    let client = || client::builder().service(server.service()).build();
    let elector = LeaderElector::builder(client(), "shop", "lock")
        .identity("me")
        .events(&EventRecorder::builder(client(), "shop-controller").epoch(epoch).seed(7).build())
        .in_virtual_time(epoch, 7)
        .build()
        .unwrap();
    let diagnostics = Diagnostics::new();
    elector.show_in(&diagnostics);
    let shown = || diagnostics.report().elections.remove(0);
    assert_eq!(shown().holder, None);
    let during = diagnostics.clone();
    let work = |_| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let election = during.report().elections.remove(0);
        assert!(election.is_leader);
        assert_eq!(election.since.as_deref(), Some("2026-06-01T12:00:00Z"));
        assert!(election.renewed.is_some_and(|age| age <= Duration::from_secs(2)));
    };
    elector.run(std::future::pending(), work).await.unwrap().unwrap();
    assert_eq!((shown().holder, shown().is_leader), (None, false), "the lease is released");

    let events: Api<Event> = Api::namespaced(server.client(), "shop");
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let messages: Vec<_> = events.iter().filter_map(|event| event.message.as_deref()).collect();
    assert_eq!(messages, ["me became leader", "me stopped leading"]);
    for event in events {
        assert_eq!(event.reason.as_deref(), Some("LeaderElection"));
        assert_eq!(event.type_.as_deref(), Some("Normal"));
        let lease = event.involved_object;
        assert_eq!((lease.kind.as_deref(), lease.name.as_deref()), (Some("Lease"), Some("lock")));
        assert!(lease.uid.is_some_and(|uid| !uid.is_empty()));
    }
}
