//! The parameters of a list, of a watch, and of the delete of a collection.

use serde_json::json;

use crate::kinds::Kind;
use crate::request::ApiCall;
use crate::request::params::Params;
use crate::selection::{Selection, Selectors};
use crate::status::{Cause, Failure, Result};

/// The parameters whose errors the real server reports before all others.
#[derive(Debug)]
pub(super) struct ListOptions {
    pub(super) selector: Selection,
    /// The largest number of items of a page; 0 for all.
    pub(super) limit: usize,
    pub(super) timeout_seconds: Option<i64>,
}

// === impl ListOptions ===

impl ListOptions {
    pub(super) fn of(call: &ApiCall) -> Result<Self> {
        Self::parse(&call.target.served.kind, &call.params)
    }

    /// Reads the parameters, and checks them in the real server's order.
    ///
    /// # Errors
    ///
    /// Fails with 400 for a number or a selector that is none, then with 422 for parameters that
    /// exclude each other, and then with 400 for a field by which the kind is not selected.
    fn parse(kind: &Kind, params: &Params) -> Result<Self> {
        let timeout_seconds = params.number("timeoutSeconds")?;
        let limit = params.number("limit")?.unwrap_or(0);
        let selectors = Selectors::parse(params.get("labelSelector"), params.get("fieldSelector"))?;
        let check = if params.flag("watch") { check_watch } else { check_list };
        check(params)?;
        let limit = usize::try_from(limit).unwrap_or(0);
        Ok(Self { selector: selectors.resolve(kind)?, limit, timeout_seconds })
    }
}

/// Returns true if a watch of any version is one of the initial events, whose end a bookmark marks.
pub(super) fn is_legacy_watch(params: &Params) -> bool {
    !params.is_present("sendInitialEvents")
        && params.get("resourceVersionMatch").is_empty()
        && matches!(params.get("resourceVersion"), "" | "0")
}

/// Rejects parameters of a list that exclude each other.
fn check_list(params: &Params) -> Result<()> {
    let (version, matched) = (params.get("resourceVersion"), params.get("resourceVersionMatch"));
    let field = "resourceVersionMatch";
    let mut causes = Vec::new();
    let mut forbid = |field, detail| causes.push(Cause::forbidden(field, detail));
    if !matched.is_empty() && version.is_empty() {
        forbid(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if !matched.is_empty() && !params.get("continue").is_empty() {
        forbid(field, "resourceVersionMatch is forbidden when continue is provided");
    }
    if !matches!(matched, "" | "Exact" | "NotOlderThan") {
        let supported = ["Exact", "NotOlderThan", ""];
        causes.push(Cause::unsupported(field, &json!(matched), &supported));
    }
    if matched == "Exact" && version == "0" {
        let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        causes.push(Cause::forbidden(field, detail));
    }
    if params.is_present("sendInitialEvents") {
        let detail = "sendInitialEvents is forbidden for list";
        causes.push(Cause::forbidden("sendInitialEvents", detail));
    }
    refuse(&causes)
}

/// Rejects parameters of a watch that exclude each other.
fn check_watch(params: &Params) -> Result<()> {
    let (field, known) = ("resourceVersionMatch", "NotOlderThan");
    let is_legacy = is_legacy_watch(params);
    let matched = if is_legacy { known } else { params.get(field) };
    let has_initial_events = is_legacy || params.is_present("sendInitialEvents");
    let mut causes = Vec::new();
    let mut forbid = |detail| causes.push(Cause::forbidden(field, detail));
    if has_initial_events && matched != known {
        forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if !matched.is_empty() {
        if !has_initial_events {
            forbid(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if matched != known {
            causes.push(Cause::unsupported(field, &json!(matched), &[known]));
        }
        if !params.get("continue").is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(Cause::forbidden(field, detail));
        }
    }
    refuse(&causes)
}

fn refuse(causes: &[Cause]) -> Result<()> {
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid_options("ListOptions", causes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(query: &str) -> String {
        let kinds = crate::kinds::built_in();
        let kind = kinds.iter().find(|kind| kind.kind == "Pod").unwrap();
        ListOptions::parse(kind, &Params::parse(query)).unwrap_err().message
    }

    #[test]
    fn wrong_parameters_are_reported_in_the_order_of_the_real_server() {
        let mut query = Vec::new();
        for (wrong, message) in [
            ("fieldSelector=spec.a%3D1", "field label not supported: spec.a"),
            (
                "sendInitialEvents=1",
                " \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden \
                 for list",
            ),
            ("labelSelector=a+b", "unable to parse requirement"),
            ("limit=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
            ("timeoutSeconds=y", "strconv.ParseInt: parsing \"y\": invalid syntax"),
        ] {
            query.push(wrong);
            let found = refusal(&query.join("&"));
            assert!(found.contains(message), "{query:?}: {found}");
        }
    }

    #[test]
    fn delete_of_a_collection_may_have_the_parameters_of_a_watch() {
        let found = refusal("watch=1&resourceVersion=5&resourceVersionMatch=Exact");
        assert!(found.contains("is forbidden for watch unless"), "{found}");
    }
}
