//! Probes of containers and the hooks of their lifecycle.

use serde_json::{Value, json};

use super::Test::{AtLeast, By, Has, NotNegative, OneOf, Required};
use super::{Check, check_text, container_ports, items, member, text};
use crate::names;
use crate::status::Cause;

/// The checks of a container's probes.
pub(super) const PROBES: &[Check] = &[
    ("livenessProbe", Has(PROBE)),
    ("livenessProbe", Has(ONE_SUCCESS)),
    ("readinessProbe", Has(PROBE)),
    ("readinessProbe.terminationGracePeriodSeconds", By(no_grace_period)),
    ("startupProbe", Has(PROBE)),
    ("startupProbe", Has(ONE_SUCCESS)),
];

const PROBE: &[Check] = &[
    ("", By(probe_handler)),
    ("initialDelaySeconds", NotNegative),
    ("timeoutSeconds", NotNegative),
    ("periodSeconds", NotNegative),
    ("successThreshold", NotNegative),
    ("failureThreshold", NotNegative),
    ("terminationGracePeriodSeconds", AtLeast(1, "must be greater than 0")),
];

const ONE_SUCCESS: &[Check] = &[("successThreshold", By(one))];

/// A kind of handler, and its checks.
type Handler = (&'static str, &'static [Check]);

const EXEC: Handler = ("exec", &[("command", Required(""))]);
const HTTP: Handler = (
    "httpGet",
    &[
        ("path", Required("")),
        ("port", By(port)),
        ("scheme", OneOf(&["HTTP", "HTTPS"])),
        ("httpHeaders", By(headers)),
    ],
);
const TCP: Handler = ("tcpSocket", &[("port", By(port))]);
const GRPC: Handler = ("grpc", &[("port", By(port))]);

fn one(_: &Value, threshold: &Value, at: &str, causes: &mut Vec<Cause>) {
    if threshold.as_i64().is_some_and(|threshold| threshold != 1) {
        causes.push(Cause::invalid(at, threshold, "must be 1"));
    }
}

fn no_grace_period(_: &Value, period: &Value, at: &str, causes: &mut Vec<Cause>) {
    if !period.is_null() {
        causes.push(Cause::invalid(at, period, "must not be set for readinessProbes"));
    }
}

fn probe_handler(_: &Value, probe: &Value, at: &str, causes: &mut Vec<Cause>) {
    handler(&[EXEC, HTTP, TCP, GRPC], probe, at, causes);
}

/// Checks that there is one handler, and that it is valid. Returns its kind.
fn handler(
    kinds: &[Handler],
    object: &Value,
    at: &str,
    causes: &mut Vec<Cause>,
) -> Option<&'static str> {
    let mut given = kinds.iter().filter(|(kind, _)| !member(object, kind).is_null());
    let Some((first, checks)) = given.next() else {
        causes.push(Cause::required(at, "must specify a handler type"));
        return None;
    };
    super::run(*checks, member(object, first), &format!("{at}.{first}"), causes);
    for (kind, _) in given {
        let detail = "may not specify more than 1 handler type";
        causes.push(Cause::forbidden(format!("{at}.{kind}"), detail));
    }
    Some(first)
}

/// Checks a port, by its number or by its name.
fn port(_: &Value, port: &Value, at: &str, causes: &mut Vec<Cause>) {
    if let Some(name) = port.as_str() {
        causes.extend(names::port(name).iter().map(|detail| Cause::invalid(at, port, detail)));
        return;
    }
    container_ports::in_range(&json!(port.as_i64().unwrap_or_default()), at, causes);
}

/// Checks the names of headers. The real server does not say which of them is wrong.
fn headers(_: &Value, headers: &Value, at: &str, causes: &mut Vec<Cause>) {
    for header in items(headers) {
        check_text(&json!(text(header, "name")), names::http_header, at, causes);
    }
}

/// Checks the hooks of a container whose pod has this period to end.
pub(super) fn lifecycle(container: &Value, period: Option<i64>, at: &str, causes: &mut Vec<Cause>) {
    const SLEEP: Handler = ("sleep", &[]);
    for name in ["postStart", "preStop"] {
        let hook = member(member(container, "lifecycle"), name);
        if hook.is_null() {
            continue;
        }
        let at = format!("{at}.lifecycle.{name}");
        let kind = handler(&[EXEC, HTTP, TCP, SLEEP], hook, &at, causes);
        let seconds = member(member(hook, "sleep"), "seconds").as_i64().unwrap_or_default();
        if let Some(period) = period.filter(|_| kind == Some("sleep"))
            && !(0..=period).contains(&seconds)
        {
            let detail = format!(
                "must be non-negative and less than terminationGracePeriodSeconds ({period})"
            );
            causes.push(Cause::invalid(format!("{at}.sleep"), &json!(seconds), &detail));
        }
    }
}
