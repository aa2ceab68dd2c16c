//! Lists: which state is listed, which page of it, and what else is said about it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::read::parse_version;
use super::token::Token;
use super::view::View;
use crate::core::Core;
use crate::http::{Answer, Call};
use crate::kinds::Kind;
use crate::object::Stored;
use crate::selection::Selection;
use crate::status::{Cause, Failure, Result};
use crate::storage::Objects;

/// What is asked for.
struct Request {
    selector: Selection,
    /// The keys of the list's objects start with this.
    prefix: String,
    limit: usize,
    state: State,
    start: Option<Token>,
    /// Whether the watch cache answers, and not the store.
    from_cache: bool,
}

/// Which state to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Newest,
    NotOlderThan(u64),
    Exactly(u64),
}

/// One page.
struct Page {
    revision: u64,
    items: Vec<Arc<Stored>>,
    next: Option<Token>,
    remaining: Option<usize>,
}

pub(super) async fn list(core: &Arc<Core>, call: &Call) -> Result<Answer> {
    let view = View::of_list(core, call)?;
    let request = Request::parse(call)?;
    if request.from_cache {
        core.check_ready()?;
    }
    request.reach(core, call).await?;
    let served = &call.target.served;
    let (revision, objects) = request.state(core, call)?;
    let page = request.page(revision, &objects);
    if page.next.is_some() {
        core.pin(served.resource, revision, &objects);
    }
    Ok(Answer::ok(view.list(&page.metadata(&served.kind), page.items.iter())))
}

/// The objects in the call's scope that its selectors take, as many as it wants, and the metadata of their list.
pub(super) async fn some(core: &Core, call: &Call) -> Result<(Value, Vec<Arc<Stored>>)> {
    let request = Request::parse(call)?;
    request.reach(core, call).await?;
    let (revision, objects) = request.state(core, call)?;
    let page = request.page(revision, &objects);
    Ok((page.metadata(&call.target.served.kind), page.items))
}

// === impl Request ===

impl Request {
    fn parse(call: &Call) -> Result<Self> {
        let params = &call.params;
        let kind = &call.target.served.kind;
        let selector =
            Selection::parse(kind, params.get("labelSelector"), params.get("fieldSelector"))?;
        check_options(call)?;
        params.number("timeoutSeconds")?;
        let version = params.get("resourceVersion");
        let start = match params.get("continue") {
            "" => None,
            text => Some(Token::decode(text)?),
        };
        if start.is_some() && !matches!(version, "" | "0") {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let mut limit = usize::try_from(params.number("limit")?.unwrap_or(0)).unwrap_or(0);
        if start.is_some() && version == "0" {
            limit = 0;
        }
        let state = match (&start, parse_version(version)?, params.get("resourceVersionMatch")) {
            (Some(token), ..) => u64::try_from(token.rv).map_or(State::Newest, State::Exactly),
            (None, None, _) => State::Newest,
            (None, Some(0), "") => {
                // Any state will do, the cache's whole one is at hand.
                limit = 0;
                State::Newest
            }
            (None, Some(revision), "Exact") => State::Exactly(revision),
            (None, Some(revision), "") if limit > 0 => State::Exactly(revision),
            (None, Some(revision), _) => State::NotOlderThan(revision),
        };
        let from_cache = start.is_none() && !version.is_empty();
        let prefix = prefix(kind, call.namespace());
        Ok(Self { selector, prefix, limit, state, start, from_cache })
    }

    /// Waits for a state that is yet to come.
    async fn reach(&self, core: &Core, call: &Call) -> Result<()> {
        match self.state {
            State::NotOlderThan(revision) | State::Exactly(revision) => {
                core.reach(revision, &call.sight).await
            }
            State::Newest => Ok(()),
        }
    }

    fn state(&self, core: &Core, call: &Call) -> Result<(u64, Objects)> {
        let resource = call.target.served.resource;
        match self.state {
            State::Exactly(revision) => {
                let objects = core.read(|storage| storage.objects_at(resource, revision));
                Ok((revision, objects.map_err(|_| self.expired())?))
            }
            _ => core.in_sight(call, self.from_cache).ok_or_else(|| self.expired()),
        }
    }

    fn expired(&self) -> Failure {
        let Some(token) = &self.start else {
            return Failure::new(
                410,
                "Expired",
                "The resourceVersion for the provided list is too old.",
            );
        };
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                       new list without the continue parameter, or use the continue token in this response to retrieve \
                       the remainder of the results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time the first chunk was \
                       returned and now may show up in the list.";
        let mut failure = Failure::new(410, "Expired", message);
        failure.token = Some(token.of_the_present().encode());
        failure
    }

    fn page(&self, revision: u64, objects: &Objects) -> Page {
        let start = match &self.start {
            Some(token) => format!("{}{}", self.prefix, token.start_key()),
            None => self.prefix.clone(),
        };
        let mut left = objects
            .range(Arc::<str>::from(start)..)
            .take_while(|(key, _)| key.starts_with(&self.prefix));
        let mut items: Vec<Arc<Stored>> = Vec::new();
        let mut last = None;
        for (key, object) in left.by_ref() {
            if self.selector.matches(&object.selectable) {
                items.push(Arc::clone(object));
            }
            last = Some(key);
            if items.len() == self.limit && self.limit > 0 {
                break;
            }
        }
        let remaining = left.count();
        let next = last
            .filter(|_| remaining > 0 && !self.selector.names_one())
            .map(|key| Token::after(revision, &key[self.prefix.len()..]));
        let remaining = (next.is_some() && self.selector.is_everything()).then_some(remaining);
        Page { revision, items, next, remaining }
    }
}

/// What all keys of a list start with.
pub(super) fn prefix(kind: &Kind, namespace: &str) -> String {
    if kind.namespaced && !namespace.is_empty() { format!("{namespace}/") } else { String::new() }
}

/// Options that make no sense together.
fn check_options(call: &Call) -> Result<()> {
    let params = &call.params;
    let (version, matched) = (params.get("resourceVersion"), params.get("resourceVersionMatch"));
    let field = "resourceVersionMatch";
    let mut causes = Vec::new();
    let mut forbid = |field, why| causes.push(Cause::forbidden(field, why));
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
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        causes.push(Cause::forbidden(field, why));
    }
    if params.is_said("sendInitialEvents") {
        let why = "sendInitialEvents is forbidden for list";
        causes.push(Cause::forbidden("sendInitialEvents", why));
    }
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid_options("ListOptions", &causes)) }
}

// === impl Page ===

impl Page {
    fn metadata(&self, kind: &Kind) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        match &self.next {
            Some(token) => metadata["continue"] = json!(token.encode()),
            // Lists of custom resources say that there is no more; lists of built-in kinds leave it out.
            None if kind.custom => metadata["continue"] = json!(""),
            None => {}
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}
