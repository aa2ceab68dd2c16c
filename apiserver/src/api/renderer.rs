//! The form of a reply: complete objects, metadata only, or rows of a table.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::admission::meta_text;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::Served;
use crate::object::{Encoded, Stored, Texts};
use crate::request::ApiCall;
use crate::request::negotiate::Form;
use crate::status::{Failure, Result};
use crate::table::{self, Columns};

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

/// The metadata of an object, as it is encoded. Members sort by name here and below.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partial<'a> {
    api_version: &'a str,
    kind: &'static str,
    metadata: Texts<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartialList<'a> {
    api_version: &'a str,
    /// `None` instead of no items: the real server sends `null`.
    items: Option<Vec<Partial<'a>>>,
    kind: &'static str,
    metadata: &'a Value,
}

// === impl Renderer ===

impl Renderer {
    /// Returns the form of a reply with one object, or with the events of a watch.
    pub(super) fn of_object(core: &Core, call: &ApiCall) -> Result<Self> {
        if let Form::Partial { list: true, .. } = call.form {
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
            Form::Partial { version, .. } => encode(&Partial::of(version, stored)),
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
        let metadata = seen.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) =
            metadata.filter(|_| matches!(self.form, Form::Whole | Form::Partial { .. }))
        {
            metadata.remove("resourceVersion");
        }
        seen.to_string().into()
    }

    /// Encodes the object of a watch event. Only the first event of a table has the column
    /// definitions.
    pub(super) fn event_object(&self, stored: &Stored, with_columns: bool) -> Bytes {
        let Form::Table { version } = self.form else { return self.object(stored) };
        let fields = self.served.read(stored);
        let columns = table::columns(&self.served.kind);
        let definitions = if with_columns { table::definitions(columns) } else { Value::Null };
        let metadata = json!({"resourceVersion": stored.revision.to_string()});
        let rows = [self.row(version, stored, fields)];
        json!({
            "kind": "Table", "apiVersion": version, "metadata": metadata,
            "columnDefinitions": definitions, "rows": rows,
        })
        .to_string()
        .into()
    }

    /// Returns an object that is not stored as such: a scale.
    pub(super) fn unstored(&self, columns: Columns<'_>, object: Fields) -> Value {
        let version = match self.form {
            Form::Whole => return Value::Object(object),
            Form::Partial { version, .. } => return partial(version, object),
            Form::Table { version } => version,
        };
        let metadata = json!({"resourceVersion": meta_text(&object, "resourceVersion")});
        let cells = table::cells(columns, &object, self.now);
        let object = match self.included {
            Included::Nothing => Value::Null,
            Included::Metadata => partial(version, object),
            Included::Object => Value::Object(object),
        };
        json!({
            "kind": "Table", "apiVersion": version, "metadata": metadata,
            "columnDefinitions": table::definitions(columns),
            "rows": [{"cells": cells, "object": object}],
        })
    }

    /// Encodes a bookmark, whose object has only metadata.
    pub(super) fn bookmark(&self, metadata: &Value, with_columns: bool) -> Value {
        let kind = &self.served.kind;
        match self.form {
            Form::Whole => {
                json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata})
            }
            Form::Partial { version, .. } => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": version,
                    "metadata": metadata})
            }
            Form::Table { version } => {
                let mut fields = Fields::new();
                fields.insert("metadata".to_owned(), metadata.clone());
                let columns = table::columns(kind);
                let definitions =
                    if with_columns { table::definitions(columns) } else { Value::Null };
                let cells = table::cells(columns, &fields, self.now);
                let row = json!({"cells": cells, "object": partial(version, fields)});
                json!({
                    "kind": "Table", "apiVersion": version,
                    "metadata": {"resourceVersion": metadata["resourceVersion"]},
                    "columnDefinitions": definitions, "rows": [row],
                })
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
            Form::Partial { version, .. } => {
                let items: Vec<_> = items.map(|item| Partial::of(version, item)).collect();
                let items = Some(items).filter(|items| !items.is_empty());
                let kind = "PartialObjectMetadataList";
                let metadata = &without_empty(metadata);
                encode(&PartialList { api_version: version, items, kind, metadata })
            }
            Form::Table { version } => {
                let (items, objects): (Vec<&Arc<Stored>>, Vec<Fields>) =
                    items.map(|item| (item, self.served.read(item))).unzip();
                let default = self.served.kind.find_default.and_then(|find| find(&objects));
                let rows = items.into_iter().zip(objects);
                let mut rows: Vec<Value> =
                    rows.map(|(item, fields)| self.row(version, item, fields)).collect();
                if let Some(name) = default.and_then(|at| rows[at].pointer_mut("/cells/0")) {
                    *name = json!(format!("{} (default)", name.as_str().unwrap_or_default()));
                }
                let definitions = table::definitions(table::columns(&self.served.kind));
                let metadata = without_empty(metadata);
                json!({
                    "kind": "Table", "apiVersion": version, "metadata": metadata,
                    "columnDefinitions": definitions,
                    "rows": rows,
                })
                .to_string()
                .into()
            }
        }
    }

    fn row(&self, version: &str, stored: &Stored, fields: Fields) -> Value {
        let cells = table::cells(table::columns(&self.served.kind), &fields, self.now);
        let object = match self.included {
            Included::Nothing => Value::Null,
            Included::Metadata => partial(version, fields),
            Included::Object => Value::Object(
                in_requested_version(&self.served, stored).map_or(fields, |other| other.fields()),
            ),
        };
        json!({"cells": cells, "object": object})
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
        let mut body = Vec::with_capacity(head.len() + size + 2);
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

/// Returns the metadata of a list without empty members: only a list of complete custom resources
/// has them.
fn without_empty(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|_, value| *value != "");
    }
    metadata
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

// === impl Partial ===

impl<'a> Partial<'a> {
    fn of(version: &'a str, stored: &'a Stored) -> Self {
        let kind = "PartialObjectMetadata";
        Self { api_version: version, kind, metadata: stored.metadata() }
    }
}

fn encode(reply: &impl Serialize) -> Bytes {
    serde_json::to_vec(reply).expect("texts and values are JSON").into()
}

fn partial(version: &str, mut object: Fields) -> Value {
    let metadata = object.remove("metadata").unwrap_or_default();
    json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata})
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
