//! Authentication: the user of a request, and the check that the user may make it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_faults::{RequestInfo, Verb};
use http::request::Parts;
use http::{HeaderMap, Method, header};

use super::bearer::{self, Bearer};
use super::impersonation;
use super::roles::check;
use crate::access::{Attributes, Caller, ClientCertificate, User};
use crate::core::Core;
use crate::field_selector::{FieldOperator, FieldSelector};
use crate::flow_control::Flow;
use crate::kinds::Author;
use crate::metrics::Counter;
use crate::names::path_segment;
use crate::request::ApiCall;
use crate::request::params::{Params, decode_lossy};
use crate::status::{Failure, Result};

/// The client of a request, as the author of a write.
pub(super) struct Requester<'a> {
    pub(super) core: &'a Core,
    pub(super) call: &'a ApiCall,
}

// === impl Requester ===

impl Author for Requester<'_> {
    fn user(&self) -> &User {
        &self.call.user
    }

    fn verb(&self) -> &'static str {
        if self.call.method == Method::PUT { "update" } else { "patch" }
    }

    fn namespace_labels(&self) -> BTreeMap<String, String> {
        let namespace =
            self.core.get(self.core.kinds().namespaces().resource, self.call.namespace());
        namespace.map(|namespace| namespace.selectable.labels.clone()).unwrap_or_default()
    }

    fn refusal(&self, request: &Attributes) -> Option<String> {
        check(self.core, self.user(), request).err().map(|failure| failure.message)
    }
}

// === requests ===

/// The decision about a request before it is read.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// The user who makes the request; the reply to one that goes no further.
    pub(crate) user: Result<Arc<User>>,
    /// `None` if the server has no flow control, or if it has not found the user.
    pub(crate) flow: Option<Flow>,
    /// A warning about the credentials of the request; often empty.
    pub(crate) warning: &'static str,
}

/// The user of a request.
struct Identity {
    /// The user's name in metrics: of the one whose credentials the request has.
    name: &'static str,
    user: Arc<User>,
    warning: &'static str,
    /// The request as rules describe it; `None` if the server has no users.
    request: Option<Attributes>,
}

/// Finds the user of a request and its flow. If the server enforces roles, the user must have the
/// right to make it.
pub(crate) fn admit(core: &Core, parts: &Parts) -> Admitted {
    let Identity { name, user, warning, request } = match identify(core, parts) {
        Ok(identity) => identity,
        Err(failure) => return Admitted { user: Err(failure), flow: None, warning: "" },
    };
    let control = request.as_ref().zip(core.flow_control());
    let flow = control.and_then(|(request, control)| control.flow_of(&user, request));
    let enforced = request.filter(|_| core.access.is_enforced());
    let checked = enforced.map_or(Ok(()), |request| check(core, &user, &request));
    count_admitted(core, name, Some(if checked.is_ok() { "allowed" } else { "no-opinion" }));
    Admitted { user: checked.map(|()| user), flow, warning }
}

/// Finds the user of a request, or the one that it impersonates.
fn identify(core: &Core, parts: &Parts) -> Result<Identity> {
    let (user, warning) = authenticate(core, parts).inspect_err(|_| {
        let is_wrong = bearer_token(&parts.headers).is_some()
            || parts.extensions.get::<ClientCertificate>().is_some();
        let result = if is_wrong { "error" } else { "failure" };
        core.metrics.count(Counter::Authentications, &[Cow::Borrowed(result)]);
    })?;
    let name = known_name(&user.name);
    let request = core.access.authenticates().then(|| attributes(parts)).flatten();
    let enforced = request.as_ref().filter(|_| core.access.is_enforced());
    let user = impersonation::user_of(core, &parts.headers, user, enforced)
        .inspect_err(|_| count_admitted(core, name, None))?;
    Ok(Identity { name, user, warning, request })
}

/// Counts a user that was found, and the decision about the request, if there was one.
fn count_admitted(core: &Core, name: &'static str, decision: Option<&'static str>) {
    let [user, found] = [[Cow::Borrowed(name)], [Cow::Borrowed("success")]];
    let decision = decision.map(|decision| [Cow::Borrowed(decision)]);
    let events = [
        Some((Counter::AuthenticatedUsers, &user[..])),
        Some((Counter::Authentications, &found[..])),
        decision.as_ref().map(|decision| (Counter::Authorizations, &decision[..])),
    ];
    core.metrics.count_all(events.into_iter().flatten());
}

/// Returns the name of a user in metrics: only a few have one of their own.
fn known_name(name: &str) -> &'static str {
    const KNOWN: [&str; 5] =
        ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];
    let known = KNOWN.into_iter().find(|known| *known == name);
    known.unwrap_or_else(|| if name.contains('@') { "email_id" } else { "other" })
}

/// Finds the user of a request by its certificate, else by its token. As on the real server, an
/// invalid certificate is an error unless the token is valid, and the reverse. Returns a warning
/// about the token, too.
fn authenticate(core: &Core, parts: &Parts) -> Result<(Arc<User>, &'static str)> {
    let is_needed = core.access.authenticates();
    let certificate = parts.extensions.get::<ClientCertificate>();
    if let Some(ClientCertificate::Valid(user)) = certificate {
        return Ok((Arc::clone(user), ""));
    }
    let user = match (bearer_token(&parts.headers), parts.extensions.get::<Caller>()) {
        (Some(token), _) => match bearer::own_bearer(core, token) {
            Some(Bearer { user, warning, .. }) => return Ok((user, warning)),
            None if is_needed => Err(Failure::unauthorized()),
            None => Ok(core.access.admin()),
        },
        (None, Some(Caller::InProcess(user))) => Ok(Arc::clone(user)),
        (None, _) if is_needed && certificate.is_some() => Err(Failure::unauthorized()),
        (None, _) if is_needed => core.access.anonymous().ok_or_else(Failure::unauthorized),
        (None, _) => Ok(core.access.admin()),
    };
    user.map(|user| (user, ""))
}

/// Returns the token of a request: the text between the first two spaces of its header. As on the
/// real server, an empty one is no token.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let mut parts = value.trim().split(' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Returns the request as the rules of roles describe it; `None` for a malformed path, which
/// names nothing.
fn attributes(parts: &Parts) -> Option<Attributes> {
    let path = decode_lossy(parts.uri.path())?;
    let query = parts.uri.query().unwrap_or_default();
    let info = RequestInfo::parse(&parts.method, &path, query);
    if info.verb == Verb::Other {
        let verb = parts.method.as_str().to_lowercase();
        return Some(Attributes { verb, path: Some(path.into_owned()), ..Attributes::default() });
    }
    let name = info.name.unwrap_or_default();
    // A namespace is an object of itself.
    let namespace = match info.resource.as_str() {
        "namespaces" if info.group.is_empty() => Some(name.clone()),
        _ => info.namespace,
    };
    let name = if name.is_empty() && matches!(info.verb, Verb::List | Verb::Watch) {
        selected_name(query)
    } else {
        name
    };
    // A path below a proxy belongs to the proxy.
    let subresource = info.subresource.unwrap_or_default();
    let subresource = subresource.split('/').next().unwrap_or_default().to_owned();
    Some(Attributes {
        verb: info.verb.to_string(),
        namespace: namespace.unwrap_or_default(),
        group: info.group,
        resource: info.resource,
        subresource,
        name,
        path: None,
    })
}

/// Returns the name of the object that a field selector leaves; empty if there may be others, or
/// if the options of the list are invalid.
fn selected_name(query: &str) -> String {
    let params = Params::parse(query);
    let are_numbers = ["limit", "timeoutSeconds"].iter().all(|name| params.number(name).is_ok());
    let selector = FieldSelector::parse(params.get("fieldSelector"));
    let Some(selector) = selector.ok().filter(|_| are_numbers) else { return String::new() };
    let mut names = selector.requirements().filter(|(path, operator, _)| {
        *path == "metadata.name" && *operator == FieldOperator::Equals
    });
    let name = names.next().map_or("", |(_, _, name)| name);
    if path_segment(name).is_empty() { name.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn token_is_the_text_between_two_spaces() {
        let token = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
            bearer_token(&headers).map(str::to_owned)
        };
        for value in ["Bearer a", "bearer a", " BEARER a ", "Bearer a b"] {
            assert_eq!(token(value).as_deref(), Some("a"), "{value}");
        }
        for value in ["Bearer", "Bearer  a", "Basic a", "a"] {
            assert_eq!(token(value), None, "{value}");
        }
    }
}
