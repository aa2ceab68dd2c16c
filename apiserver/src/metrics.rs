//! The metrics of one server: counts and durations under the names of the real server. The state is
//! plain; one lock shares it.

mod counters;
mod histogram;
mod requests;
mod text;

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use counters::Counter;
pub(crate) use requests::{Finished, RequestLabels};

use counters::Counters;
use histogram::{HistogramFamily, Histograms};
use requests::Requests;
use text::Family;

/// The value of a label. No client can choose it freely.
pub(crate) type Label = Cow<'static, str>;

/// The metrics of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// No other lock is taken while this one is held.
    state: Mutex<State>,
    /// The requests that are in progress, without those that may last: changes, then reads.
    in_flight: [AtomicUsize; 2],
}

/// Counts a request as in progress until it is dropped.
#[derive(Debug)]
#[must_use = "the request ends when this is dropped"]
pub(crate) struct InFlight<'a> {
    requests: &'a AtomicUsize,
}

/// The counts of one attempt at a request, which metrics get once it is the last one.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Vec<(Counter, Vec<Label>)>,
    webhook_times: Vec<([Label; 4], Duration)>,
}

#[derive(Debug, Default)]
struct State {
    requests: Requests,
    counters: Counters,
    webhooks: Histograms,
}

const IN_FLIGHT: Family = Family {
    name: "apiserver_current_inflight_requests",
    help: "[STABLE] Maximal number of currently used inflight request limit of this apiserver per \
        request kind in last second.",
    kind: "gauge",
    labels: &["request_kind"],
};

const WEBHOOK_DURATION: HistogramFamily = HistogramFamily {
    family: Family {
        name: "apiserver_admission_webhook_admission_duration_seconds",
        help: "[STABLE] Admission webhook latency histogram in seconds, identified by name and \
            broken out for each operation and API resource and type (validate or admit).",
        kind: "histogram",
        labels: &["name", "operation", "rejected", "type"],
    },
    bounds: &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0],
};

// === impl Metrics ===

impl Metrics {
    /// Counts a request as in progress.
    pub(crate) fn enter(&self, is_read: bool) -> InFlight<'_> {
        let requests = &self.in_flight[usize::from(is_read)];
        requests.fetch_add(1, Ordering::Relaxed);
        InFlight { requests }
    }

    /// Counts an event; the labels are those of the counter, in its order.
    pub(crate) fn count(&self, counter: Counter, labels: &[Label]) {
        self.add(counter, labels, 1);
    }

    /// Counts one event of each of several counters.
    pub(crate) fn count_all<'a>(&self, events: impl Iterator<Item = (Counter, &'a [Label])>) {
        let mut state = self.state.lock();
        events.for_each(|(counter, labels)| state.counters.add(counter, labels, 1));
    }

    /// Counts several events.
    pub(crate) fn add(&self, counter: Counter, labels: &[Label], events: u64) {
        self.state.lock().counters.add(counter, labels, events);
    }

    /// Counts a request that may last as open.
    pub(crate) fn open(&self, labels: &RequestLabels) {
        self.state.lock().requests.open(labels);
    }

    /// Counts a request that may last as closed.
    pub(crate) fn close(&self, labels: &RequestLabels) {
        self.state.lock().requests.close(labels);
    }

    /// Counts a request that is answered.
    pub(crate) fn finish(&self, labels: &RequestLabels, finished: &Finished) {
        self.state.lock().requests.finish(labels, finished);
    }

    /// Counts what a request has counted.
    pub(crate) fn take(&self, tally: Tally) {
        if tally.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        for (counter, labels) in tally.counts {
            state.counters.add(counter, &labels, 1);
        }
        for (labels, time) in tally.webhook_times {
            state.webhooks.observe(WEBHOOK_DURATION, &labels, time.as_secs_f64());
        }
    }

    /// Forgets all counts except those of what is open.
    pub(crate) fn reset(&self) {
        let mut state = self.state.lock();
        state.requests.reset();
        state.counters = Counters::default();
        state.webhooks = Histograms::default();
    }

    /// Returns each family in Prometheus' text format, with its name.
    pub(crate) fn families(&self) -> Vec<(&'static str, String)> {
        let state = self.state.lock();
        let mut families = state.requests.families();
        families.extend(state.counters.families());
        families.push((WEBHOOK_DURATION.family.name, state.webhooks.text(WEBHOOK_DURATION)));
        let mut text = String::new();
        IN_FLIGHT.begin(&mut text);
        for (kind, requests) in ["mutating", "readOnly"].iter().zip(&self.in_flight) {
            let requests = requests.load(Ordering::Relaxed);
            IN_FLIGHT.sample(&mut text, &[kind], &requests.to_string());
        }
        families.push((IN_FLIGHT.name, text));
        families.retain(|(_, text)| !text.is_empty());
        families
    }
}

// === impl Tally ===

impl Tally {
    pub(crate) fn count(&mut self, counter: Counter, labels: &[Label]) {
        self.counts.push((counter, labels.to_vec()));
    }

    /// Counts the time of a call of a webhook; the labels are its name, the operation, true if the
    /// request is rejected, and the type.
    pub(crate) fn observe_webhook(&mut self, labels: [Label; 4], time: Duration) {
        self.webhook_times.push((labels, time));
    }

    fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.webhook_times.is_empty()
    }
}

// === impl InFlight ===

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
