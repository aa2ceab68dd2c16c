//! The states of a pod's containers: one that has ended, and does not restart, stays so.

use serde_json::Value;

use super::{items, member, pod_containers, text};
use crate::status::Cause;

/// Checks the changes of states (`ValidateContainerStateTransition` and its siblings). The spec is
/// that of the stored pod.
pub(super) fn check(status: &Value, old: &Value, spec: &Value, causes: &mut Vec<Cause>) {
    let restarts_all = pod_containers::all(spec).any(|one| restarts_all(one.container));
    for (list, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        // One container may restart all of them, whatever their own policies are.
        if restarts_all {
            break;
        }
        let containers = items(member(spec, containers));
        let may_restart = |status: &Value, code: i64| {
            let found = containers.iter().find(|one| text(one, "name") == text(status, "name"));
            found.is_some_and(|found| restarts(found, spec, code))
        };
        check_list(status, old, list, may_restart, causes);
    }
    check_list(status, old, "ephemeralContainerStatuses", |_, _| false, causes);
}

fn check_list(
    status: &Value,
    old: &Value,
    list: &str,
    may_restart: impl Fn(&Value, i64) -> bool,
    causes: &mut Vec<Cause>,
) {
    let new = items(member(status, list));
    for (place, before) in items(member(old, list)).iter().enumerate() {
        let Some(code) = exit_code(before) else { continue };
        let is_same = |now: &&Value| text(now, "name") == text(before, "name");
        let restarts = new.iter().filter(is_same).any(|now| exit_code(now).is_none());
        if restarts && !may_restart(before, code) {
            let detail = "may not be transitioned to non-terminated state";
            causes.push(Cause::forbidden(format!("status.{list}[{place}].state"), detail));
        }
    }
}

/// Returns the exit code of a container that has ended.
fn exit_code(status: &Value) -> Option<i64> {
    let terminated = member(member(status, "state"), "terminated");
    let code = member(terminated, "exitCode").as_i64().unwrap_or(0);
    (!terminated.is_null()).then_some(code)
}

/// Returns true if the end of a container can restart all containers. That of an ephemeral one
/// cannot: validation refuses its rules.
fn restarts_all(container: &Value) -> bool {
    let mut rules = items(member(container, "restartPolicyRules")).iter();
    rules.any(|rule| text(rule, "action") == "RestartAllContainers")
}

/// Returns true if a container restarts after an end with this code. Its own rules and its own
/// policy come before the policy of the pod.
fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    let own = text(container, "restartPolicy");
    let rules = items(member(container, "restartPolicyRules"));
    // Either action of a rule restarts the container.
    if !own.is_empty() && rules.iter().any(|rule| fits(member(rule, "exitCodes"), code)) {
        return true;
    }
    let policy = if own.is_empty() { text(spec, "restartPolicy") } else { own };
    match policy {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    }
}

fn fits(codes: &Value, code: i64) -> bool {
    let is_listed = items(member(codes, "values")).iter().any(|one| one.as_i64() == Some(code));
    match text(codes, "operator") {
        "In" => is_listed,
        "NotIn" => !is_listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(operator: &str, values: &[i64]) -> Value {
        json!({"action": "Restart", "exitCodes": {"operator": operator, "values": values}})
    }

    #[test]
    fn policy_of_a_container_comes_before_that_of_its_pod() {
        let cases = [
            (json!({}), "Always", [true, true]),
            (json!({}), "OnFailure", [false, true]),
            (json!({}), "Never", [false, false]),
            (json!({"restartPolicy": "Always"}), "Never", [true, true]),
            (json!({"restartPolicy": "Never"}), "Always", [false, false]),
            (json!({"restartPolicy": "OnFailure"}), "Never", [false, true]),
        ];
        for (container, policy, expected) in cases {
            let spec = json!({"restartPolicy": policy});
            let found = [0, 42].map(|code| restarts(&container, &spec, code));
            assert_eq!(found, expected, "{container} {policy}");
        }
    }

    #[test]
    fn rule_restarts_a_container_that_its_policy_would_end() {
        let spec = json!({"restartPolicy": "Never"});
        for (rule, expected) in [
            (rule("In", &[42]), [false, true]),
            (rule("NotIn", &[42]), [true, false]),
            (rule("Odd", &[42]), [false, false]),
        ] {
            let container = json!({"restartPolicy": "Never", "restartPolicyRules": [rule]});
            let found = [0, 42].map(|code| restarts(&container, &spec, code));
            assert_eq!(found, expected, "{container}");
        }
    }
}
