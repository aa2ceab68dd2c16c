//! The conversion of custom objects by the webhook of their definition: when the server calls it,
//! and for which objects.
//!
//! Objects are stored in one version. A request sees them in its own one, so they are converted
//! after they are read, and again before they are stored. A kind whose versions differ in their
//! `apiVersion` alone needs no webhook.

use std::sync::Arc;

use homeostat_schema::ConvertVersion;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::size;
use crate::admission::metadata_mut;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::Served;
use crate::object::{Encoded, Stored, unpack_owners};
use crate::request::ApiCall;
use crate::status::{Failure, Result};
use crate::webhooks::{Conversation, ConversionWebhook, Unconverted};

/// Converts the objects of one kind for one request.
#[derive(Debug, Clone)]
pub(super) struct Converter {
    served: Served,
    /// `None` if no webhook converts the objects.
    webhook: Option<Arc<ConversionWebhook>>,
    conversation: Arc<Conversation>,
}

/// A new state of an object in the version of the request.
#[derive(Debug)]
pub(super) enum Shown {
    /// The one that is stored.
    AsStored,
    Converted(Encoded),
    /// The webhook does not convert the state, which is stored nevertheless.
    Failed(Failure),
}

// === impl Converter ===

impl Converter {
    pub(super) fn of(call: &ApiCall) -> Self {
        Self::new(&call.target.served, Arc::clone(&call.conversation))
    }

    pub(super) fn new(served: &Served, conversation: Arc<Conversation>) -> Self {
        let webhook = served.kind.definition.as_ref().and_then(|definition| definition.webhook());
        let read = |webhook| ConversionWebhook::read(&served.resource_name(), webhook);
        let webhook = webhook.map(|webhook| Arc::new(read(webhook)));
        Self { served: served.clone(), webhook, conversation }
    }

    /// Returns the converter of the server's own writes, which calls no webhook.
    pub(super) fn without_webhook(served: &Served) -> Self {
        Self { served: served.clone(), webhook: None, conversation: Arc::default() }
    }

    pub(super) fn served(&self) -> &Served {
        &self.served
    }

    /// Returns true if a webhook converts the objects.
    pub(super) fn calls_webhook(&self) -> bool {
        self.webhook.is_some()
    }

    /// Returns a stored object in the version of the request.
    pub(super) fn show(&self, stored: &Arc<Stored>) -> Result<Arc<Stored>> {
        let shown = self.show_all(std::slice::from_ref(stored));
        let mut shown = shown.map_err(|failure| undecodable(stored, &failure))?;
        Ok(shown.pop().unwrap_or_else(|| Arc::clone(stored)))
    }

    /// Returns a stored object in the version of a request that reads it alone.
    pub(super) fn read(&self, stored: &Arc<Stored>) -> Result<Arc<Stored>> {
        self.show(stored).map_err(|failure| {
            let key = storage_key(&self.served, stored);
            let key = key.strip_prefix("/registry").unwrap_or(&key);
            Failure::internal_error(&corrupt(key, &failure.message))
        })
    }

    /// Returns stored objects in the version of the request: one review converts all of them.
    pub(super) fn show_all(&self, all: &[Arc<Stored>]) -> Result<Vec<Arc<Stored>>> {
        let Some(definition) =
            self.served.kind.definition.as_ref().filter(|_| self.calls_webhook())
        else {
            return Ok(all.to_vec());
        };
        let differ: Vec<bool> =
            all.iter().map(|stored| self.served.needs_webhook(stored)).collect();
        let sent = all.iter().zip(&differ).filter(|(_, differs)| **differs).map(|(stored, _)| {
            let mut object = stored.fields();
            definition.complete_stored(&mut object);
            without_version(object)
        });
        let converted = self.convert_stored(sent.collect(), &definition.api_version)?;
        let mut converted = converted.into_iter();
        let shown = all.iter().zip(differ).map(|(stored, differs)| {
            let object = if differs { converted.next() } else { None };
            match object {
                Some(object) => Arc::new(self.served.kind.encode(object).at(stored.revision)),
                None => Arc::clone(stored),
            }
        });
        Ok(shown.collect())
    }

    /// Returns a stored object in the form that the rules apply to, as [`Core::fields`] does.
    pub(super) fn fields(&self, core: &Core, stored: &Arc<Stored>) -> Result<Arc<Fields>> {
        self.fields_by(core, stored, Self::show)
    }

    /// Returns what [`fields`](Self::fields) does, for a request that reads the object alone.
    pub(super) fn read_fields(&self, core: &Core, stored: &Arc<Stored>) -> Result<Arc<Fields>> {
        self.fields_by(core, stored, Self::read)
    }

    fn fields_by(
        &self,
        core: &Core,
        stored: &Arc<Stored>,
        show: fn(&Self, &Arc<Stored>) -> Result<Arc<Stored>>,
    ) -> Result<Arc<Fields>> {
        if self.calls_webhook() && self.served.needs_webhook(stored) {
            // The core may know the fields of the stored version under the same revision.
            return Ok(Arc::new(show(self, stored)?.packed_fields()));
        }
        Ok(core.fields(&self.served, stored))
    }

    /// Encodes an object, in the form that the rules apply to, for storage.
    ///
    /// # Errors
    ///
    /// Fails also if an earlier step of the request has to wait for a webhook.
    pub(super) fn encode(&self, object: Fields) -> Result<Encoded> {
        if !self.calls_webhook() {
            return Ok(self.served.encode(object));
        }
        self.check_answered()?;
        let home = &self.served.home;
        let mut object = self.to_stored_version(object, &home.api_version())?;
        if let Some(definition) = &home.definition {
            // The real server sets the defaults at each read.
            definition.complete_stored(&mut object);
        }
        Ok(home.encode(object))
    }

    /// Encodes an object for storage, unless it is too large.
    pub(super) fn encode_sized(&self, call: &ApiCall, object: Fields) -> Result<Encoded> {
        size::limited(&self.served, call, object, &|object| self.encode(object))
    }

    /// Returns a new state, which is encoded for storage, as the reply shows it. The answer of the
    /// webhook is known before the state is stored.
    pub(super) fn shown(&self, encoded: &Encoded) -> Result<Shown> {
        let Served { kind, home, .. } = &self.served;
        if !self.calls_webhook() || kind.version == home.version {
            return Ok(Shown::AsStored);
        }
        match self.to_stored_version(encoded.object().clone(), &kind.api_version()) {
            Ok(object) => Ok(Shown::Converted(kind.encode(object))),
            Err(failure) if self.conversation.is_open() => Err(failure),
            Err(failure) => Ok(Shown::Failed(failure)),
        }
    }

    /// Asks for the conversions of an object that is to be stored, without looking at the answers.
    ///
    /// # Errors
    ///
    /// Fails if the request has to wait for them.
    pub(super) fn foresee(&self, object: &Fields) -> Result<()> {
        if !self.calls_webhook() {
            return Ok(());
        }
        let shown = self.encode(object.clone()).and_then(|encoded| self.shown(&encoded));
        match shown {
            Err(failure) if self.conversation.is_open() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Fails if an earlier step of the request has to wait for a webhook.
    pub(super) fn check_answered(&self) -> Result<()> {
        if self.conversation.is_open() { Err(Failure::open_question()) } else { Ok(()) }
    }

    /// Returns the time of the request. It stays the same when a webhook stops the request.
    pub(super) fn time(&self, core: &Core) -> Timestamp {
        let now = core.clock.now();
        if self.calls_webhook() { self.conversation.time(now) } else { now }
    }

    /// Returns an object in another version, as the webhook returns it.
    pub(super) fn to_version(&self, mut object: Fields, api_version: &str) -> Result<Fields> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            return Ok(object);
        }
        unpack_owners(&mut object);
        let mut converted = self.convert(vec![object], api_version)?;
        Ok(converted.pop().unwrap_or_default())
    }

    /// Returns an object in another version, on its way to the storage or from it.
    fn to_stored_version(&self, mut object: Fields, api_version: &str) -> Result<Fields> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            return Ok(object);
        }
        unpack_owners(&mut object);
        let mut converted = self.convert_stored(vec![without_version(object)], api_version)?;
        Ok(converted.pop().unwrap_or_default())
    }

    /// Converts objects on their way to the storage or from it: they lose unknown members.
    fn convert_stored(&self, objects: Vec<Fields>, api_version: &str) -> Result<Vec<Fields>> {
        let mut converted = self.convert(objects, api_version)?;
        if let Some(definition) = &self.served.kind.definition {
            for object in &mut converted {
                definition.prune_converted(object);
            }
        }
        Ok(converted)
    }

    /// Converts objects, which are of other versions.
    fn convert(&self, objects: Vec<Fields>, api_version: &str) -> Result<Vec<Fields>> {
        let Some(webhook) = &self.webhook else { return Ok(objects) };
        let converted = webhook.convert(&self.conversation, &objects, api_version);
        converted.map_err(|error| match error {
            Unconverted::Open => Failure::open_question(),
            Unconverted::Failed(why) => Failure::internal(why),
        })
    }
}

impl ConvertVersion for Converter {
    fn convert(
        &self,
        object: &Map<String, Value>,
        api_version: &str,
    ) -> std::result::Result<Map<String, Value>, String> {
        self.to_version(object.clone(), api_version).map_err(|failure| failure.message)
    }
}

// === impl Shown ===

impl Shown {
    /// Returns the state, encoded for the reply.
    pub(super) fn encoded<'a>(&'a self, encoded: &'a Encoded) -> Result<&'a Encoded> {
        match self {
            Self::AsStored => Ok(encoded),
            Self::Converted(shown) => Ok(shown),
            Self::Failed(failure) => Err(failure.clone()),
        }
    }

    /// Returns the state after it was stored.
    pub(super) fn stored(&self, stored: Arc<Stored>) -> Result<Arc<Stored>> {
        match self {
            Self::AsStored => Ok(stored),
            Self::Converted(shown) => Ok(Arc::new(shown.at(stored.revision))),
            Self::Failed(failure) => Err(undecodable(&stored, failure)),
        }
    }
}

/// Returns the error for a stored object that cannot be converted.
fn undecodable(stored: &Stored, failure: &Failure) -> Failure {
    let (revision, why) = (stored.revision, &failure.message);
    Failure::internal(format!("object not decodable revision={revision}: {why}"))
}

fn storage_key(served: &Served, stored: &Stored) -> String {
    served.home.storage_key(&stored.selectable.namespace, &stored.selectable.name)
}

fn corrupt(key: &str, why: &str) -> String {
    format!(
        "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: {why}"
    )
}

/// Returns the error for a list with an object that cannot be converted.
pub(super) fn unreadable_list(served: &Served, stored: &Stored, failure: &Failure) -> Failure {
    let kind = &served.kind;
    let key = storage_key(served, stored);
    let why = corrupt(&key, &undecodable(stored, failure).message);
    let (plural, group) = (&kind.plural, &kind.group);
    let message = format!("failed to read one or more {plural}.{group} from the storage: {why}");
    let cause = json!({"reason": "UnexpectedServerResponse", "message": why, "field": key});
    let details = json!({"name": "list", "group": group, "kind": plural, "causes": [cause]});
    Failure::new(500, "StorageReadError", message).with_details(details)
}

/// Removes the resourceVersion, which the webhook does not see of a stored object.
fn without_version(mut object: Fields) -> Fields {
    metadata_mut(&mut object).remove("resourceVersion");
    object
}
