//! Events: similar ones are combined, equal ones are counted, and those of `events.k8s.io/v1` form
//! a series.
//!
//! ```text
//! cargo run --example events                         # embedded API server
//! cargo run --example events -- --kubeconfig F       # a cluster: see `kubectl get events`
//! ```

use std::path::PathBuf;

use clap::Parser;
use homeostat::EventRecorder;
use homeostat::events::{EventsApi, NewEvent, reference};
use homeostat::kube_client::api::{ListParams, PostParams};
use homeostat::kube_client::{Api, Client};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;

/// Records events about a config map, and prints what the server has of them.
#[derive(Debug, Parser)]
struct Arguments {
    /// Use the cluster that this kubeconfig names.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::new(); // It is in this process, and unused with a cluster.
    let client = match &Arguments::parse().kubeconfig {
        Some(path) => homeostat::client::builder().kubeconfig(path).await?.build(),
        None => server.client(),
    };
    let namespace = client.default_namespace().to_owned();
    let maps = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
    let map = r#"{"metadata": {"generateName": "events-example-"}}"#;
    let map = maps.create(&PostParams::default(), &serde_json::from_str(map)?).await?;
    record(&client, &map, EventsApi::Core).await;
    record(&client, &map, EventsApi::Series).await;
    print(&client, &map).await
}

/// Records 30 events with different messages, 3 equal ones, and one about two objects.
#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
async fn record(client: &Client, map: &ConfigMap, api: EventsApi) {
    let component = format!("example-{api:?}").to_lowercase();
    let events = EventRecorder::builder(client.clone(), component).api(api).build();
    for n in 0..30 {
        events.normal(map, "Counted", format!("number {n}"));
    }
    for _ in 0..3 {
        events.warning(map, "Refused", "quota \"shop\" is exceeded");
    }
    let both = NewEvent::normal(reference(map), "Copied", "copied to another map");
    events.publish(both.action("Copying").related(reference(map)));
    events.shut_down().await;
    println!("{api:?}: {:?}", events.counts());
}

/// Prints the events about `map`. The server shows those of both APIs in each of them.
#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
async fn print(client: &Client, map: &ConfigMap) -> anyhow::Result<()> {
    let events = Api::<Event>::default_namespaced(client.clone());
    for event in events.list(&ListParams::default()).await?.items {
        if event.regarding.is_none_or(|regarding| regarding.uid != map.metadata.uid) {
            continue;
        }
        let series = event.series.map(|series| format!("series of {}", series.count));
        let count = event.deprecated_count.map(|count| format!("count {count}"));
        println!(
            "{} {}: {} ({})",
            event.type_.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.note.unwrap_or_default(),
            series.or(count).unwrap_or_else(|| "once".to_owned()),
        );
    }
    Ok(())
}
