//! Requests: their parameters, their options, and the form of the reply that the client accepts.

pub(crate) mod decode;
mod media_ranges;
pub(crate) mod negotiate;
pub(crate) mod options;
pub(crate) mod params;
pub(crate) mod target;
mod warnings;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::access::User;
use crate::kinds::Served;
use crate::kinds::managers::MAX_MANAGER;
use crate::media::Media;
use crate::view::ClientView;
use crate::webhooks::Conversation;
use negotiate::Form;
use params::Params;
use target::Target;

pub(crate) use warnings::Warnings;

/// One API request, with its body.
#[derive(Debug)]
pub(crate) struct ApiCall {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) params: Params,
    /// The form of the reply that the client accepts.
    pub(crate) form: Form,
    /// The media type of the reply, unless the request fails.
    pub(crate) media: Media,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: Arc<User>,
    /// The revisions that the reply may show.
    pub(crate) client_view: ClientView,
    /// The warnings that go with the reply.
    pub(crate) warnings: Warnings,
    /// The calls of webhooks.
    pub(crate) conversation: Arc<Conversation>,
}

// === impl ApiCall ===

impl ApiCall {
    /// Returns the request as one to a subresource of an object in the same namespace.
    pub(crate) fn to_subresource(&self, served: Served, name: &str, subresource: &str) -> Self {
        let mut info = self.target.info.clone();
        info.resource = served.kind.plural.to_string();
        info.name = Some(name.to_owned());
        info.subresource = Some(subresource.to_owned());
        Self {
            method: self.method.clone(),
            target: Target { served, info },
            params: self.params.clone(),
            form: self.form,
            media: self.media,
            headers: self.headers.clone(),
            body: self.body.clone(),
            user: Arc::clone(&self.user),
            client_view: self.client_view.clone(),
            warnings: Warnings::default(),
            conversation: Arc::default(),
        }
    }

    /// Returns the media type of the body, without its parameters.
    pub(crate) fn content_type(&self) -> &str {
        let value = self
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("");
        value.split(';').next().unwrap_or("").trim()
    }

    /// Returns the manager that the request names; else the user agent's text up to the first `/`.
    pub(crate) fn field_manager(&self) -> String {
        let named = self.params.get("fieldManager");
        if !named.is_empty() {
            return named.to_owned();
        }
        let agent = self.headers.get(header::USER_AGENT).map(HeaderValue::as_bytes);
        let agent = String::from_utf8_lossy(agent.unwrap_or_default());
        let name = agent.split('/').next().unwrap_or_default();
        let mut manager = String::new();
        for character in name.chars().filter(|character| !character.is_control()) {
            if manager.len() + character.len_utf8() > MAX_MANAGER {
                break;
            }
            manager.push(character);
        }
        manager
    }

    /// Returns true if the parameters of the media type are valid.
    pub(crate) fn is_well_typed(&self) -> bool {
        let Some(value) = self.headers.get(header::CONTENT_TYPE) else { return true };
        let Ok(value) = value.to_str() else { return false };
        value.matches('"').count() % 2 == 0
    }

    /// Returns the namespace in the path: empty for all namespaces, and for cluster-scoped kinds.
    pub(crate) fn namespace(&self) -> &str {
        self.target.info.namespace.as_deref().unwrap_or("")
    }
}
