//! Masks the values in the output of kubectl that differ between runs.

use std::sync::LazyLock;

use regex::Regex;

/// The masked values: times, ages, uids, versions, generated suffixes, addresses. Nothing else is
/// masked.
static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // The log of kubectl depends on timing.
        (r"(?m)^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n", ""),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "TIME"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r#"resourceVersion: "\d+""#, "resourceVersion: VERSION"),
        (r#""resourceVersion": ?"\d+""#, "\"resourceVersion\": VERSION"),
        (r"(?m)^(Resource Version:\s+)\d+$", "${1}VERSION"),
        (r"\b(\d+d)?(\d+h)?(\d+m)?\d+m?s( ago)?\b", "AGE"),
        (r"\b127\.0\.0\.1:\d+", "ADDRESS"),
        (r"\b10\.0\.\d{1,3}\.\d{1,3}\b", "CLUSTER-IP"),
        // The kubelet derives it from the uid of the pod.
        (r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "POD-IP"),
        (r"(generated-)[bcdfghjklmnpqrstvwxz2456789]{5}\b", "${1}SUFFIX"),
        (r"/tmp/\S+", "FILE"),
        // The embedded server has a version suffix of its own.
        (r"v1\.37\.1\+homeostat", "v1.37.1"),
        // The width of a column depends on its values.
        (r"(AGE|CLUSTER-IP|POD-IP|SUFFIX) +", "$1  "),
        (r"\bIP +NODE\b", "IP  NODE"),
        (r" +\n", "\n"),
    ]
    .into_iter()
    .map(|(pattern, name)| (Regex::new(pattern).expect("the patterns are constant"), name))
    .collect()
});

pub(crate) fn normal(printed: &str) -> String {
    MASKS
        .iter()
        .fold(printed.to_owned(), |text, (mask, name)| mask.replace_all(&text, *name).into_owned())
}

/// Returns the lines in alphabetical order.
pub(crate) fn sorted(printed: &str) -> String {
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}
