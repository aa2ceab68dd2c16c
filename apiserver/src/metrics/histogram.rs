//! Histograms.

use std::collections::BTreeMap;

use super::Label;
use super::text::{Family, number};

/// A metric with histograms, and the upper bounds of their buckets.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistogramFamily {
    pub(super) family: Family,
    pub(super) bounds: &'static [f64],
}

/// One histogram.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// The values up to each bound and above the one before.
    counts: Vec<u64>,
    all: u64,
    sum: f64,
}

/// A histogram for each combination of labels.
#[derive(Debug, Default)]
pub(super) struct Histograms {
    series: BTreeMap<Box<[Label]>, Histogram>,
}

// === impl Histogram ===

impl Histogram {
    pub(super) fn observe(&mut self, bounds: &[f64], value: f64) {
        self.counts.resize(bounds.len(), 0);
        let bucket = bounds.iter().position(|bound| value <= *bound);
        if let Some(count) = bucket.and_then(|at| self.counts.get_mut(at)) {
            *count += 1;
        }
        self.all += 1;
        self.sum += value;
    }

    /// Adds the values of another histogram with the same bounds.
    pub(super) fn add(&mut self, other: &Self) {
        self.counts.resize(other.counts.len(), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.all += other.all;
        self.sum += other.sum;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Appends the samples.
    pub(super) fn write(&self, of: HistogramFamily, text: &mut String, labels: &[&str]) {
        let HistogramFamily { family, bounds } = of;
        let mut up_to = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            up_to += count;
            let bound = number(*bound);
            family.sample_of(text, "_bucket", (labels, Some(&bound)), &up_to.to_string());
        }
        let all = self.all.to_string();
        family.sample_of(text, "_bucket", (labels, Some("+Inf")), &all);
        family.sample_of(text, "_sum", (labels, None), &number(self.sum));
        family.sample_of(text, "_count", (labels, None), &all);
    }
}

// === impl Histograms ===

impl Histograms {
    pub(super) fn observe(&mut self, of: HistogramFamily, labels: &[Label], value: f64) {
        match self.series.get_mut(labels) {
            Some(histogram) => histogram.observe(of.bounds, value),
            None => self.series.entry(labels.into()).or_default().observe(of.bounds, value),
        }
    }

    /// Returns the samples; empty if there are none.
    pub(super) fn text(&self, of: HistogramFamily) -> String {
        let mut text = String::new();
        if !self.series.is_empty() {
            of.family.begin(&mut text);
        }
        for (labels, histogram) in &self.series {
            let labels: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
            histogram.write(of, &mut text, &labels);
        }
        text
    }
}
