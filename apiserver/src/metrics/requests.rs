//! The metrics of requests: how many there were, how long they took, how large the replies were,
//! and which are open.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Label;
use super::histogram::{Histogram, HistogramFamily};
use super::text::{Family, number};

/// The labels of a request. The first fields are those that differ most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestLabels {
    /// The plural of a kind that is served; empty for the health of the server.
    pub(crate) resource: Label,
    pub(crate) verb: &'static str,
    /// A subresource of the kind, or the path of a health endpoint.
    pub(crate) subresource: Label,
    pub(crate) scope: &'static str,
    pub(crate) dry_run: &'static str,
    pub(crate) group: Label,
    pub(crate) version: Label,
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: u16,
    pub(crate) time: Duration,
    /// The bytes of the reply, for reads.
    pub(crate) size: Option<u64>,
    /// True if the version of the kind is deprecated.
    pub(crate) is_deprecated: bool,
}

/// The requests of one server.
#[derive(Debug, Default)]
pub(super) struct Requests {
    series: BTreeMap<RequestLabels, Series>,
}

/// The requests with equal labels.
#[derive(Debug, Default)]
struct Series {
    /// The number of replies for each code. There are few.
    codes: Vec<(u16, u64)>,
    durations: Histogram,
    sizes: Histogram,
    /// The open requests; `None` if there never was any.
    open: Option<u64>,
    is_deprecated: bool,
}

const TOTAL: Family = Family {
    name: "apiserver_request_total",
    help: "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, \
        version, resource, scope, component, and HTTP response code.",
    kind: "counter",
    labels: &[
        "code",
        "component",
        "dry_run",
        "group",
        "resource",
        "scope",
        "subresource",
        "verb",
        "version",
    ],
};

const OPEN: Family = Family {
    name: "apiserver_longrunning_requests",
    help: "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, \
        version, resource, scope and component. Not all requests are tracked this way.",
    kind: "gauge",
    labels: &["component", "group", "resource", "scope", "subresource", "verb", "version"],
};

const DEPRECATED: Family = Family {
    name: "apiserver_requested_deprecated_apis",
    help: "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, \
        version, resource, subresource, and removed_release.",
    kind: "gauge",
    labels: &["group", "removed_release", "resource", "subresource", "version"],
};

const DURATIONS: HistogramFamily = HistogramFamily {
    family: Family {
        name: "apiserver_request_duration_seconds",
        help: "[STABLE] Response latency distribution in seconds for each verb, dry run value, \
            group, version, resource, subresource, scope and component.",
        kind: "histogram",
        labels: &[
            "component",
            "dry_run",
            "group",
            "resource",
            "scope",
            "subresource",
            "verb",
            "version",
        ],
    },
    bounds: &[
        0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
        10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
    ],
};

const SIZES: HistogramFamily = HistogramFamily {
    family: Family {
        name: "apiserver_response_sizes",
        help: "[STABLE] Response size distribution in bytes for each group, version, verb, \
            resource, subresource, scope and component.",
        kind: "histogram",
        labels: OPEN.labels,
    },
    bounds: &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9],
};

// === impl RequestLabels ===

impl RequestLabels {
    /// Returns the component that answers: the health endpoints name none.
    fn component(&self) -> &'static str {
        if self.resource.is_empty() { "" } else { "apiserver" }
    }

    /// Returns the values of the labels without the dry run.
    fn without_dry_run(&self) -> [&str; 7] {
        let Self { resource, verb, subresource, scope, group, version, .. } = self;
        [self.component(), group, resource, scope, subresource, verb, version]
    }

    fn with_dry_run(&self) -> [&str; 8] {
        let Self { resource, verb, subresource, scope, dry_run, group, version } = self;
        [self.component(), dry_run, group, resource, scope, subresource, verb, version]
    }
}

// === impl Requests ===

impl Requests {
    pub(super) fn open(&mut self, labels: &RequestLabels) {
        self.update(labels, |series| *series.open.get_or_insert(0) += 1);
    }

    pub(super) fn close(&mut self, labels: &RequestLabels) {
        self.update(labels, |series| series.open = series.open.map(|open| open.saturating_sub(1)));
    }

    pub(super) fn finish(&mut self, labels: &RequestLabels, finished: &Finished) {
        self.update(labels, |series| series.finish(finished));
    }

    /// Copies the labels of new series only.
    fn update(&mut self, labels: &RequestLabels, update: impl FnOnce(&mut Series)) {
        if let Some(series) = self.series.get_mut(labels) {
            return update(series);
        }
        update(self.series.entry(labels.clone()).or_default());
    }

    /// Forgets all but the open requests.
    pub(super) fn reset(&mut self) {
        self.series.retain(|_, series| {
            *series = Series { open: series.open.filter(|open| *open > 0), ..Series::default() };
            series.open.is_some()
        });
    }

    /// Returns the text of each family with its name; empty if it has no sample.
    pub(super) fn families(&self) -> Vec<(&'static str, String)> {
        vec![
            (TOTAL.name, self.totals()),
            (OPEN.name, self.all_open()),
            (DEPRECATED.name, self.deprecated()),
            (DURATIONS.family.name, self.histograms(DURATIONS)),
            (SIZES.family.name, self.histograms(SIZES)),
        ]
    }

    fn totals(&self) -> String {
        let all = self.series.iter().flat_map(|(labels, series)| {
            series.codes.iter().map(move |(code, count)| {
                let code = code.to_string();
                let mut text = String::new();
                let labels = labels.with_dry_run();
                let labels: Vec<&str> = std::iter::once(&*code).chain(labels).collect();
                #[expect(clippy::cast_precision_loss, reason = "Prometheus counts in floats")]
                TOTAL.sample(&mut text, &labels, &number(*count as f64));
                text
            })
        });
        sorted(TOTAL, all.collect())
    }

    fn all_open(&self) -> String {
        let known = self.series.iter().filter_map(|(labels, series)| Some((labels, series.open?)));
        let all = known.map(|(labels, open)| {
            let mut text = String::new();
            OPEN.sample(&mut text, &labels.without_dry_run(), &open.to_string());
            text
        });
        sorted(OPEN, all.collect())
    }

    fn deprecated(&self) -> String {
        let known = self.series.iter().filter(|(_, series)| series.is_deprecated);
        let all = known.map(|(labels, _)| {
            let RequestLabels { resource, subresource, group, version, .. } = labels;
            let mut text = String::new();
            DEPRECATED.sample(&mut text, &[group, "", resource, subresource, version], "1");
            text
        });
        sorted(DEPRECATED, all.collect())
    }

    fn histograms(&self, of: HistogramFamily) -> String {
        // The sizes of dry runs belong to those of other requests.
        let mut merged = BTreeMap::<Vec<&str>, Histogram>::new();
        for (labels, series) in &self.series {
            let (labels, histogram) = if of.family.labels == DURATIONS.family.labels {
                (labels.with_dry_run().to_vec(), &series.durations)
            } else {
                (labels.without_dry_run().to_vec(), &series.sizes)
            };
            if !histogram.is_empty() {
                merged.entry(labels).or_default().add(histogram);
            }
        }
        let mut text = String::new();
        if !merged.is_empty() {
            of.family.begin(&mut text);
        }
        for (labels, histogram) in merged {
            histogram.write(of, &mut text, &labels);
        }
        text
    }
}

// === impl Series ===

impl Series {
    fn finish(&mut self, finished: &Finished) {
        let Finished { code, time, size, is_deprecated } = finished;
        match self.codes.iter_mut().find(|(known, _)| known == code) {
            Some((_, count)) => *count += 1,
            None => self.codes.push((*code, 1)),
        }
        self.durations.observe(DURATIONS.bounds, time.as_secs_f64());
        if let Some(size) = size {
            #[expect(clippy::cast_precision_loss, reason = "Prometheus sums in floats")]
            self.sizes.observe(SIZES.bounds, *size as f64);
        }
        self.is_deprecated |= is_deprecated;
    }
}

/// Returns a family with these samples, in the order of their labels.
fn sorted(family: Family, mut samples: Vec<String>) -> String {
    if samples.is_empty() {
        return String::new();
    }
    samples.sort_unstable();
    samples.dedup();
    let mut text = String::new();
    family.begin(&mut text);
    text.extend(samples);
    text
}
