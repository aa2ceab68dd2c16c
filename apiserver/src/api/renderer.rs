//! The form of a reply: complete objects, metadata only, or rows of a table.

mod partial;
mod table;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::admission::field_manager::empty_object;
use crate::core::Core;
use crate::fields::Fields;
use crate::json_text::JsonText;
use crate::kinds::Served;
use crate::object::{Encoded, Stored};
use crate::request::ApiCall;
use crate::request::negotiate::Form;
use crate::status::{Failure, Result};
use crate::table::Columns;

/// The form of one reply.
#[derive(Debug, Clone)]
pub(super) struct Renderer {
    served: Served,
    form: Form,
    included: Included,
    /// The time from which ages are counted.
    now: Timestamp,
}

/// The part of an object that goes into its table row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Included {
    Nothing,
    Metadata,
    Object,
}

// === impl Renderer ===

impl Renderer {
    /// Returns the form of a reply with one object, or with the events of a watch.
    pub(super) fn of_object(core: &Core, call: &ApiCall) -> Result<Self> {
        if let Form::Partial { list: true, .. } = call.form {
            if call.target.served.kind.custom {
                // To the real server a custom object may be a list, as long as it is not read.
                return Err(Failure::internal("content is not a list"));
            }
            return Err(reject_partial(
                "PartialObjectMetadataList",
                "not a list",
                &call.target.served,
                "",
            ));
        }
        Self::of(core, call)
    }

    /// Returns the form of the reply to a write of one object, and the error of a form that it
    /// cannot have. As on the real server, that error comes after the write.
    pub(super) fn of_write(core: &Core, call: &ApiCall) -> (Self, Result<()>) {
        Self::with_late_error(core, call, Self::of_object(core, call))
    }

    /// Returns the form of a reply with an object of this Go type, which is not stored as such, and
    /// its error, as [`of_write`](Self::of_write).
    pub(super) fn of_unstored(core: &Core, call: &ApiCall, of: &str) -> (Self, Result<()>) {
        let renderer = if let Form::Partial { list: true, .. } = call.form {
            let requested = "PartialObjectMetadataList";
            Err(reject_form(requested, "not a list", of))
        } else {
            Self::of(core, call)
        };
        Self::with_late_error(core, call, renderer)
    }

    fn with_late_error(core: &Core, call: &ApiCall, renderer: Result<Self>) -> (Self, Result<()>) {
        match renderer {
            Ok(renderer) => (renderer, Ok(())),
            Err(failure) => (Self::of_whole_objects(core, call), Err(failure)),
        }
    }

    pub(super) fn of_list(core: &Core, call: &ApiCall) -> Result<Self> {
        if let Form::Partial { list: false, .. } = call.form {
            return Err(reject_partial(
                "PartialObjectMetadata",
                "a list",
                &call.target.served,
                "List",
            ));
        }
        Self::of(core, call)
    }

    pub(super) fn of(core: &Core, call: &ApiCall) -> Result<Self> {
        let included = match (call.form, call.params.get("includeObject")) {
            (Form::Whole | Form::Partial { .. }, _) | (_, "" | "Metadata") => Included::Metadata,
            (_, "None") => Included::Nothing,
            (_, "Object") => Included::Object,
            (_, other) => {
                let message = format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: \
                     \"{other}\": must be 'Metadata', 'Object', 'None', or empty"
                );
                return Err(Failure::bad_request(message));
            }
        };
        Ok(Self {
            served: call.target.served.clone(),
            form: call.form,
            included,
            now: core.clock.now(),
        })
    }

    /// Returns the form of complete objects, regardless of the request.
    pub(super) fn of_whole_objects(core: &Core, call: &ApiCall) -> Self {
        Self {
            served: call.target.served.clone(),
            form: Form::Whole,
            included: Included::Nothing,
            now: core.clock.now(),
        }
    }

    pub(super) fn served(&self) -> &Served {
        &self.served
    }

    /// Counts ages from now, since a watch may last long.
    pub(super) fn refresh(&mut self, core: &Core) {
        if let Form::Table { .. } = self.form {
            self.now = core.clock.now();
        }
    }

    /// Encodes one object as the complete reply.
    pub(super) fn object(&self, stored: &Stored) -> Bytes {
        match self.form {
            Form::Whole => self.complete(stored),
            Form::Partial { version, .. } => partial::encode(version, stored),
            Form::Table { .. } => self.event_object(stored, true),
        }
    }

    /// Encodes the result of a dry-run create, which has no resourceVersion.
    pub(super) fn dry_run_object(&self, encoded: &Encoded) -> Bytes {
        if self.form == Form::Whole && Arc::ptr_eq(&self.served.kind, &self.served.home) {
            return encoded.without_revision();
        }
        let seen = self.object(&encoded.at(0));
        let mut seen: Value = serde_json::from_slice(&seen).unwrap_or_default();
        let places: &[&str] = match self.form {
            Form::Whole | Form::Partial { .. } => &["/metadata"],
            Form::Table { .. } => &["/metadata", "/rows/0/object/metadata"],
        };
        for place in places {
            if let Some(metadata) = seen.pointer_mut(place).and_then(Value::as_object_mut) {
                metadata.remove("resourceVersion");
            }
        }
        seen.to_string().into()
    }

    /// Encodes the object of a watch event. Only the first event of a table has the column
    /// definitions.
    pub(super) fn event_object(&self, stored: &Stored, with_columns: bool) -> Bytes {
        let Form::Table { version } = self.form else { return self.object(stored) };
        self.table_of_event(version, stored, with_columns).to_string().into()
    }

    /// Returns an object that is not stored as such: a scale.
    pub(super) fn unstored(&self, columns: Columns<'_>, object: Fields) -> Value {
        let version = match self.form {
            Form::Whole => return Value::Object(object),
            Form::Partial { version, .. } => return partial::metadata_only(version, object),
            Form::Table { version } => version,
        };
        self.table_of_unstored(version, columns, object)
    }

    /// Encodes a bookmark. Its object has only metadata, and what each object of the kind has.
    pub(super) fn bookmark(&self, metadata: &Value, with_columns: bool) -> Vec<u8> {
        let kind = &self.served.kind;
        match self.form {
            Form::Whole => {
                let mut object = empty_object(kind);
                object.insert("metadata".to_owned(), metadata.clone());
                (kind.convert_empty)(&mut object);
                JsonText::of(&Value::Object(object))
            }
            Form::Partial { version, .. } => partial::encode_bookmark(version, metadata),
            Form::Table { version } => {
                self.table_of_bookmark(version, metadata, with_columns).to_string().into_bytes()
            }
        }
    }

    /// Encodes a list.
    pub(super) fn list<'a>(
        &self,
        metadata: &Value,
        items: impl Iterator<Item = &'a Arc<Stored>> + Clone,
    ) -> Bytes {
        match self.form {
            Form::Whole => self.complete_list(metadata, items),
            Form::Partial { version, .. } => partial::encode_list(version, metadata, items),
            Form::Table { version } => {
                self.table_of_list(version, metadata, items).to_string().into()
            }
        }
    }

    fn complete(&self, stored: &Stored) -> Bytes {
        in_requested_version(&self.served, stored)
            .map_or_else(|| stored.bytes().clone(), |other| other.bytes().clone())
    }

    fn complete_list<'a>(
        &self,
        metadata: &Value,
        items: impl Iterator<Item = &'a Arc<Stored>> + Clone,
    ) -> Bytes {
        let kind = &self.served.kind;
        let head = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            kind.list_kind(),
            kind.api_version()
        );
        // A list may have megabytes: while it grows it would be copied again and again.
        let size: usize = items.clone().map(|item| item.bytes().len() + 1).sum();
        // With room for the line feed of the reply.
        let mut body = Vec::with_capacity(head.len() + size + 3);
        body.extend_from_slice(head.as_bytes());
        for (at, item) in items.enumerate() {
            if at > 0 {
                body.push(b',');
            }
            append_item(&mut body, &self.served, item);
        }
        body.extend_from_slice(b"]}");
        body.into()
    }
}

/// Returns the object in the requested API version, if it is stored in another one.
pub(super) fn in_requested_version(served: &Served, stored: &Stored) -> Option<Stored> {
    if served.shows(stored) {
        return None;
    }
    let mut fields = served.read(stored);
    served.kind.rename_from_storage(&mut fields);
    Some(served.kind.encode(fields).at(stored.revision))
}

/// Appends an object as an item of a list. Items of built-in kinds omit `kind` and `apiVersion`:
/// the list has them.
fn append_item(into: &mut Vec<u8>, served: &Served, stored: &Stored) {
    let other = in_requested_version(served, stored);
    let stored = other.as_ref().unwrap_or(stored);
    if served.kind.custom {
        into.extend_from_slice(stored.bytes());
    } else {
        into.push(b'{');
        into.extend_from_slice(stored.item());
    }
}

fn reject_partial(requested: &str, what: &str, served: &Served, suffix: &str) -> Failure {
    reject_form(requested, what, &go_type(served, suffix))
}

fn go_type(served: &Served, suffix: &str) -> String {
    if served.kind.custom {
        return format!("*unstructured.Unstructured{suffix}");
    }
    let package = served.kind.group.split('.').next().filter(|group| !group.is_empty());
    format!("*{}.{}{suffix}", package.unwrap_or("core"), served.kind.kind)
}

fn reject_form(requested: &str, what: &str, go_type: &str) -> Failure {
    Failure::not_acceptable(format!(
        "you requested {requested}, but the requested object is {what} ({go_type})"
    ))
}
