//! Objects as the client wants to see them: whole, as metadata only, or as rows of a table.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::core::Core;
use crate::http::{Call, Form};
use crate::kinds::Served;
use crate::object::{Encoded, Fields, Stored};
use crate::status::{Failure, Result};
use crate::table;

/// The form of one call's answer.
#[derive(Debug, Clone)]
pub(super) struct View {
    served: Served,
    form: Form,
    included: Included,
    /// From which ages are counted.
    now: Timestamp,
}

/// What of the object goes with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Included {
    Nothing,
    Metadata,
    Object,
}

// === impl View ===

impl View {
    /// The view of a call that answers with one object, or with the events of a watch.
    pub(super) fn of_object(core: &Core, call: &Call) -> Result<Self> {
        if let Form::Partial { list: true, .. } = call.form {
            return Err(refuse_partial(
                "PartialObjectMetadataList",
                "not a list",
                &call.target.served,
                "",
            ));
        }
        Self::of(core, call)
    }

    pub(super) fn of_list(core: &Core, call: &Call) -> Result<Self> {
        if let Form::Partial { list: false, .. } = call.form {
            return Err(refuse_partial(
                "PartialObjectMetadata",
                "a list",
                &call.target.served,
                "List",
            ));
        }
        Self::of(core, call)
    }

    pub(super) fn of(core: &Core, call: &Call) -> Result<Self> {
        let included = match (call.form, call.params.get("includeObject")) {
            (Form::Whole | Form::Partial { .. }, _) | (_, "" | "Metadata") => Included::Metadata,
            (_, "None") => Included::Nothing,
            (_, "Object") => Included::Object,
            (_, other) => {
                let message = format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: \"{other}\": must be \
                     'Metadata', 'Object', 'None', or empty"
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

    /// The objects as they are, whatever the client asked for.
    pub(super) fn of_whole_objects(core: &Core, call: &Call) -> Self {
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

    /// Counts ages from now on: a watch lasts.
    pub(super) fn refresh(&mut self, core: &Core) {
        if let Form::Table { .. } = self.form {
            self.now = core.clock.now();
        }
    }

    /// One object as the whole answer.
    pub(super) fn object(&self, stored: &Stored) -> Bytes {
        match self.form {
            Form::Whole => self.whole(stored),
            Form::Partial { version, .. } => partial(version, stored.fields()).to_string().into(),
            Form::Table { .. } => self.event_object(stored, true),
        }
    }

    /// A new object that was only tried: it has no version.
    pub(super) fn tried(&self, encoded: Encoded) -> Bytes {
        if self.form == Form::Whole && self.served.is_home() {
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

    /// One object as that of an event; the columns are only told once.
    pub(super) fn event_object(&self, stored: &Stored, with_columns: bool) -> Bytes {
        let Form::Table { version } = self.form else { return self.object(stored) };
        let fields = stored.fields();
        let columns = table::columns(&self.served.kind);
        let definitions = if with_columns { table::definitions(columns) } else { Value::Null };
        let metadata = json!({"resourceVersion": stored.revision.to_string()});
        let rows = [self.row(version, stored, fields)];
        json!({
            "kind": "Table", "apiVersion": version, "metadata": metadata, "columnDefinitions": definitions, "rows": rows,
        })
        .to_string()
        .into()
    }

    /// A bookmark, whose object has nothing but metadata.
    pub(super) fn bookmark(&self, metadata: &Value, with_columns: bool) -> Value {
        let kind = &self.served.kind;
        match self.form {
            Form::Whole => {
                json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata})
            }
            Form::Partial { version, .. } => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata})
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

    /// A list.
    pub(super) fn list<'a>(
        &self,
        metadata: &Value,
        items: impl Iterator<Item = &'a Arc<Stored>>,
    ) -> Bytes {
        match self.form {
            Form::Whole => self.whole_list(metadata, items),
            Form::Partial { version, .. } => {
                let items: Vec<Value> = items.map(|item| partial(version, item.fields())).collect();
                let kind = "PartialObjectMetadataList";
                json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})
                    .to_string()
                    .into()
            }
            Form::Table { version } => {
                let rows: Vec<Value> =
                    items.map(|item| self.row(version, item, item.fields())).collect();
                let definitions = table::definitions(table::columns(&self.served.kind));
                json!({
                    "kind": "Table", "apiVersion": version, "metadata": metadata, "columnDefinitions": definitions,
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
            Included::Object => {
                Value::Object(in_form(&self.served, stored).map_or(fields, |other| other.fields()))
            }
        };
        json!({"cells": cells, "object": object})
    }

    fn whole(&self, stored: &Stored) -> Bytes {
        in_form(&self.served, stored)
            .map_or_else(|| stored.bytes().clone(), |other| other.bytes().clone())
    }

    fn whole_list<'a>(
        &self,
        metadata: &Value,
        items: impl Iterator<Item = &'a Arc<Stored>>,
    ) -> Bytes {
        let kind = &self.served.kind;
        let head = format!(
            "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            kind.kind,
            kind.api_version()
        );
        let mut body = head.into_bytes();
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

/// The object in the asked form, if that is not the stored one.
pub(super) fn in_form(served: &Served, stored: &Stored) -> Option<Stored> {
    if served.is_home() {
        return None;
    }
    let mut fields = stored.fields();
    served.kind.rename_from_storage(&mut fields);
    Some(Encoded::new(&served.kind, fields).at(stored.revision))
}

/// Appends an object as an item of a list. Items of built-in kinds do not say what they are: the list does.
fn append_item(into: &mut Vec<u8>, served: &Served, stored: &Stored) {
    let other = in_form(served, stored);
    let stored = other.as_ref().unwrap_or(stored);
    if served.kind.custom {
        into.extend_from_slice(stored.bytes());
    } else {
        into.push(b'{');
        into.extend_from_slice(stored.item());
    }
}

fn partial(version: &str, mut object: Fields) -> Value {
    let metadata = object.remove("metadata").unwrap_or_default();
    json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata})
}

fn refuse_partial(asked: &str, what: &str, served: &Served, suffix: &str) -> Failure {
    let go_type = if served.kind.custom {
        format!("*unstructured.Unstructured{suffix}")
    } else {
        let package = served.kind.group.split('.').next().filter(|group| !group.is_empty());
        format!("*{}.{}{suffix}", package.unwrap_or("core"), served.kind.kind)
    };
    Failure::not_acceptable(format!(
        "you requested {asked}, but the requested object is {what} ({go_type})"
    ))
}
