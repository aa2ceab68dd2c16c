//! The metrics of Kubernetes' own controllers, for a scraper.

use std::fmt;
use std::net::SocketAddr;

use homeostat_informer::HISTOGRAM_BUCKETS;
use homeostat_workqueue::DURATION_BUCKETS;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::task::JoinHandle;

/// Serves what was recorded, for as long as this lives; made by [`install_prometheus`].
#[must_use = "dropped at once, nothing is served"]
pub struct Prometheus {
    handle: PrometheusHandle,
    server: JoinHandle<()>,
}

/// Why metrics cannot be recorded or served.
#[derive(Debug, thiserror::Error)]
#[error("failed to serve metrics on {address}")]
pub struct PrometheusError {
    address: SocketAddr,
    #[source]
    source: BuildError,
}

/// The histograms of a work queue.
const QUEUE_HISTOGRAMS: [&str; 2] =
    ["workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"];

/// The end of the name of what a [`ConsistencyStore`](crate::ConsistencyStore) measures; it begins with the controller's.
const OBSERVED: &str = "_write_observed_seconds";

/// From a watch that follows at once to a cache that is asked about once a minute; 5 is when the server is asked first.
const OBSERVED_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Records the metrics of this process, with the buckets that Kubernetes' dashboards expect, and serves them over plain HTTP on
/// `address`, whatever the path.
///
/// Call it first: a queue, an informer or a controller that was made before it stays silent. The recorder is the process's
/// and remains until that ends, with a task of its own that keeps the histograms small.
///
/// # Errors
///
/// If the address cannot be listened on, or the process has a recorder already.
///
/// # Panics
///
/// Outside of a tokio runtime.
///
/// # Examples
///
/// ```no_run
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let _prometheus = homeostat::install_prometheus(([0, 0, 0, 0], 8080).into())?;
/// # Ok(())
/// # }
/// ```
pub fn install_prometheus(address: SocketAddr) -> Result<Prometheus, PrometheusError> {
    install(address).map_err(|source| PrometheusError { address, source })
}

fn install(address: SocketAddr) -> Result<Prometheus, BuildError> {
    let mut builder = PrometheusBuilder::new().with_http_listener(address);
    for histogram in QUEUE_HISTOGRAMS {
        builder = builder
            .set_buckets_for_metric(Matcher::Full(histogram.to_owned()), &DURATION_BUCKETS)?;
    }
    for (histogram, buckets) in HISTOGRAM_BUCKETS {
        builder = builder.set_buckets_for_metric(Matcher::Full(histogram.to_owned()), buckets)?;
    }
    builder =
        builder.set_buckets_for_metric(Matcher::Suffix(OBSERVED.to_owned()), &OBSERVED_BUCKETS)?;
    let (recorder, exporter) = builder.build()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(BuildError::FailedToSetGlobalRecorder)?;
    let server = tokio::runtime::Handle::current().spawn(async move {
        if exporter.await.is_err() {
            tracing::error!(%address, "metrics are served no longer");
        }
    });
    Ok(Prometheus { handle, server })
}

// === impl Prometheus ===

impl Prometheus {
    /// What a scraper would get now.
    pub fn render(&self) -> String {
        self.handle.render()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus").finish_non_exhaustive()
    }
}
