//! Conditions of a status.
//!
//! The rules are those of `meta.SetStatusCondition` of apimachinery: one condition per type, and a
//! transition time that changes with the status only, so that a status that is computed again is
//! equal to the stored one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Sets `condition` in `conditions`, in place of the one of its type. Returns true if something
/// has changed, so that the status must be written.
///
/// `lastTransitionTime` becomes `now` if the condition is new or its status has changed, and stays
/// as it was otherwise: `condition.last_transition_time` is ignored. Conditions of other types and
/// their order are kept.
///
/// # Examples
///
/// ```
/// use homeostat::conditions::set_condition;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
/// use k8s_openapi::jiff::Timestamp;
///
/// let ready = |status: &str, reason: &str| Condition {
///     type_: "Ready".into(),
///     status: status.into(),
///     reason: reason.into(),
///     message: String::new(),
///     observed_generation: None,
///     last_transition_time: Time(Timestamp::UNIX_EPOCH),
/// };
/// let at = |seconds| Timestamp::from_second(seconds).unwrap();
///
/// let mut conditions = Vec::new();
/// assert!(set_condition(&mut conditions, ready("False", "Creating"), at(10)));
/// assert!(set_condition(&mut conditions, ready("False", "Waiting"), at(20)));
/// assert_eq!(conditions[0].last_transition_time.0, at(10), "the status is the same");
/// assert!(!set_condition(&mut conditions, ready("False", "Waiting"), at(30)));
/// assert!(set_condition(&mut conditions, ready("True", "Done"), at(40)));
/// assert_eq!(conditions[0].last_transition_time.0, at(40));
/// ```
#[doc(alias = "SetStatusCondition")]
pub fn set_condition(
    conditions: &mut Vec<Condition>,
    mut condition: Condition,
    now: Timestamp,
) -> bool {
    let current = conditions.iter_mut().find(|it| it.type_ == condition.type_);
    let is_same_status = current.as_ref().is_some_and(|it| it.status == condition.status);
    condition.last_transition_time = match &current {
        Some(current) if is_same_status => current.last_transition_time.clone(),
        _ => Time(now),
    };
    match current {
        Some(current) if *current == condition => false,
        Some(current) => {
            *current = condition;
            true
        }
        None => {
            conditions.push(condition);
            true
        }
    }
}

/// Returns the condition of this type.
///
/// # Examples
///
/// ```
/// use homeostat::conditions::{find_condition, is_condition_true, set_condition};
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
/// use k8s_openapi::jiff::Timestamp;
///
/// let now = Timestamp::UNIX_EPOCH;
/// let mut conditions = Vec::new();
/// let ready = Condition {
///     type_: "Ready".into(),
///     status: "True".into(),
///     reason: "Done".into(),
///     message: String::new(),
///     observed_generation: Some(3),
///     last_transition_time: Time(now),
/// };
/// set_condition(&mut conditions, ready, now);
/// let ready = find_condition(&conditions, "Ready").expect("it was set");
/// assert_eq!(ready.observed_generation, Some(3));
/// assert!(is_condition_true(&conditions, "Ready"));
/// assert!(!is_condition_true(&conditions, "Progressing"));
/// ```
#[doc(alias = "FindStatusCondition")]
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns true if the condition of this type has the status `True`.
///
/// A condition that is missing or `Unknown` is not true.
#[doc(alias = "IsStatusConditionTrue")]
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    find_condition(conditions, type_).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(type_: &str, status: &str, reason: &str) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn transition_time_changes_with_the_status_only() {
        let mut conditions = Vec::new();
        assert!(set_condition(&mut conditions, condition("Ready", "False", "Creating"), at(10)));
        assert!(set_condition(&mut conditions, condition("Ready", "False", "Waiting"), at(20)));
        assert_eq!(conditions[0].last_transition_time.0, at(10));
        assert_eq!(conditions[0].reason, "Waiting");
        assert!(!set_condition(&mut conditions, condition("Ready", "False", "Waiting"), at(30)));
        assert!(set_condition(&mut conditions, condition("Ready", "True", "Done"), at(40)));
        assert_eq!(conditions[0].last_transition_time.0, at(40));
    }

    #[test]
    fn other_conditions_and_their_order_are_kept() {
        let mut conditions = Vec::new();
        for type_ in ["A", "B", "C"] {
            set_condition(&mut conditions, condition(type_, "True", "First"), at(1));
        }
        set_condition(&mut conditions, condition("B", "False", "Second"), at(2));
        let types: Vec<_> = conditions.iter().map(|it| it.type_.as_str()).collect();
        assert_eq!(types, ["A", "B", "C"]);
        assert!(is_condition_true(&conditions, "A") && !is_condition_true(&conditions, "B"));
        assert!(find_condition(&conditions, "D").is_none());
    }
}
