//! Runs the program in `controller-runtime/`: a controller in Go, with its clients and its cache.

use std::process::Command;

use libtest_mimic::{Failed, Trial};
use tokio::runtime::Runtime;

use crate::cluster::Cluster;
use crate::{go, with_programs};

pub(crate) fn trials() -> Vec<Trial> {
    let embedded = with_programs("controller-runtime::copier", |_| {
        Runtime::new()?.block_on(async { run(&Cluster::embedded().await?).await })
    });
    let real = with_programs("controller-runtime on a real kube-apiserver", |_| {
        Runtime::new()?.block_on(async { run(&Cluster::real().await?).await })
    });
    vec![embedded, real]
}

async fn run(cluster: &Cluster) -> Result<(), Failed> {
    let program = go::build("controller-runtime")?;
    let kubeconfig = cluster.kubeconfig.clone();
    // The embedded server needs this thread.
    let output =
        tokio::task::spawn_blocking(move || Command::new(program).arg(kubeconfig).output());
    let output = output.await??;
    let (log, printed) =
        (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    if output.status.success() && printed.ends_with("done\n") {
        return Ok(());
    }
    Err(format!("controller-runtime:\n{printed}{log}").into())
}
