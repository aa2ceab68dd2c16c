//! The core, without a server.

use std::borrow::Cow;
use std::time::Duration;

use super::text::number;
use super::*;

fn labels(verb: &'static str, dry_run: &'static str) -> RequestLabels {
    RequestLabels {
        resource: Cow::Borrowed("pods"),
        verb,
        subresource: Cow::Borrowed(""),
        scope: "resource",
        dry_run,
        group: Cow::Borrowed(""),
        version: Cow::Borrowed("v1"),
    }
}

fn finished(code: u16, milliseconds: u64) -> Finished {
    let time = Duration::from_millis(milliseconds);
    Finished { code, time, size: None, is_deprecated: false }
}

/// Returns the samples of a family, without its name.
fn samples(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.families().into_iter().find(|(known, _)| *known == name);
    let text = text.map(|(_, text)| text).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.strip_prefix(name).unwrap_or(line).to_owned()).collect()
}

#[test]
fn numbers_are_those_of_go() {
    for (value, text) in [
        (0.0, "0"),
        (1.25, "1.25"),
        (562.0, "562"),
        (999_999.0, "999999"),
        (1e6, "1e+06"),
        (1_604_476.0, "1.604476e+06"),
        (0.0001, "0.0001"),
        (5.93e-6, "5.93e-06"),
        (1e-5, "1e-05"),
        (1e100, "1e+100"),
    ] {
        assert_eq!(number(value), text);
    }
}

#[test]
fn requests_are_counted_by_labels_and_code() {
    let metrics = Metrics::default();
    for (dry_run, code) in [("", 201), ("", 201), ("", 409), ("All", 201)] {
        metrics.finish(&labels("POST", dry_run), &finished(code, 30));
    }
    let line = |code, dry_run, count| {
        format!(
            "{{code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"\",\
             resource=\"pods\",scope=\"resource\",subresource=\"\",verb=\"POST\",\
             version=\"v1\"}} {count}"
        )
    };
    let lines = [line(201, "", 2), line(201, "All", 1), line(409, "", 1)];
    assert_eq!(samples(&metrics, "apiserver_request_total"), lines);
}

#[test]
fn durations_fall_into_each_bucket_above_them() {
    let metrics = Metrics::default();
    for milliseconds in [0, 25, 26, 61_000] {
        metrics.finish(&labels("GET", ""), &finished(200, milliseconds));
    }
    let samples = samples(&metrics, "apiserver_request_duration_seconds");
    let value = |end: &str| {
        let found = samples.iter().find(|sample| sample.contains(end)).unwrap();
        found.rsplit_once(' ').unwrap().1.to_owned()
    };
    let parts =
        ["le=\"0.005\"", "le=\"0.025\"", "le=\"0.05\"", "le=\"60\"", "+Inf", "_sum", "_count"];
    assert_eq!(parts.map(value), ["1", "2", "3", "3", "4", "61.051", "4"]);
    assert_eq!(samples.len(), 23 + 3);
}

#[test]
fn open_requests_stay_shown_and_survive_a_reset() {
    let metrics = Metrics::default();
    let (first, second) = (labels("WATCH", ""), labels("CONNECT", ""));
    metrics.open(&first);
    metrics.open(&second);
    metrics.close(&second);
    metrics.finish(&second, &finished(200, 0));
    let open = |metrics: &Metrics| {
        let samples = samples(metrics, "apiserver_longrunning_requests");
        samples.iter().map(|sample| sample.rsplit_once(' ').unwrap().1.to_owned()).collect()
    };
    let values: Vec<String> = open(&metrics);
    assert_eq!(values, ["0", "1"]);
    metrics.reset();
    let values: Vec<String> = open(&metrics);
    assert_eq!(values, ["1"]);
    assert!(samples(&metrics, "apiserver_request_total").is_empty());
}

#[test]
fn request_in_progress_counts_until_it_is_dropped() {
    let metrics = Metrics::default();
    let name = "apiserver_current_inflight_requests";
    let read = metrics.enter(true);
    let change = metrics.enter(false);
    let [first, second] = [r#"{request_kind="mutating"} 1"#, r#"{request_kind="readOnly"} 1"#];
    assert_eq!(samples(&metrics, name), [first, second]);
    drop((read, change));
    let [first, second] = [r#"{request_kind="mutating"} 0"#, r#"{request_kind="readOnly"} 0"#];
    assert_eq!(samples(&metrics, name), [first, second]);
}

#[test]
fn values_of_labels_are_escaped() {
    let metrics = Metrics::default();
    let name = Cow::Borrowed("a\"b\\c\nd");
    metrics.count(Counter::WebhookFailOpen, &[name, Cow::Borrowed("admit")]);
    let lines = samples(&metrics, "apiserver_admission_webhook_fail_open_count");
    assert_eq!(lines, [r#"{name="a\"b\\c\nd",type="admit"} 1"#]);
}

#[test]
fn counter_without_events_is_not_shown_unless_it_has_initial_labels() {
    let names: Vec<&str> = Metrics::default().families().iter().map(|(name, _)| *name).collect();
    let shown = [
        "pod_security_evaluations_total",
        "pod_security_exemptions_total",
        "apiserver_current_inflight_requests",
    ];
    assert_eq!(names, shown);
}
