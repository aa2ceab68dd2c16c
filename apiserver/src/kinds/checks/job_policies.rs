//! The policies of jobs: what their failed pods mean, and when they have succeeded.

use serde_json::{Value, json};

use super::Test::{NotNegative, OneOf, Required};
use super::job_indexes::{count_indexes, is_indexed};
use super::{Causes, Check, is_empty, items, join, member, text};
use crate::names;
use crate::status::Cause;

const MAX_RULES: usize = 20;
const MAX_CODES: usize = 255;
const MAX_CONDITIONS: usize = 20;
/// The longest list of indexes, in bytes.
const MAX_INDEXES: usize = 64 * 1024;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: &[&str] = &["In", "NotIn"];

/// Returns true if a job has a policy about failed pods.
pub(super) fn is_set(spec: &Value) -> bool {
    !member(spec, "podFailurePolicy").is_null()
}

// === failures ===

pub(super) fn failures(spec: &Value, at: &str, causes: Causes<'_>) {
    let rules = items(member(member(spec, "podFailurePolicy"), "rules"));
    let at = format!("{at}.podFailurePolicy.rules");
    at_most(rules.len(), MAX_RULES, &at, causes);
    for (place, rule) in rules.iter().enumerate() {
        failure(spec, rule, &format!("{at}[{place}]"), causes);
    }
}

fn at_most(found: usize, most: usize, at: &str, causes: Causes<'_>) {
    if found > most {
        causes.push(Cause::too_many(at, found, most));
    }
}

/// Shows the texts that are valid as Go prints a list.
fn valid(texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    format!("valid values: [{}]", texts.join(" "))
}

fn failure(spec: &Value, rule: &Value, at: &str, causes: Causes<'_>) {
    let action = member(rule, "action");
    let action_at = join(at, "action");
    if is_empty(action) {
        causes.push(Cause::required(action_at, &valid(ACTIONS)));
    } else if !ACTIONS.iter().any(|known| action == known) {
        causes.push(Cause::unsupported(action_at, action, ACTIONS));
    } else if *action == "FailIndex" && member(spec, "backoffLimitPerIndex").is_null() {
        let detail = "requires the backoffLimitPerIndex to be set";
        causes.push(Cause::invalid(action_at, action, detail));
    }
    let (codes, conditions) = (member(rule, "onExitCodes"), items(member(rule, "onPodConditions")));
    if !codes.is_null() {
        exit_codes(member(spec, "template"), codes, &join(at, "onExitCodes"), causes);
    }
    pod_conditions(conditions, &join(at, "onPodConditions"), causes);
    let detail = match (codes.is_null(), conditions.is_empty()) {
        (false, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (true, true) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    causes.push(Cause::invalid_text(at, detail, ""));
}

fn pod_conditions(list: &[Value], at: &str, causes: Causes<'_>) {
    const STATUSES: &[&str] = &["False", "True", "Unknown"];
    at_most(list.len(), MAX_CONDITIONS, at, causes);
    for (place, condition) in list.iter().enumerate() {
        let at = format!("{at}[{place}]");
        let kind = json!(text(condition, "type"));
        super::check_text(&kind, names::qualified, &join(&at, "type"), causes);
        super::run(&[("status", OneOf(STATUSES))], condition, &at, causes);
    }
}

fn exit_codes(template: &Value, codes: &Value, at: &str, causes: Causes<'_>) {
    let operator = member(codes, "operator");
    if is_empty(operator) {
        causes.push(Cause::required(join(at, "operator"), &valid(OPERATORS)));
    }
    if !is_empty(operator) && !OPERATORS.iter().any(|known| operator == known) {
        causes.push(Cause::unsupported(join(at, "operator"), operator, OPERATORS));
    }
    let container = member(codes, "containerName");
    let lists = ["containers", "initContainers"].map(|list| member(member(template, "spec"), list));
    let mut names = lists.into_iter().flat_map(items).map(|one| member(one, "name"));
    if !container.is_null() && !names.any(|name| name == container) {
        let detail = "must be one of the container or initContainer names in the pod template";
        causes.push(Cause::invalid(join(at, "containerName"), container, detail));
    }
    code_values(member(codes, "values"), *operator == "In", &join(at, "values"), causes);
}

fn code_values(list: &Value, are_in: bool, at: &str, causes: Causes<'_>) {
    let values: Vec<i64> = items(list).iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        causes.push(Cause::invalid(at, &json!([]), "at least one value is required"));
    }
    at_most(values.len(), MAX_CODES, at, causes);
    for (place, value) in values.iter().enumerate() {
        let at = format!("{at}[{place}]");
        if are_in && *value == 0 {
            causes.push(Cause::invalid(&at, &json!(0), "must not be 0 for the In operator"));
        }
        if values[..place].contains(value) {
            causes.push(Cause::duplicate(at, &json!(value)));
        }
    }
    if !values.is_sorted() {
        causes.push(Cause::invalid(at, list, "must be ordered"));
    }
}

// === success ===

pub(super) fn success(spec: &Value, at: &str, causes: Causes<'_>) {
    const RULES: Check = (
        "rules",
        Required("at least one rules must be specified when the successPolicy is specified"),
    );
    let policy = member(spec, "successPolicy");
    let at = join(at, "successPolicy");
    if policy.is_null() {
        return;
    }
    if !is_indexed(spec) {
        causes.push(Cause::invalid(at, &shown(policy), "requires indexed completion mode"));
        return;
    }
    super::run(&[RULES], policy, &at, causes);
    let rules = items(member(policy, "rules"));
    let at = join(&at, "rules");
    at_most(rules.len(), MAX_RULES, &at, causes);
    let completions = member(spec, "completions").as_i64().unwrap_or(0);
    for (place, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &format!("{at}[{place}]"), causes);
    }
}

/// Shows a policy of success as the server's own version has it.
pub(super) fn shown(policy: &Value) -> Value {
    let rules = items(member(policy, "rules")).iter().map(|rule| {
        let [indexes, count] =
            ["succeededIndexes", "succeededCount"].map(|name| member(rule, name));
        json!({"SucceededIndexes": indexes, "SucceededCount": count})
    });
    json!({"Rules": rules.collect::<Vec<_>>()})
}

fn success_rule(rule: &Value, completions: i64, at: &str, causes: Causes<'_>) {
    let (count, indexes) = (member(rule, "succeededCount"), member(rule, "succeededIndexes"));
    if count.is_null() && indexes.is_null() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        causes.push(Cause::required(at, detail));
    }
    let mut total = 0;
    if let Some(text) = indexes.as_str() {
        let at = join(at, "succeededIndexes");
        if text.len() > MAX_INDEXES {
            causes.push(Cause::too_long(&at, MAX_INDEXES));
        }
        match count_indexes(text, completions) {
            Ok(count) => total = count,
            Err(problem) => {
                let detail = format!("error parsing succeededIndexes: {problem}");
                causes.push(Cause::invalid(at, indexes, &detail));
            }
        }
    }
    let at = join(at, "succeededCount");
    super::run(&[("", NotNegative)], count, &at, causes);
    let mut at_most = |most: i64, of: &str| {
        if count.as_i64().is_some_and(|count| count > most) {
            let detail = format!("must be less than or equal to {most} (the number of {of})");
            causes.push(Cause::invalid(&at, count, &detail));
        }
    };
    at_most(completions, "specified completions");
    if !indexes.is_null() {
        at_most(total, "indexes in the specified succeededIndexes field");
    }
}
