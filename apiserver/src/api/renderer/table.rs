//! Tables: the columns of a kind, and a row for each object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::partial::{metadata_only, without_empty};
use super::{Included, Renderer, in_requested_version};
use crate::admission::meta_text;
use crate::fields::Fields;
use crate::object::Stored;
use crate::table::{self, Columns};

impl Renderer {
    pub(super) fn table_of_event(
        &self,
        version: &str,
        stored: &Stored,
        with_columns: bool,
    ) -> Value {
        let fields = self.served.read(stored);
        let metadata = json!({"resourceVersion": stored.revision.to_string()});
        let rows = [self.row(version, stored, fields)];
        document(version, &metadata, &self.definitions(with_columns), &rows)
    }

    /// Returns the table of a bookmark, whose object has only metadata.
    pub(super) fn table_of_bookmark(
        &self,
        version: &str,
        metadata: &Value,
        with_columns: bool,
    ) -> Value {
        let mut fields = Fields::new();
        fields.insert("metadata".to_owned(), metadata.clone());
        let cells = table::cells(table::columns(&self.served.kind), &fields, self.now);
        let rows = [json!({"cells": cells, "object": metadata_only(version, fields)})];
        let metadata = json!({"resourceVersion": metadata["resourceVersion"]});
        document(version, &metadata, &self.definitions(with_columns), &rows)
    }

    /// Returns the table of an object that is not stored as such.
    pub(super) fn table_of_unstored(
        &self,
        version: &str,
        columns: Columns<'_>,
        object: Fields,
    ) -> Value {
        let metadata = json!({"resourceVersion": meta_text(&object, "resourceVersion")});
        let cells = table::cells(columns, &object, self.now);
        let object = match self.included {
            Included::Nothing => Value::Null,
            Included::Metadata => metadata_only(version, object),
            Included::Object => Value::Object(object),
        };
        let rows = [json!({"cells": cells, "object": object})];
        document(version, &metadata, &table::definitions(columns), &rows)
    }

    pub(super) fn table_of_list<'a>(
        &self,
        version: &str,
        metadata: &Value,
        items: impl Iterator<Item = &'a Arc<Stored>>,
    ) -> Value {
        let mut read: Vec<(&Arc<Stored>, Fields)> =
            items.map(|item| (item, self.served.read(item))).collect();
        if let Some(rank) = self.served.kind.row_rank {
            read.sort_by_key(|(_, object)| rank(object));
        }
        let (items, objects): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let default = self.served.kind.find_default.and_then(|find| find(&objects));
        let rows = items.into_iter().zip(objects);
        let mut rows: Vec<Value> =
            rows.map(|(item, fields)| self.row(version, item, fields)).collect();
        if let Some(name) = default.and_then(|at| rows[at].pointer_mut("/cells/0")) {
            *name = json!(format!("{} (default)", name.as_str().unwrap_or_default()));
        }
        document(version, &without_empty(metadata), &self.definitions(true), &rows)
    }

    /// Returns the definitions of the columns, if the table has them.
    fn definitions(&self, with_columns: bool) -> Value {
        if with_columns {
            table::definitions(table::columns(&self.served.kind))
        } else {
            Value::Null
        }
    }

    fn row(&self, version: &str, stored: &Stored, fields: Fields) -> Value {
        let cells = table::cells(table::columns(&self.served.kind), &fields, self.now);
        let object = match self.included {
            Included::Nothing => Value::Null,
            Included::Metadata => metadata_only(version, fields),
            Included::Object => Value::Object(
                in_requested_version(&self.served, stored).map_or(fields, |other| other.fields()),
            ),
        };
        json!({"cells": cells, "object": object})
    }
}

fn document(version: &str, metadata: &Value, definitions: &Value, rows: &[Value]) -> Value {
    json!({
        "kind": "Table", "apiVersion": version, "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}
