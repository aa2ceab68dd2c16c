//! Checks each line of `vectors/vectors.txt`, which `vectors/main.go` recorded from
//! component-helpers 0.37.1.

use std::collections::BTreeMap;

use homeostat_quantity::ResourceList;
use homeostat_quota::object::pod::Pod;
use homeostat_quota::{PodResourcesOptions, pod_limits, pod_requests};
use serde::Deserialize;

const RECORDED: &str = include_str!("../vectors/vectors.txt");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    pod: Pod,
    use_status: bool,
    skip_pod_level: bool,
    exclude_overhead: bool,
    requests: BTreeMap<String, String>,
    limits: BTreeMap<String, String>,
}

fn shown(list: &ResourceList) -> BTreeMap<String, String> {
    list.iter().map(|(name, quantity)| (name.to_string(), quantity.to_string())).collect()
}

#[test]
fn recorded_answers_are_reproduced() {
    let mut checked = 0;
    for text in RECORDED.lines() {
        let line: Line =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut options = PodResourcesOptions::default();
        options.use_status_resources = line.use_status;
        options.skip_pod_level_resources = line.skip_pod_level;
        options.exclude_overhead = line.exclude_overhead;
        assert_eq!(shown(&pod_requests(&line.pod, options)), line.requests, "{text}");
        assert_eq!(shown(&pod_limits(&line.pod, options)), line.limits, "{text}");
        checked += 1;
    }
    assert!(checked >= 400, "{checked}");
}
