//! Prometheus' text format, as Go writes it.

use std::fmt::Write;

/// A metric: its name, its help, and the names of its labels in alphabetical order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// The type: `counter`, `gauge` or `histogram`.
    pub(super) kind: &'static str,
    pub(super) labels: &'static [&'static str],
}

// === impl Family ===

impl Family {
    /// Appends the lines before the samples.
    pub(super) fn begin(&self, text: &mut String) {
        let Self { name, help, kind, .. } = self;
        write(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Appends a sample.
    pub(super) fn sample(&self, text: &mut String, labels: &[&str], value: &str) {
        self.sample_of(text, "", (labels, None), value);
    }

    /// Appends a sample of a part of the metric, such as `_count`, with the bound of a bucket.
    pub(super) fn sample_of(
        &self,
        text: &mut String,
        part: &str,
        (labels, bound): (&[&str], Option<&str>),
        value: &str,
    ) {
        write(text, format_args!("{}{part}", self.name));
        let bound = bound.map(|bound| ("le", bound));
        let mut separator = '{';
        for (name, value) in self.labels.iter().copied().zip(labels.iter().copied()).chain(bound) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write(text, format_args!("{separator}{name}=\"{value}\""));
            separator = ',';
        }
        if separator == ',' {
            text.push('}');
        }
        write(text, format_args!(" {value}\n"));
    }
}

fn write(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String does not fail");
}

/// Returns a number as Go's format `g` prints it.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..=5).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
