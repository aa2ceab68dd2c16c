//! More watches than the API server allows on one HTTP/2 connection.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use futures::{Stream, StreamExt, pin_mut};
use homeostat::kube_client::api::{Api, PostParams, WatchEvent, WatchParams};
use homeostat::{client, kube_client};
use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use homeostat_testing::in_real_time;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::ResourceExt as _;
use libtest_mimic::{Arguments, Trial};
use tokio::time::timeout;

/// A kube-apiserver allows 100 requests on a connection, the embedded server 200.
const WATCHES: usize = 250;
/// The time for each step on a busy machine. A watch that waits for another one to end waits for
/// minutes.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let missing = Binaries::missing_for_tests();
    let trials = vec![
        Trial::test("each_of_many_watches_sees_an_object (embedded, over a socket)", || {
            Ok(in_real_time(on_a_socket())?)
        }),
        Trial::test("each_of_many_watches_sees_an_object (real kube-apiserver)", || {
            Ok(in_real_time(on_a_control_plane())?)
        })
        .with_ignored_flag(missing.is_some()),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

async fn on_a_socket() -> anyhow::Result<()> {
    let server = ApiServer::new();
    let listener = server.listen_tls(([127, 0, 0, 1], 0).into()).await?;
    let mut kubeconfig = tempfile::NamedTempFile::new()?;
    kubeconfig.write_all(listener.kubeconfig().as_bytes())?;
    watch_many_times(kubeconfig.path()).await
}

async fn on_a_control_plane() -> anyhow::Result<()> {
    let plane = ControlPlane::start().await?;
    watch_many_times(plane.kubeconfig()).await
}

async fn watch_many_times(kubeconfig: &Path) -> anyhow::Result<()> {
    let client = client::builder().qps(0.0).kubeconfig(kubeconfig).await?.build();
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let params = WatchParams::default().fields("metadata.name=seen");
    let opening = try_join_all((0..WATCHES).map(|_| api.watch(&params, "0")));
    let watches = timeout(TIMEOUT, opening).await.context("not all watches were opened")??;

    let mut object = ConfigMap::default();
    object.metadata.name = Some("seen".to_owned());
    api.create(&PostParams::default(), &object).await?;
    let seeing = try_join_all(watches.into_iter().map(sees_an_object));
    timeout(TIMEOUT, seeing).await.context("not all watches saw the object")??;
    Ok(())
}

async fn sees_an_object(
    watch: impl Stream<Item = kube_client::Result<WatchEvent<ConfigMap>>>,
) -> anyhow::Result<()> {
    pin_mut!(watch);
    while let Some(event) = watch.next().await {
        if let WatchEvent::Added(object) = event?
            && object.name_any() == "seen"
        {
            return Ok(());
        }
    }
    anyhow::bail!("a watch ended")
}
