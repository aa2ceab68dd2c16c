//! The choice of one plan of a sweep.

use std::env;

use super::Plan;
use super::kind::Kind;

/// The environment variable that restricts a sweep to one plan.
pub(super) const ONLY: &str = "HOMEOSTAT_PLAN";

/// Returns the value of the variable that restricts a sweep to one plan.
pub(super) fn only() -> Option<String> {
    env::var_os(ONLY).map(|name| name.to_string_lossy().into_owned())
}

/// Returns the plan with the name `only`. None is selected if that is a plan of the other sweep: a
/// test may run both.
///
/// # Errors
///
/// The text with the names of the plans, if `only` is another name.
pub(super) fn select(plans: Vec<Plan>, kind: Kind, only: &str) -> Result<Vec<Plan>, String> {
    const LISTED: usize = 30;
    if Plan::named(only).is_some_and(|plan| Kind::of(&plan) != kind) {
        return Ok(Vec::new());
    }
    let names: Vec<String> = plans.iter().map(ToString::to_string).collect();
    let selected: Vec<Plan> = plans.into_iter().filter(|plan| plan.to_string() == only).collect();
    if !selected.is_empty() {
        return Ok(selected);
    }
    let listed = names.len().min(LISTED);
    let more = match names.len() - listed {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let listed = names[..listed].join(", ");
    Err(format!(
        "{ONLY}={only:?} is no plan of this sweep; unset it, or set it to one of: {listed}{more}"
    ))
}
