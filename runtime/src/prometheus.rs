//! Metrics in Prometheus' text format, with the names and buckets of Kubernetes' own controllers.

use std::fmt;
use std::net::SocketAddr;

use homeostat_informer::metrics::HISTOGRAM_BUCKETS;
use homeostat_workqueue::DURATION_BUCKETS;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::task::JoinHandle;

use self::help::HELP;

mod help;
mod process;

/// The metrics server of the process, made by [`install_prometheus`]. Dropping it stops the server.
///
/// The recorder stays installed after that: metrics are still counted, and not served.
#[must_use = "dropping this stops the metrics server"]
pub struct Prometheus {
    /// Renders what the recorder has counted.
    handle: PrometheusHandle,
    /// Aborted by `drop`.
    server: JoinHandle<()>,
}

/// The error of a metrics server that cannot be started.
///
/// The most frequent reason is a port that another process uses. A second call in one process fails
/// as well.
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

/// controller-runtime's buckets for the time of a reconcile, in seconds.
const RECONCILE_TIME_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

/// The suffix of the histograms of a [`ConsistencyStore`](crate::ConsistencyStore); the prefix is
/// the controller's name.
const OBSERVED: &str = "_write_observed_seconds";

/// The histograms of the client's requests, with the buckets of Kubernetes' component-base.
const REQUEST_HISTOGRAMS: [&str; 2] =
    ["rest_client_request_duration_seconds", "rest_client_rate_limiter_duration_seconds"];
const REQUEST_BUCKETS: [f64; 12] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
/// The same for the bodies of requests and answers, in bytes: from 64 B to 16 MiB.
const SIZE_HISTOGRAMS: [&str; 2] =
    ["rest_client_request_size_bytes", "rest_client_response_size_bytes"];
const SIZE_BUCKETS: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// Buckets in seconds, from a watch without a delay to a cache that is a minute late. After 5 s the
/// store reports a write as overdue for the first time.
const OBSERVED_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Installs a metrics recorder with the buckets that Kubernetes' dashboards expect, and serves the
/// metrics over plain HTTP on `address`, under every path.
///
/// Call it first: a queue, an informer or a controller that is built before has no metrics. The
/// recorder stays installed until the process ends, with a task that keeps the histograms small.
///
/// # Errors
///
/// Returns an error if the address cannot be bound, or if the process has a recorder already.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
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

/// A recorder without a server of its own, made by [`install_prometheus_recorder`].
///
/// # Examples
///
/// ```no_run
/// use homeostat::observe::{Diagnostics, serve};
///
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let prometheus = homeostat::install_prometheus_recorder()?;
/// let diagnostics = Diagnostics::new();
/// diagnostics.metrics(move || prometheus.render());
/// let server = serve(([0, 0, 0, 0], 8080).into(), &diagnostics).await?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PrometheusRecorder {
    handle: PrometheusHandle,
}

/// The error of a recorder that cannot be installed: the process has one already.
#[derive(Debug, thiserror::Error)]
#[error("failed to install the metrics recorder: {0}")]
pub struct RecorderError(BuildError);

/// Installs a metrics recorder as [`install_prometheus`] does, without a server: a program that
/// serves other pages too passes [`PrometheusRecorder::render`] to
/// [`Diagnostics::metrics`](crate::observe::Diagnostics::metrics).
///
/// Call it first: a queue, an informer or a controller that is built before has no metrics.
///
/// # Errors
///
/// Returns an error if the process has a recorder already.
pub fn install_prometheus_recorder() -> Result<PrometheusRecorder, RecorderError> {
    install_prometheus_recorder_with(&[])
}

/// Installs a metrics recorder as [`install_prometheus_recorder`] does, with the buckets of the
/// program's own histograms: names and upper bounds. A histogram without buckets is exported as a
/// summary.
///
/// # Errors
///
/// Returns an error if a histogram has no bounds, or if the process has a recorder already.
///
/// # Examples
///
/// ```no_run
/// # fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let sizes: &[f64] = &[1.0, 10.0, 100.0];
/// let prometheus = homeostat::install_prometheus_recorder_with(&[("widget_size", sizes)])?;
/// # drop(prometheus);
/// # Ok(())
/// # }
/// ```
pub fn install_prometheus_recorder_with(
    histograms: &[(&str, &[f64])],
) -> Result<PrometheusRecorder, RecorderError> {
    let mut builder = with_buckets(PrometheusBuilder::new()).map_err(RecorderError)?;
    for (name, buckets) in histograms {
        let name = Matcher::Full((*name).to_owned());
        builder = builder.set_buckets_for_metric(name, buckets).map_err(RecorderError)?;
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    let installed = metrics::set_global_recorder(recorder);
    installed.map_err(|error| RecorderError(BuildError::FailedToSetGlobalRecorder(error)))?;
    describe();
    Ok(PrometheusRecorder { handle })
}

fn install(address: SocketAddr) -> Result<Prometheus, BuildError> {
    let builder = with_buckets(PrometheusBuilder::new().with_http_listener(address))?;
    let (recorder, exporter) = builder.build()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(BuildError::FailedToSetGlobalRecorder)?;
    describe();
    let server = tokio::runtime::Handle::current().spawn(async move {
        if exporter.await.is_err() {
            tracing::error!(%address, "metrics server stopped");
        }
    });
    Ok(Prometheus { handle, server })
}

/// Sets the help texts.
fn describe() {
    for (name, help) in HELP {
        metrics::with_recorder(|recorder| {
            let (name, help) = (name.into(), help.into());
            recorder.describe_counter(name, None, help);
        });
    }
}

/// Sets the buckets of all histograms.
fn with_buckets(mut builder: PrometheusBuilder) -> Result<PrometheusBuilder, BuildError> {
    for histogram in REQUEST_HISTOGRAMS {
        builder = builder
            .set_buckets_for_metric(Matcher::Full(histogram.to_owned()), &REQUEST_BUCKETS)?;
    }
    for histogram in SIZE_HISTOGRAMS {
        builder =
            builder.set_buckets_for_metric(Matcher::Full(histogram.to_owned()), &SIZE_BUCKETS)?;
    }
    let reconcile_time = Matcher::Full("controller_runtime_reconcile_time_seconds".to_owned());
    builder = builder.set_buckets_for_metric(reconcile_time, &RECONCILE_TIME_BUCKETS)?;
    for histogram in QUEUE_HISTOGRAMS {
        builder = builder
            .set_buckets_for_metric(Matcher::Full(histogram.to_owned()), &DURATION_BUCKETS)?;
    }
    for (histogram, buckets) in HISTOGRAM_BUCKETS {
        builder = builder.set_buckets_for_metric(Matcher::Full(histogram.to_owned()), buckets)?;
    }
    builder.set_buckets_for_metric(Matcher::Suffix(OBSERVED.to_owned()), &OBSERVED_BUCKETS)
}

// === impl PrometheusRecorder ===

impl PrometheusRecorder {
    /// Returns the metrics in Prometheus' text format, as a scraper gets them now. Each call also
    /// folds the samples of histograms, so call it at least every few minutes.
    ///
    /// On Linux, CPU time, memory and files of the process are among them (`process_*`).
    pub fn render(&self) -> String {
        self.handle.run_upkeep();
        self.handle.render() + &process::render()
    }
}

impl fmt::Debug for PrometheusRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrometheusRecorder").finish_non_exhaustive()
    }
}

// === impl Prometheus ===

impl Prometheus {
    /// Returns the metrics in Prometheus' text format, as a scraper gets them now.
    ///
    /// Use it to serve the metrics from a server of the program's own, or to log them in a test.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn doc() -> Result<(), Box<dyn std::error::Error>> {
    /// let prometheus = homeostat::install_prometheus(([127, 0, 0, 1], 0).into())?;
    /// println!("{}", prometheus.render());
    /// # Ok(())
    /// # }
    /// ```
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
