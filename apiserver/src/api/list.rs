//! Lists: the state to list, the page of it, and the list's metadata.

use std::sync::Arc;

use serde_json::{Value, json};

use super::list_options::ListOptions;
use super::read::parse_version;
use super::renderer::Renderer;
use super::shown;
use super::token::Token;
use crate::core::Core;
use crate::kinds::Kind;
use crate::names;
use crate::object::Stored;
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::selection::Selection;
use crate::status::{Failure, Result};
use crate::storage::Objects;

/// The parameters of a list.
struct Request {
    selector: Selection,
    /// The common prefix of the keys of the list's objects.
    prefix: String,
    limit: usize,
    state: State,
    start: Option<Token>,
    /// True if the watch cache answers, false if the store does.
    from_cache: bool,
}

/// The state to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Newest,
    NotOlderThan(u64),
    Exactly(u64),
}

/// One page of a list.
struct Page {
    revision: u64,
    items: Vec<Arc<Stored>>,
    next: Option<Token>,
    remaining: Option<usize>,
}

pub(super) async fn list(core: &Arc<Core>, call: &ApiCall) -> Result<Reply> {
    let request = Request::parse(call, ListOptions::of(call)?, false)?;
    if request.from_cache {
        core.check_ready()?;
    }
    request.wait_for_revision(core, call).await?;
    let served = &call.target.served;
    let (revision, objects) = request.state(core, call)?;
    // The real server looks at the form of the reply once it has the list.
    let renderer = Renderer::of_list(core, call)?;
    let page = request.shown_page(core, call, (revision, &objects)).await?;
    if page.next.is_some() {
        core.pin(served.resource, revision, &objects);
    }
    Ok(Reply::ok(renderer.list(&page.metadata(&served.kind), page.items.iter())))
}

/// Returns the metadata of the list, and the objects in the request's scope that its selectors
/// match, up to its limit.
pub(super) async fn select(
    core: &Core,
    call: &ApiCall,
    options: ListOptions,
) -> Result<(Value, Vec<Arc<Stored>>)> {
    // The real server reads the objects to delete in pages.
    let request = Request::parse(call, options, true)?;
    request.wait_for_revision(core, call).await?;
    let (revision, objects) = request.state(core, call)?;
    let page = request.shown_page(core, call, (revision, &objects)).await?;
    Ok((page.metadata(&call.target.served.kind), page.items))
}

// === impl Request ===

impl Request {
    fn parse(call: &ApiCall, options: ListOptions, is_paged: bool) -> Result<Self> {
        let params = &call.params;
        let kind = &call.target.served.kind;
        let ListOptions { selector, mut limit, .. } = options;
        // A negative limit is none, and no size of pages either.
        let is_paged = is_paged && params.number("limit")?.unwrap_or_default() == 0;
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
        if start.is_some() && version == "0" {
            limit = 0;
        }
        let state = match (&start, parse_version(version)?, params.get("resourceVersionMatch")) {
            (Some(token), ..) => u64::try_from(token.rv).map_or(State::Newest, State::Exactly),
            // An exact 0 is written in other digits: etcd takes it for the present.
            (None, None, _) | (None, Some(0), "Exact") => State::Newest,
            (None, Some(0), "") if !kind.cached => State::Newest,
            (None, Some(0), "") => {
                // Any state will do: the cache returns its complete one.
                limit = 0;
                State::Newest
            }
            (None, Some(revision), "Exact") => State::Exactly(revision),
            (None, Some(revision), "") if limit > 0 || is_paged => State::Exactly(revision),
            (None, Some(revision), _) => State::NotOlderThan(revision),
        };
        let from_cache = start.is_none() && !version.is_empty() && kind.cached;
        // A list of all namespaces that selects one reads only that one.
        let selected = selector.namespace().filter(|name| names::dns_label(name).is_empty());
        let namespace = if call.namespace().is_empty() { selected } else { None };
        let prefix = prefix(kind, namespace.unwrap_or_else(|| call.namespace()));
        Ok(Self { selector, prefix, limit, state, start, from_cache })
    }

    /// Waits for a future state.
    async fn wait_for_revision(&self, core: &Core, call: &ApiCall) -> Result<()> {
        match self.state {
            State::NotOlderThan(revision) | State::Exactly(revision)
                if call.target.served.kind.cached =>
            {
                core.wait_for_revision(revision, &call.client_view).await
            }
            State::NotOlderThan(revision) | State::Exactly(revision) => {
                core.check_revision(revision)
            }
            State::Newest => Ok(()),
        }
    }

    fn state(&self, core: &Core, call: &ApiCall) -> Result<(u64, Objects)> {
        let resource = call.target.served.resource;
        match self.state {
            State::Exactly(revision) => {
                let objects = core.objects_at(resource, revision);
                Ok((revision, objects.map_err(|_| self.expired())?))
            }
            _ => Ok(core.visible_objects(resource, &call.client_view, self.from_cache)),
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
        let message = "The provided continue parameter is too old to display a consistent list \
            result. You can start a new list without the continue parameter, or use the continue \
            token in this response to retrieve the remainder of the results. Continuing with the \
            provided token results in an inconsistent list - objects that were created, modified, \
            or deleted between the time the first chunk was returned and now may show up in the \
            list.";
        let mut failure = Failure::new(410, "Expired", message);
        failure.token = Some(token.for_present_state().encode());
        failure
    }

    /// Returns the page with its objects in the version of the request. Selectors match what the
    /// client sees.
    async fn shown_page(
        &self,
        core: &Core,
        call: &ApiCall,
        (revision, objects): (u64, &Objects),
    ) -> Result<Page> {
        let served = &call.target.served;
        if !served.has_webhook() {
            return Ok(self.page(revision, objects));
        }
        if self.selector.matches_everything() {
            let mut page = self.page(revision, objects);
            page.items = shown::list(core, served, &page.items).await?;
            return Ok(page);
        }
        let scope = self.rest(objects).map(|(key, object)| (key.clone(), Arc::clone(object)));
        let (keys, objects): (Vec<_>, Vec<_>) = scope.unzip();
        let shown = shown::list(core, served, &objects).await?;
        Ok(self.page(revision, &keys.into_iter().zip(shown).collect()))
    }

    /// Returns the objects in the scope of the list from its start on.
    fn rest<'a>(
        &'a self,
        objects: &'a Objects,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> {
        let start = match &self.start {
            Some(token) => format!("{}{}", self.prefix, token.start_key()),
            None => self.prefix.clone(),
        };
        let rest = objects.range(Arc::<str>::from(start)..);
        rest.take_while(|(key, _)| key.starts_with(&self.prefix))
    }

    fn page(&self, revision: u64, objects: &Objects) -> Page {
        let mut left = self.rest(objects);
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
            .filter(|_| remaining > 0 && !self.selector.selects_one_name())
            .map(|key| Token::after(revision, &key[self.prefix.len()..]));
        let remaining = (next.is_some() && self.selector.matches_everything()).then_some(remaining);
        Page { revision, items, next, remaining }
    }
}

/// Returns the common prefix of all keys of a list.
pub(super) fn prefix(kind: &Kind, namespace: &str) -> String {
    if kind.namespaced && !namespace.is_empty() { format!("{namespace}/") } else { String::new() }
}

// === impl Page ===

impl Page {
    fn metadata(&self, kind: &Kind) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        match &self.next {
            Some(token) => metadata["continue"] = json!(token.encode()),
            // Lists of custom resources always have the member; lists of built-in kinds omit an
            // empty one.
            None if kind.custom => metadata["continue"] = json!(""),
            None => {}
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}
