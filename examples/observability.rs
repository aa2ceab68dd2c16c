//! Readiness, metrics and the debug page of a controller one of whose keys fails.
//!
//! ```text
//! cargo run --example observability               # prints the pages, and ends
//! cargo run --example observability -- --serve    # serves them until Ctrl-C: open the URL
//! ```

use std::time::Duration;

use clap::Parser;
use homeostat::kube_client::Api;
use homeostat::kube_client::api::PostParams;
use homeostat::observe::{Diagnostics, ObserveServer, serve};
use homeostat::{
    Action, Controller, Manager, Reconciler, Request, SharedInformerFactory,
    install_prometheus_recorder, shutdown_signal,
};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Shows the pages of a controller.
#[derive(Debug, Parser)]
struct Arguments {
    /// Serve the pages until Ctrl-C.
    #[arg(long)]
    serve: bool,
}

/// Fails for the config map `broken`.
struct Check;

impl Reconciler<ConfigMap> for Check {
    type Error = std::io::Error;

    async fn reconcile(&self, request: &Request<ConfigMap>) -> Result<Action, Self::Error> {
        match request.key().name() {
            "broken" => Err(std::io::Error::other("no such shop")),
            _ => Ok(Action::RequeueAfter(Duration::from_secs(60))),
        }
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    // First: a part that is built before it has no metrics.
    let recorder = install_prometheus_recorder()?;
    let diagnostics = Diagnostics::new();
    diagnostics.metrics(move || recorder.render());
    let pages = serve(([127, 0, 0, 1], 0).into(), &diagnostics).await?;
    println!("http://{}/debug", pages.address());

    let client = ApiServer::new().client();
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    for name in ["fine", "broken"] {
        let map = serde_json::from_value(serde_json::json!({"metadata": {"name": name}}))?;
        maps.create(&PostParams::default(), &map).await?;
    }
    let informers = SharedInformerFactory::builder(client).metrics("shop").build();
    let controller = Controller::builder("shop", &informers.informer::<ConfigMap>()).build(Check);
    let manager = Manager::new(informers).with(controller).diagnostics(&diagnostics);
    println!("--- /readyz before the start\n{}", get(&pages, "/readyz").await?);
    let handle = manager.handle();
    let stop = async {
        if arguments.serve {
            shutdown_signal().await;
        } else if handle.wait_until_ready().await {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(show(&pages).await);
        }
    };
    Ok(manager.run_until(stop).await?)
}

#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
async fn show(pages: &ObserveServer) -> anyhow::Result<()> {
    println!("--- /readyz\n{}\n--- /metrics, in part", get(pages, "/readyz").await?);
    let metrics = get(pages, "/metrics").await?;
    for line in metrics.lines().filter(|line| line.starts_with("controller_runtime_reconcile_")) {
        println!("{line}");
    }
    let report: serde_json::Value = serde_json::from_str(&get(pages, "/debug.json").await?)?;
    println!("--- /debug.json, in part\n{:#}", report["queues"][0]["failing"]);
    Ok(())
}

/// Returns the body of the answer.
async fn get(pages: &ObserveServer, path: &str) -> anyhow::Result<String> {
    let mut connection = TcpStream::connect(pages.address()).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: example\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}
