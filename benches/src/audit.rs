//! Requests to a kube-apiserver by client and verb, from its audit log.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// An audit policy that logs each request once, without bodies.
pub const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\n\
                          omitStages: [RequestReceived]\n\
                          rules: [{level: Metadata}]\n";

/// Returns the number of requests by "verb resource" of the client whose user agent starts with
/// `agent`.
///
/// A watch counts when it opens.
///
/// # Errors
///
/// Returns an error if the log cannot be read.
pub fn requests(log: &Path, agent: &str) -> anyhow::Result<BTreeMap<String, u64>> {
    let text = fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    let mut requests = BTreeMap::new();
    for line in text.lines() {
        // The last line may be incomplete: the next call counts it.
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let theirs = event["userAgent"].as_str().is_some_and(|name| name.starts_with(agent));
        let ends = event["stage"] == "ResponseComplete" && event["verb"] == "watch";
        if !theirs || ends {
            continue;
        }
        let mut what = format!(
            "{} {}",
            event["verb"].as_str().unwrap_or("?"),
            event["objectRef"]["resource"].as_str().unwrap_or("-"),
        );
        if let Some(subresource) = event["objectRef"]["subresource"].as_str() {
            what = format!("{what}/{subresource}");
        }
        *requests.entry(what).or_default() += 1;
    }
    Ok(requests)
}
