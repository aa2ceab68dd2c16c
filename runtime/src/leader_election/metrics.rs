//! client-go's metrics of an election.

use homeostat_core::metrics::record;

/// The handles of one candidate, labelled with the name of the lease. Clones share the metrics. A
/// panic of the recorder is logged and does not end the election.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    /// `leader_election_master_status`: 1 while this process leads, otherwise 0.
    pub(super) is_leader: metrics::Gauge,
    /// `leader_election_slowpath_total`: attempts that had to read the lease first.
    slow_path: metrics::Counter,
}

// === impl Metrics ===

impl Metrics {
    /// Registers the metrics of the lease `name`, which calls the recorder.
    pub(super) fn new(name: &str) -> Self {
        let mut handles =
            Self { is_leader: metrics::Gauge::noop(), slow_path: metrics::Counter::noop() };
        record(|| {
            let name = || name.to_owned();
            handles.is_leader = metrics::gauge!("leader_election_master_status", "name" => name());
            handles.slow_path =
                metrics::counter!("leader_election_slowpath_total", "name" => name());
        });
        handles
    }

    /// Shows if this process leads.
    pub(super) fn leads(&self, is_leader: bool) {
        record(|| self.is_leader.set(if is_leader { 1.0 } else { 0.0 }));
    }

    /// Counts an attempt that has to read the lease first.
    pub(super) fn slow_path(&self) {
        record(|| self.slow_path.increment(1));
    }
}
