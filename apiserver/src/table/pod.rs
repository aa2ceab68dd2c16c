//! The cells of a pod, which summarize its containers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Subject;
use super::text::age;
use crate::fields::text;

/// The summary of a pod's containers.
#[derive(Debug, Default)]
struct Summary {
    total: usize,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    reason: String,
}

/// The progress of the init containers.
#[derive(Debug, Default)]
struct Initialization {
    pending: bool,
    /// The restarts of sidecars: init containers that keep running.
    restarts: i64,
    last_restart: Option<Timestamp>,
}

pub(super) fn ready(pod: &Subject<'_>) -> Value {
    let summary = Summary::of(pod);
    json!(format!("{}/{}", summary.ready, summary.total))
}

pub(super) fn status(pod: &Subject<'_>) -> Value {
    json!(Summary::of(pod).reason)
}

pub(super) fn restarts(pod: &Subject<'_>) -> Value {
    let summary = Summary::of(pod);
    json!(match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, age(Some(last), pod.now))
        }
        _ => summary.restarts.to_string(),
    })
}

pub(super) fn address(pod: &Subject<'_>) -> Value {
    let first = pod.list("status.podIPs").first().map_or("", |first| text(first, "ip"));
    json!(if first.is_empty() { "<none>" } else { first })
}

pub(super) fn readiness_gates(pod: &Subject<'_>) -> Value {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return json!("<none>");
    }
    let open = gates.iter().filter(|gate| has_condition(pod, text(gate, "conditionType")));
    json!(format!("{}/{}", open.count(), gates.len()))
}

fn has_condition(pod: &Subject<'_>, kind: &str) -> bool {
    pod.list("status.conditions")
        .iter()
        .any(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
}

// === impl Summary ===

impl Summary {
    fn of(pod: &Subject<'_>) -> Self {
        let mut summary = Self { total: pod.list("spec.containers").len(), ..Self::default() };
        starting_reason(pod).clone_into(&mut summary.reason);
        let initialization = summary.add_init_containers(pod);
        if !initialization.pending || has_condition(pod, "Initialized") {
            summary.restarts = initialization.restarts;
            summary.last_restart = initialization.last_restart;
            summary.add_containers(pod);
        }
        if pod.is_terminating() {
            if pod.text("status.reason") == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !matches!(pod.text("status.phase"), "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    fn add_init_containers(&mut self, pod: &Subject<'_>) -> Initialization {
        let specs = pod.list("spec.initContainers");
        let keeps_running = |name: &str| {
            specs
                .iter()
                .any(|spec| text(spec, "name") == name && text(spec, "restartPolicy") == "Always")
        };
        self.total += specs.iter().filter(|spec| text(spec, "restartPolicy") == "Always").count();
        let mut initialization = Initialization::default();
        for (at, container) in pod.list("status.initContainerStatuses").iter().enumerate() {
            let count = restart_count(container);
            let keeps_running = keeps_running(text(container, "name"));
            self.restarts += count;
            self.last_restart = self.last_restart.max(last_end(container));
            if keeps_running {
                initialization.restarts += count;
                initialization.last_restart = initialization.last_restart.max(last_end(container));
            }
            let terminated = state(container, "terminated");
            if terminated.is_some_and(|state| exit_code(state) == 0) {
                continue;
            }
            if keeps_running && container.get("started") == Some(&json!(true)) {
                self.ready += usize::from(is_ready(container));
                continue;
            }
            self.reason = match (terminated, state(container, "waiting")) {
                (Some(state), _) => format!("Init:{}", ended_reason(state)),
                (None, Some(state)) if !matches!(text(state, "reason"), "" | "PodInitializing") => {
                    format!("Init:{}", text(state, "reason"))
                }
                _ => format!("Init:{at}/{}", specs.len()),
            };
            initialization.pending = true;
            break;
        }
        initialization
    }

    fn add_containers(&mut self, pod: &Subject<'_>) {
        let mut has_running = false;
        for container in pod.list("status.containerStatuses").iter().rev() {
            self.restarts += restart_count(container);
            self.last_restart = self.last_restart.max(last_end(container));
            let waiting = state(container, "waiting").map_or("", |state| text(state, "reason"));
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = state(container, "terminated") {
                self.reason = ended_reason(terminated);
            } else if is_ready(container) && state(container, "running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && has_running {
            let reason = if has_condition(pod, "Ready") { "Running" } else { "NotReady" };
            reason.clone_into(&mut self.reason);
        }
    }
}

/// Returns the reason that the pod itself has, before those of its containers.
fn starting_reason<'a>(pod: &'a Subject<'_>) -> &'a str {
    let gated = pod.list("status.conditions").iter().any(|condition| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    });
    match pod.text("status.reason") {
        _ if gated => "SchedulingGated",
        "" => pod.text("status.phase"),
        reason => reason,
    }
}

fn state<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    container.get("state")?.get(name).filter(|state| !state.is_null())
}

fn is_ready(container: &Value) -> bool {
    container.get("ready") == Some(&json!(true))
}

fn restart_count(container: &Value) -> i64 {
    container.get("restartCount").and_then(Value::as_i64).unwrap_or(0)
}

fn exit_code(terminated: &Value) -> i64 {
    terminated.get("exitCode").and_then(Value::as_i64).unwrap_or(0)
}

fn ended_reason(terminated: &Value) -> String {
    let reason = text(terminated, "reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match terminated.get("signal").and_then(Value::as_i64).unwrap_or(0) {
        0 => format!("ExitCode:{}", exit_code(terminated)),
        signal => format!("Signal:{signal}"),
    }
}

/// Returns the last end of a container.
fn last_end(container: &Value) -> Option<Timestamp> {
    text(container.pointer("/lastState/terminated")?, "finishedAt").parse().ok()
}
