//! Read-your-writes: no reconcile starts on a cache that is older than the key's own writes.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, PostParams};
use homeostat::{Action, Controller, Manager, ReadYourWrites};
use http::Response;
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::sleep;
use tower::BoxError;

use super::support::{Cluster, Foo, Seen, config_map, foo, no_factory, recorder};

/// Returns a client whose server stores each write as `version`.
fn server(version: u64, writes: &ReadYourWrites<Foo>) -> Client {
    let service = tower::service_fn(move |_| async move {
        let body = format!(
            r#"{{"metadata":{{"name":"made","namespace":"ns","resourceVersion":"{version}"}}}}"#
        );
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
    });
    homeostat::client::builder().service(service).layer(&writes.layer()).build()
}

/// Creates a config map if the key is `ns/web`.
async fn create_for_web(client: Client, seen: Seen) -> Result<Action, BoxError> {
    if seen.keys().last().is_some_and(|key| key == "ns/web") {
        let maps = Api::<ConfigMap>::namespaced(client, "ns");
        maps.create(&PostParams::default(), &config_map("made")).await?;
    }
    Ok(Action::AwaitChange)
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_until_the_cache_shows_the_keys_own_writes() {
    let cluster = Cluster::new([foo("web", "1"), foo("db", "2")]);
    let writes =
        ReadYourWrites::new("test").cache(&cluster.foos.informer).cache(&cluster.maps.informer);
    // The next change of a config map is version 2.
    let client = server(3, &writes);
    let (reconciler, seen) = recorder(move |seen| create_for_web(client.clone(), seen));
    let controller = Controller::builder("foo", &cluster.foos.informer)
        .read_your_writes(&writes)
        .build(reconciler);
    let story = async {
        sleep(Duration::from_millis(500)).await;
        assert_eq!(seen.sorted_keys(), ["ns/db", "ns/web"]);
        seen.clear();
        cluster.foos.apply(foo("web", "1"));
        cluster.foos.apply(foo("db", "2"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), ["ns/db"], "the other key has written nothing");
        cluster.maps.apply(config_map("first"));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(seen.keys(), ["ns/db"], "the cache is still older than the write");
        seen.clear();
        cluster.maps.apply(config_map("made"));
        sleep(Duration::from_millis(10)).await;
        assert_eq!(seen.lines(), ["ns/web configmaps caught up"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "has a cache of configmaps already")]
async fn second_cache_of_a_kind_panics() {
    let (one, two) = (Cluster::new([]), Cluster::new([]));
    drop(ReadYourWrites::<Foo>::new("test").cache(&one.maps.informer).cache(&two.maps.informer));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "another controller has this ReadYourWrites already")]
async fn record_of_writes_serves_one_controller() {
    let cluster = Cluster::new([]);
    let writes = ReadYourWrites::new("test").cache(&cluster.maps.informer);
    for name in ["one", "two"] {
        let controller =
            Controller::builder(name, &cluster.foos.informer).read_your_writes(&writes);
        drop(controller.build(recorder(|_| std::future::ready(Ok(Action::AwaitChange))).0));
    }
}
