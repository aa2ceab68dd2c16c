//! Pod security: the labels of a namespace that choose a level, and the checks of each level. Pure
//! functions of labels and of pods, by the rules of `k8s.io/pod-security-admission`.

mod capabilities;
mod containers;
mod host;
mod levels;
mod pod;
mod profiles;
mod table;
#[cfg(test)]
mod tests;
mod users;
mod volumes;

pub(crate) use levels::{Level, LevelVersion, Policy};
pub(crate) use pod::PodView;
pub(crate) use table::evaluate;

/// The result of a check that a pod does not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) reason: &'static str,
    pub(crate) detail: String,
}

/// Returns the violations with their details, as the reply for one pod lists them.
pub(crate) fn details(violations: &[Violation]) -> String {
    let each = violations.iter().map(|Violation { reason, detail }| format!("{reason} ({detail})"));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the violations without their details, which pods of one controller share.
pub(crate) fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.reason).collect::<Vec<_>>().join(", ")
}
