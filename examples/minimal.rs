//! Prints every pod that comes, changes and goes: `cargo run --example minimal`. For pods of a
//! cluster, replace the first line of `main` by
//! `let client = homeostat::client::builder().infer().await?.build();`.

use homeostat::kube_client::Api;
use homeostat::kube_client::api::PostParams;
use homeostat::{Event, SharedInformerFactory};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
async fn main() -> anyhow::Result<()> {
    let client = ApiServer::new().client();
    let informers = SharedInformerFactory::new(&client);
    let pods = informers.informer::<Pod>();
    let _subscription = pods.add_handler("print", |event: Event<Pod>| println!("{event:?}"));
    informers.start();

    let api = Api::<Pod>::default_namespaced(client);
    let pod = r#"{"metadata":{"name":"hello"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let made = api.create(&PostParams::default(), &serde_json::from_str(pod)?).await?;
    pods.wait_for_version(&made.metadata.resource_version.unwrap_or_default().into()).await;
    println!("{} pod in the cache", pods.lister().len());
    informers.stop().await;
    Ok(())
}
